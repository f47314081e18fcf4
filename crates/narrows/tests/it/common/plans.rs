//! Plans of the tests' own, and runs of them.

use std::process::Output;

use super::narrows_in;

/// Runs a plan in a directory of its own, which has the runs in `runs`.
pub fn run(plan: &str, on: &str, more: &[&str]) -> (tempfile::TempDir, Output) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plan.toml");
    std::fs::write(&file, plan).unwrap();
    let arguments = ["run", file.to_str().unwrap(), "--on", on, "--json"];
    let output = narrows_in(dir.path(), &[&arguments[..], more].concat()).output().unwrap();
    (dir, output)
}

/// A plan that follows on two clusters of two nodes, with faults in between.
pub fn following() -> String {
    let wait = "{ wait_for_lag = { under = 200, within = \"5m\" } },";
    let steps = format!(
        r#"{{ fault = {{ kind = "cut", lasts = "2s" }} }},
    {wait}
    {{ fault = {{ kind = "kill", node = "follower", lasts = "1s" }} }},
    {wait}
    {{ fault = {{ kind = "stop", node = "leader-1", lasts = "1s" }} }},
    {{ fault = {{ kind = "pause", node = "follower-1", lasts = "1s" }} }},"#
    );
    testbed::plans::following(2, &steps)
}
