//! Causes that are injected in virtual time are named, each by its class.

use serde_json::Value;

use crate::common::{json, narrows};

/// One case of each class, which every earlier version named: the same seed is the same case and the same trace.
const NAMED: &str = "0,2,12,14,18,28,32,38,40,44,50,66,70,106";

fn bench(seeds: &str, probe: &[&str]) -> Value {
    let asked = ["diagnose", "--bench", "--on", "virtual", "--json", "--seeds", seeds];
    json(&narrows(&[&asked, probe].concat()))
}

#[test]
fn what_was_injected_is_named() {
    let found = bench(NAMED, &["--no-probe"]);
    let cases = found["cases"].as_array().unwrap();
    assert_eq!(cases.len(), NAMED.split(',').count(), "all of these are cases");
    for case in cases {
        let class = case["class"].as_str().unwrap();
        let first = class.split('+').next().unwrap_or_default();
        let said = case["verdicts"][0].as_str().unwrap_or("healthy");
        let seed = &case["seed"];
        assert_eq!(said, first, "narrows diagnose --bench --no-probe --seeds {seed}");
    }
}

#[test]
fn a_case_is_the_same_each_time_with_its_probes() {
    let one = bench("66", &[]);
    assert_eq!(one["cases"][0]["verdicts"][0], "latency");
    assert_eq!(one, bench("66", &[]));
}
