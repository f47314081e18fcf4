//! `narrows doctor`

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::doctor::{Finding, Group, State, examine};
use crate::{runs, terminal};

/// The version, and the commit where it is known.
const VERSION: &str = env!("NARROWS_VERSION");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where runs would be kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    /// Also what the tests of a clone need.
    #[arg(long)]
    tests: bool,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let groups = examine(&args.runs, args.tests);
    let machine = lab::machine::describe();
    let mut out = terminal::out();
    if args.json {
        let groups: Vec<Value> = groups.iter().map(group_json).collect();
        writeln!(out, "{}", json!({ "version": VERSION, "machine": machine, "groups": groups }))?;
    } else {
        let width = out.line_width();
        let head = format!("narrows {VERSION}, {}, {}", machine.os, machine.cpu);
        writeln!(out, "{}", report::fitted(&head, width))?;
        for group in &groups {
            write!(out, "\n{}", written(group, width))?;
        }
        let rest = "All else needs nothing more: --on virtual, published, plans, runs, show, compare, report, \
                    completions.";
        writeln!(out, "\n{}", report::fitted(rest, width))?;
    }
    let lacking = groups[0].lacking();
    if !lacking.is_empty() {
        anyhow::bail!("the first run cannot work on this machine: {}", lacking.join(", "));
    }
    Ok(())
}

fn group_json(group: &Group) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "what": finding.what,
            "state": finding.state.name(),
            "found": finding.found,
            "remedy": finding.remedy,
        })
    };
    let findings: Vec<Value> = group.findings.iter().map(finding).collect();
    json!({ "commands": group.title, "state": group.state().name(), "findings": findings })
}

fn written(group: &Group, width: usize) -> String {
    let verdict = match group.state() {
        State::Here => "works",
        State::Less => "works, with less",
        State::Lacks => "does not work here yet",
    };
    let mut text = format!("{}\n  {verdict}\n", report::fitted(group.title, width));
    let longest = group.findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    for Finding { what, state, found, remedy } in &group.findings {
        let label = format!("  {:5}  {what:longest$}  ", state.name());
        let remedy = remedy.as_ref().map_or_else(String::new, |it| format!("\nto mend it: {it}"));
        text += &report::labelled(&label, &format!("{found}{remedy}"), width);
        text += "\n";
    }
    text
}
