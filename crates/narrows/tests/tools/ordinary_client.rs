//! OpenSearch's own client for Python against clusters of processes.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::common::cluster::Cluster;
use crate::common::{SECRET, json, narrows, said};

pub fn opensearch_py_works() {
    let open = Cluster::start(2);
    let guarded = Cluster::start_with(2, |command| {
        command.env("NARROWS_USER", "watcher").env("NARROWS_PASSWORD", SECRET)
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/opensearch_client.py");
    for cluster in [open, guarded] {
        let mut client = Command::new(testbed::tools::python());
        client.arg(script).arg(cluster.url());
        client.env("NARROWS_USER", "watcher").env("NARROWS_PASSWORD", SECRET);
        let output = client.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(output.stdout.ends_with(b"OK\n"), "{}", said(&output));
    }
}

/// A query and an aggregation by operation find the service times that the run itself tells.
pub fn opensearch_py_reads_a_stored_race() {
    let store = Cluster::start(1);
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let track = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tracks/shop/track.json");
    let short = ["run", track, "--generate", "--test-mode", "--on", "virtual", "--json"];
    let run = json(&narrows(&[&short[..], &["--runs", runs, "--store", store.url()]].concat()));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/stored_race.py");
    let mut client = Command::new(testbed::tools::python());
    client.args([script, store.url(), run["run"].as_str().unwrap()]);
    let read = json(&client.output().unwrap());
    let loads = run["loads"].as_array().unwrap();
    let of_load = |load: &Value| {
        let mean_ms = load["laps"][0]["service_time"]["mean_ms"].as_f64()?;
        Some((load["operation"].as_str()?.to_owned(), mean_ms))
    };
    let told: BTreeMap<String, f64> = loads.iter().filter_map(of_load).collect();
    assert!(told.contains_key("index-append") && told.contains_key("one-item"), "{told:?}");
    for way in ["query", "aggregation"] {
        let found: BTreeMap<String, f64> = serde_json::from_value(read[way].clone()).unwrap();
        assert_eq!(found, told, "by the {way}");
    }
    let named = loads.iter().map(|load| load["operation"].clone());
    assert_eq!(read["race"], named.collect::<Value>(), "in the order of the run");
}
