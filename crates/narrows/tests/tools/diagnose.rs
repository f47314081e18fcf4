//! `narrows diagnose` on the embedded engine: injected causes are found by looking alone.

use serde_json::{Value, json};

use crate::common::{failed, json, look_until, narrows};

fn are_found(cases: &[&str]) {
    let mut arguments = vec!["diagnose", "--on", "embedded", "--no-probe", "--json"];
    arguments.extend(cases.iter().flat_map(|case| ["--case", case]));
    // A wrong one is exit code 1.
    let output = look_until(|| narrows(&arguments), |output| output.status.success());
    let found = json(&output);
    assert_eq!(found["wrong"], 0, "{found:#}");
    assert_eq!(found["rows"].as_array().unwrap().len(), cases.len(), "{found:#}");
}

pub fn every_cause_is_found() {
    are_found(&["throttle", "link", "slots", "block"]);
}

/// What takes cores is told from what leaves them: nothing else may take any.
pub fn a_starved_node_is_found_and_a_healthy_one_is_left_in_peace() {
    are_found(&["cpu", "healthy"]);
}

/// A release that is none is found once the embedded engine was looked at.
pub fn what_was_found_is_shown_where_a_later_cluster_fails() {
    let both = ["--on", "embedded", "--on", "opensearch", "--opensearch-version", "0.1"];
    let asked = ["diagnose", "--case", "throttle", "--no-probe", "--json"];
    let output = narrows(&[&asked[..], &both].concat());
    failed(&output, 2, &["0.1"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["rows"][0]["case"], "throttle", "{found:#}");
}

/// Two cases of the bench on processes: one that nothing holds, and one that its limiter slows to a third.
pub fn cases_are_drawn_and_tried_on_processes() {
    let asked = ["--on", "embedded", "--seeds", "2,62", "--no-probe", "--json"];
    let look = || json(&narrows(&[&["diagnose", "--bench"], &asked[..]].concat()));
    let found = look_until(look, |found| {
        let verdicts = |n: usize| &found["cases"][n]["verdicts"];
        let got = found["cases"][1]["got"].as_f64();
        *verdicts(0) == json!([])
            && verdicts(1)[0] == "rate_limit"
            && got.is_some_and(|got| got > 1.2)
    });
    let said = |n: usize, what: &str| found["cases"][n][what].clone();
    assert_eq!((said(0, "class"), said(0, "verdicts")), ("healthy".into(), json!([])), "{found:#}");
    assert_eq!((said(1, "class"), said(1, "target")), ("rate_limit".into(), "embedded".into()));
    assert_eq!(said(1, "verdicts")[0], "rate_limit", "{found:#}");
    assert!(said(1, "got").as_f64().unwrap() > 1.2, "the advice helps: {found:#}");
}
