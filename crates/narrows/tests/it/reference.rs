//! `docs/reference.md`: commands, settings, causes, and the fields of records, each from where it is defined.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::common::{folded, narrows, printed};

const HEAD: &str = "\
# Reference

Written by `NARROWS_WRITE=1 cargo test --release -p narrows --test it reference` from the program itself: its help, its
tables of settings and causes, and the types of its records. [Keys of a plan](plans.md) and [REST](rest.md) have pages
of their own.
";

/// The help of a command, then that of each of its own commands.
fn write_commands(out: &mut String, command: &[&str]) {
    let help = printed(&narrows(&[command, &["--help"]].concat()));
    let (level, name) = match command {
        [] => ("##", "Commands".to_owned()),
        _ => ("###", format!("narrows {}", command.join(" "))),
    };
    let _ = write!(out, "\n{level} {name}\n\n```text\n{}\n```\n", help.trim_end());
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // Names are set in by two blanks, and what is told of them by more.
    for line in listed.take_while(|line| line.starts_with("  ")) {
        let name = line[2..].split(' ').next().filter(|name| !name.is_empty() && *name != "help");
        if let Some(name) = name {
            write_commands(out, &[command, &[name]].concat());
        }
    }
}

fn write_settings(out: &mut String) {
    out.push_str(
        "\n## Settings\nThose that the embedded engine has. They have the names and the defaults of the field, but for \
         those that begin\nwith `narrows.`.\n\n| setting | default | |\n| --- | --- | --- |\n",
    );
    for setting in engine::settings::TABLE {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            setting.name,
            setting.default,
            setting.doc.replace('|', "\\|")
        );
    }
}

fn write_causes(out: &mut String) {
    let rules = printed(&narrows(&["explain", "--rules"]));
    let rules: Vec<String> = rules.lines().map(folded).collect();
    let rules = rules.join("\n");
    let _ = write!(
        out,
        "\n## Causes\n`narrows explain --rules` prints them.\n\n```text\n{}\n```\n",
        rules.trim_end()
    );
}

/// Files of `record` with the types of what a run leaves behind.
const RECORDS: [&str; 7] = ["manifest", "row", "line", "load", "follow", "stream", "observation"];

/// The public fields of the structs in a file and the variants of its enums as they are written, those with fields of
/// their own before them, with what their comments say: type, then name and words.
fn fields(source: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let (mut found, mut of, mut words) = (BTreeMap::new(), None::<String>, Vec::new());
    let mut variant = None::<String>;
    for line in source.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("/// ") {
            words.push(comment.to_owned());
            continue;
        }
        let is_enum = line.starts_with("pub enum ");
        if let Some(rest) = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum ")) {
            of = rest.split([' ', '<']).next().map(str::to_owned);
            variant = is_enum.then(String::new);
        } else if line == "}" {
            of = None;
        } else if let Some(of) = &of
            && !words.is_empty()
        {
            let name = match &mut variant {
                None => line.strip_prefix("pub ").and_then(|rest| rest.split(": ").next()),
                Some(variant) if line.starts_with(char::is_uppercase) => {
                    *variant = snake_case(line.split([',', ' ', '(']).next().unwrap_or_default());
                    Some("")
                }
                Some(_) => line.split(": ").next(),
            };
            let of_variant = variant.iter().map(String::as_str);
            let parts = of_variant.chain(name).filter(|part| !part.is_empty());
            let name = name.map(|_| parts.collect::<Vec<_>>().join("."));
            let fields: &mut Vec<_> = found.entry(of.clone()).or_default();
            fields.extend(name.map(|name| (name, words.join(" "))));
        }
        if !line.starts_with("#[") {
            words.clear();
        }
    }
    found
}

/// `LinkRate` as it is written: `link_rate`.
fn snake_case(name: &str) -> String {
    let part = |letter: char| match letter.is_uppercase() {
        true => format!("_{}", letter.to_lowercase()),
        false => letter.to_string(),
    };
    name.chars().map(part).collect::<String>().trim_start_matches('_').to_owned()
}

fn write_records(out: &mut String) {
    out.push_str(
        "\n## Records\nA run leaves a directory: `manifest.json` is a Manifest, `rows.jsonl` has a Row for each variant \
         and lap, `lines.jsonl`\nwhat happened in order, each a Line. `narrows show --json` has medians of the rows. \
         Recordings of live clusters\nhold an Observation in each line that has one.\n",
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/src");
    for file in RECORDS {
        let mut source = std::fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap();
        // Its parts have one list of names.
        for part in std::fs::read_dir(folder.join(file)).into_iter().flatten() {
            source += &std::fs::read_to_string(part.unwrap().path()).unwrap();
        }
        for (name, fields) in fields(&source) {
            let _ = write!(out, "\n### {name}\n\n| field | |\n| --- | --- |\n");
            for (field, words) in fields {
                let words = words.replace("[`", "`").replace("`]", "`").replace('|', "\\|");
                let _ = writeln!(out, "| `{field}` | {words} |");
            }
        }
    }
}

#[test]
fn the_reference_is_what_the_program_says() {
    let mut made = HEAD.to_owned();
    write_commands(&mut made, &[]);
    write_settings(&mut made);
    write_causes(&mut made);
    write_records(&mut made);
    for part in [
        "### narrows dcp serve\n",
        "`indices.recovery.max_bytes_per_sec`",
        "| `plan_text` |",
        "| `link_rate` |",
        "| `phase.lap` |",
        "| `leader_checkpoint` |",
        "### Row\n",
    ] {
        assert!(made.contains(part), "{part}");
    }
    testbed::generated::check_page("docs/reference.md", &made);
}
