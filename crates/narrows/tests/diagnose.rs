//! `narrows diagnose` on the embedded engine: injected causes are found by looking alone.

use std::process::Command;

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_narrows");

/// The starved node needs a control group, which root on Linux can make: it is left out aloud elsewhere.
const CASES: [&str; 6] = ["throttle", "link", "cpu", "slots", "block", "healthy"];

#[test]
fn every_cause_is_found() {
    let runs = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command.args(["diagnose", "--on", "embedded", "--no-probe", "--json"]);
    command.args(CASES.iter().flat_map(|case| ["--case", case]));
    let output = command.arg("--runs").arg(runs.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((output.status.code(), &found["wrong"]), (Some(0), &0.into()), "{found:#}");
    let left_out = usize::from(said.contains("cpu is left out"));
    assert_eq!(found["rows"].as_array().unwrap().len(), CASES.len() - left_out, "{found:#}");
}

#[test]
fn a_case_or_a_place_that_there_is_not_is_said() {
    for (arguments, word) in [
        (["--case", "thottle"], "did you mean \"throttle\""),
        (["--on", "virtual"], "--on embedded"),
        (["--on", "http://127.0.0.1:1"], "--on embedded"),
    ] {
        let output = Command::new(BINARY).arg("diagnose").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word), "{said}");
    }
}
