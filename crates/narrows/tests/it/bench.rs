//! Causes that are injected in virtual time are named, each by its class.

use serde_json::{Value, json as value};

use crate::common::{json, narrows, said};

/// One case of each class, which every earlier version named: the same seed is the same case and the same trace.
const NAMED: &str = "0,2,4,10,16,20,22,26,30,34,40,46,52,54,58,142,222";

/// So many of them draw searches, a follower or a bucket, too.
const BESIDE: [usize; 3] = [5, 3, 1];

fn bench(seeds: &str, probe: &[&str]) -> Value {
    let asked = ["diagnose", "--bench", "--on", "virtual", "--json", "--seeds", seeds];
    json(&narrows(&[&asked, probe].concat()))
}

#[test]
fn what_was_injected_is_named() {
    let found = bench(NAMED, &["--no-probe"]);
    let cases = found["cases"].as_array().unwrap();
    let count = NAMED.split(',').count() + BESIDE.iter().sum::<usize>();
    assert_eq!(cases.len(), count, "all of these are cases");
    for case in cases {
        let class = case["class"].as_str().unwrap();
        let first = class.split('+').next().unwrap_or_default();
        let said = case["verdicts"][0].as_str().unwrap_or("healthy");
        let seed = &case["seed"];
        assert_eq!(said, first, "narrows diagnose --bench --no-probe --seeds {seed}");
    }
}

/// Each mild, middling and grave: the second time that the deck is gone through, the fourth and the sixth.
#[test]
fn few_sockets_and_a_neighbour_of_the_cores_are_named() {
    for (seeds, class) in [("98,242,386", "bandwidth"), ("126,270,414", "noisy_neighbour")] {
        let found = bench(seeds, &["--no-probe"]);
        let cases = found["cases"].as_array().unwrap();
        let of: Vec<&Value> = cases.iter().filter(|case| case["class"] == class).collect();
        assert!(of.len() >= 2, "these are cases: {found:#}");
        for case in of {
            assert_eq!(case["verdicts"][0], class, "{case:#}");
        }
    }
}

/// A slow consumer, a slow disk of a producer, and a consumer with too little memory, mild and grave.
#[test]
fn what_holds_a_bucket_is_named() {
    let found = bench("8,48,108,148,228,378", &["--no-probe"]);
    let is_of_bucket = |case: &&Value| case["class"].as_str().unwrap().starts_with("dcp_");
    let cases: Vec<&Value> =
        found["cases"].as_array().unwrap().iter().filter(is_of_bucket).collect();
    assert_eq!(cases.len(), 6, "{found:#}");
    for case in cases {
        assert_eq!(case["verdicts"], value!([case["class"]]), "{case:#}");
    }
}

#[test]
fn a_sitting_goes_on_where_the_one_before_ended() {
    let dir = tempfile::tempdir().unwrap();
    let asked = ["--no-probe", "--resume", dir.path().to_str().unwrap()];
    let first = bench("222", &asked);
    let kept = dir.path().join("virtual.jsonl");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("\"verdicts\":[\"latency\"]"), "{text}");
    // What is kept is not tried again, and what is not is.
    std::fs::write(&kept, text.replace("[\"latency\"]", "[\"gc\"]")).unwrap();
    let second = bench("222,2", &asked);
    assert_eq!(second["cases"][0]["verdicts"], value!(["gc"]));
    assert_eq!(second["cases"].as_array().unwrap().len(), 2);
    assert_eq!(std::fs::read_to_string(&kept).unwrap().lines().count(), 2);
    assert_eq!(first["cases"][0]["verdicts"], value!(["latency"]));
}

#[test]
fn a_case_is_the_same_each_time_with_its_probes() {
    let one = bench("222", &[]);
    assert_eq!(one["cases"][0]["verdicts"][0], "latency");
    assert_eq!(one, bench("222", &[]));
}

#[test]
fn it_is_told_why_there_are_more_cases_than_seeds() {
    let told = said(&narrows(&["diagnose", "--bench", "--no-probe", "--seeds", "0"]));
    assert!(told.contains("2 cases: a recovery of each seed") && told.contains("2 of 2"), "{told}");
}

/// A link that takes a third, so that chunks come in bursts and pause far below the limit; and searches beside nothing.
#[test]
fn what_is_seen_of_cases_can_be_judged_again() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().to_str().unwrap();
    let seen = bench("10,24", &["--no-probe", "--record", to]);
    let again = json(&narrows(&["diagnose", "--bench", "--recordings", to, "--json"]));
    for found in [seen, again] {
        let cases = found["cases"].as_array().unwrap();
        let verdicts: Vec<&Value> = cases.iter().map(|case| &case["verdicts"]).collect();
        assert_eq!(verdicts, [&value!(["bandwidth"]), &value!([])], "{found:#}");
    }
}

#[test]
fn of_a_mistake_it_is_told_what_spoke_against_the_cause_that_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().to_str().unwrap();
    bench("10", &["--no-probe", "--record", to]);
    let label = "name = \"a disk\"\nclasses = [\"disk\"]\n";
    std::fs::write(dir.path().join("seed-10").join("case.toml"), label).unwrap();
    let told = said(&narrows(&["diagnose", "--bench", "--recordings", to]));
    assert!(
        told.contains("said: bandwidth: ") && told.contains("; why: disk ruled out: "),
        "{told}"
    );
}

/// A limit, and many small copies of which none has a rate.
#[test]
fn the_time_to_green_is_told_and_it_comes_within() {
    let asked = ["diagnose", "--bench", "--green", "--json", "--seeds", "0,20"];
    let found = json(&narrows(&asked));
    let said: Vec<&Value> =
        found["cases"].as_array().unwrap().iter().map(|case| &case["said"][0]).collect();
    assert_eq!(said.len(), 2, "{found:#}");
    for one in said {
        let figure = |value: &Value| value.as_f64().unwrap();
        let (soon, late) = (figure(&one["within_s"][0]), figure(&one["within_s"][1]));
        assert!((soon..=late).contains(&figure(&one["came_s"])), "{found:#}");
    }
}

/// A throttle before a slow disk, a throttle before full cores, and one slow core.
#[test]
fn a_hand_is_nearly_as_good_as_hindsight_and_nobody_suffers() {
    let asked =
        ["diagnose", "--bench", "--steer", "--on", "virtual", "--json", "--seeds", "4,60,190"];
    let found = json(&narrows(&asked));
    let cases = found["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3, "{found:#}");
    for case in cases {
        let figure = |name: &str| case[name].as_f64().unwrap();
        assert!(figure("gain") >= 0.98, "worse than left alone: {case:#}");
        assert!(figure("of_best") >= 0.9, "{case:#}");
        assert!(figure("suffered") < 0.01, "{case:#}");
        assert!(figure("sets") >= 1.0, "it did something: {case:#}");
    }
}
