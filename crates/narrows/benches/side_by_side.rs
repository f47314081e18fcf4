//! The same documents over the same link: OpenSearch with its defaults, OpenSearch as a good operator would set it,
//! and the embedded engine.
//!
//! Runs the plan `replica-over-link` on both, several laps of each, and prints one table. Needs Java and, the first
//! time, mvn. `NARROWS_BENCH_SCALE` (2) and `NARROWS_BENCH_LAPS` (3) change its size.

use std::process::{Command, Stdio};

use serde_json::Value;
use testbed::bench::Table;

const PLAN: &str = "replica-over-link";
/// Where, and under which variants.
const SIDES: [(&str, &[&str]); 2] =
    [("opensearch", &["default", "4 MB x 5"]), ("embedded", &["default", "4 MB x 5", "adaptive"])];

struct Line {
    side: &'static str,
    row: Value,
}

impl Line {
    fn number(&self, name: &str) -> f64 {
        self.row[name].as_f64().unwrap_or(f64::NAN)
    }

    /// Seconds with the range of the laps.
    fn seconds(&self) -> String {
        let laps: Vec<f64> =
            self.row["laps_s"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let least = laps.iter().copied().fold(f64::INFINITY, f64::min);
        let most = laps.iter().copied().fold(0.0, f64::max);
        format!("{:.2} ({least:.2} to {most:.2})", self.number("seconds"))
    }
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn run(side: &'static str, variants: &[&str], runs: &std::path::Path) -> Vec<Line> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(["run", PLAN, "--on", side, "--json"]);
    command.args(["--scale", &setting("NARROWS_BENCH_SCALE", "2")]);
    command.args(["--laps", &setting("NARROWS_BENCH_LAPS", "3")]);
    for variant in variants {
        command.args(["--variant", variant]);
    }
    let output = command.arg("--runs").arg(runs).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the run on {side} failed");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["rows"].as_array().expect("rows").clone();
    rows.into_iter().map(|row| Line { side, row }).collect()
}

const TABLE: Table = Table {
    page: "side_by_side",
    name: "measured",
    columns: &[
        "on", "settings", "documents", "MB", "seconds (laps)", "MB/s", "of the link",
        "times the first", "held by",
    ],
};

fn main() {
    let runs = tempfile::tempdir().unwrap();
    let lines: Vec<Line> =
        SIDES.iter().flat_map(|(side, variants)| run(side, variants, runs.path())).collect();
    let first = lines[0].number("seconds");
    TABLE.begin();
    for line in &lines {
        assert_eq!(line.row["verified"], true, "{}", line.row);
        TABLE.row(&[
            line.side.to_owned(),
            line.row["variant"].as_str().unwrap_or("?").to_owned(),
            line.row["documents"].to_string(),
            format!("{:.0}", line.number("bytes") / 1e6),
            line.seconds(),
            format!("{:.1}", line.number("bytes_per_s") / 1e6),
            format!("{:.0} %", line.number("link_share") * 100.0),
            format!("{:.1}", first / line.number("seconds")),
            line.row["held_by"].as_str().unwrap_or("unknown").to_owned(),
        ]);
    }
}
