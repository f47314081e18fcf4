//! A run in a metrics store: in the shapes that Rally writes, once however often it is stored, and beside its record.

use serde_json::Value;

use crate::common::cluster::Cluster;
use crate::common::{json, narrows, refused, said};

fn found(cluster: &Cluster, index: &str) -> Value {
    let refresh = cluster.ask("POST", &format!("/{index}/_refresh"), "");
    assert!(refresh.is_object(), "{refresh}");
    cluster.ask("POST", &format!("/{index}/_search"), "{\"size\":100}")
}

#[test]
fn a_run_is_stored_as_rally_stores_its_races() {
    let cluster = Cluster::start(1);
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let plan = ["run", "remote-recovery", "--on", "virtual", "--variant", "1 MB x 5", "--json"];
    let run = json(&narrows(&[&plan[..], &["--runs", runs, "--store", cluster.url()]].concat()));
    let id = run["run"].as_str().unwrap();
    let count = |index: &str| found(&cluster, index)["hits"]["total"]["value"].as_u64().unwrap();
    let before = [count("rally-races-*"), count("rally-results-*"), count("rally-metrics-*")];
    assert_eq!(before[..2], [1, 2], "one race, and the time and the rate of its variant");
    assert!(before[2] > 10, "samples of the recovery: {before:?}");
    let race = found(&cluster, "rally-races-*")["hits"]["hits"][0]["_source"].clone();
    assert_eq!((&race["race-id"], &race["track"]), (&id.into(), &"remote-recovery".into()));
    assert_eq!(race["race-timestamp"].as_str().unwrap().len(), "20261125T010107Z".len());
    let results = found(&cluster, "rally-results-*");
    let hits = results["hits"]["hits"].as_array().unwrap();
    let of = |name: &str| {
        let hit = hits.iter().find(|hit| hit["_source"]["name"] == name).unwrap();
        hit["_source"]["value"]["single"].as_f64().unwrap()
    };
    assert_eq!(of("recovery_time"), run["rows"][0]["seconds"].as_f64().unwrap());
    assert_eq!(of("recovery_rate"), run["rows"][0]["bytes_per_s"].as_f64().unwrap());

    let again = narrows(&["store", "last", "--to", cluster.url(), "--runs", runs]);
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    let after = [count("rally-races-*"), count("rally-results-*"), count("rally-metrics-*")];
    assert_eq!(after, before, "what is stored twice is there once");
    refused(&["store", "last", "--to", "ftp://x", "--runs", runs], &["http://"]);
}
