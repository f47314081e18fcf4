//! The table of keys as a document.

use std::fmt::Write;

use super::steps::STEPS;
use super::{Bounds, Holds, Key, Section};
use crate::plan::document::PLAN;

const HEAD: &str = "\
# The keys of a plan

A plan is a TOML file. `narrows plans remote-recovery > mine.toml` prints one to start from, `narrows run mine.toml`
runs it. Every mistake in it is shown at once, each with its line and what to write instead, before anything starts.
This page is written by `NARROWS_WRITE=1 cargo test --release -p lab plan::keys` from the table that plans are checked
against, and is what `narrows plans --keys` prints.

## Units
Values with a unit are texts, in quotes, and take the same units everywhere, in plans and on the command line. Case
does not matter.

| what | units | example |
| --- | --- | --- |
| time | `nanos`, `micros`, `ms`, `s`, `m`, `h`, `d` | `\"100ms\"` |
| size | `b`, `kb`, `mb`, `gb`, `tb`: powers of 1024, as Elasticsearch has them | `\"1mb\"` |
| rate | `bit`, `kbit`, `mbit`, `gbit` a second, or `kB/s`, `MB/s`, `GB/s`: powers of 1000 | `\"1gbit\"` |

Settings are written by the names that the stores have for them, in quotes because of their dots; their values are
those of the stores.
";

/// `docs/plans.md`.
pub fn markdown() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Tables\n");
    let mut done = Vec::new();
    write_section(&mut out, &PLAN, "###", &mut done);
    out.push_str(
        "\n## Steps\nA step is a name, or a table of one name with its options: `{ wait = { lasts = \"30s\" } }`. A plan has \
         `start`,\nthen `index` or `fill`, then one step that is measured, then `verify` where that step copies \
         documents: all but `load`\nand `what_if`. A plan with `follow` or `auto_follow` is a list of what happens, \
         one after another.\n",
    );
    for step in STEPS {
        let _ = write!(out, "\n### `{}`\n{}\n", step.title, wrapped(step.about));
        write_keys(&mut out, step.keys);
        for key in step.keys {
            if let Holds::Table(full) = key.holds {
                let _ = write!(out, "\n{}: {}\n", full.title, full.about);
                write_keys(&mut out, full.keys);
            }
        }
    }
    out
}

fn write_section(
    out: &mut String,
    section: &'static Section,
    marks: &str,
    done: &mut Vec<&'static str>,
) {
    if done.contains(&section.title) {
        return;
    }
    done.push(section.title);
    let title = match section.title.starts_with('[') {
        true => format!("`{}`", section.title),
        false => section.title.to_owned(),
    };
    let _ = write!(out, "\n{marks} {title}\n{}\n", wrapped(section.about));
    write_keys(out, section.keys);
    for key in section.keys {
        if let Holds::Table(section) | Holds::Tables(section) | Holds::Parameters(section) =
            key.holds
        {
            write_section(out, section, marks, done);
        }
    }
}

fn write_keys(out: &mut String, keys: &[Key]) {
    if keys.is_empty() {
        return;
    }
    out.push_str("\n| key | holds | default | example | |\n| --- | --- | --- | --- | --- |\n");
    for Key { name, holds, default, example, about, bounds } in keys {
        let default = default.unwrap_or("**needed**");
        let mut holds = holds.column().to_owned();
        if let Some(Bounds::Within(least, most)) = bounds {
            let _ = write!(holds, ", {least} to {most}");
        }
        let _ = writeln!(out, "| `{name}` | {holds} | {default} | `{example}` | {about} |");
    }
}

/// Within 120 columns.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > 118 {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}
