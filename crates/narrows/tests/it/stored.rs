//! A run in a metrics store: in the shapes that Rally writes, once however often it is stored, and beside its record.

use serde_json::Value;

use crate::common::cluster::Cluster;
use crate::common::{command, done, failed, json, narrows, only_run, refused, spawned};

/// A run in virtual time that is soon over.
const SMALL: [&str; 8] =
    ["run", "remote-recovery", "--on", "virtual", "--scale", "0.05", "--variant", "1 MB x 5"];

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
    let more = ["--json", "--runs", runs, "--store", cluster.url()];
    let ended = narrows(&[&SMALL[..], &more].concat());
    let run = json(&ended);
    let id = run["run"].as_str().unwrap();
    let stored = String::from_utf8_lossy(&ended.stderr);
    assert!(stored.contains(" documents in rally-races-*"), "it says what it stored: {stored}");
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

    // This store has no nested fields: it has the template of races without them.
    for name in ["rally-metrics", "rally-results", "rally-races"] {
        let found = cluster.ask("GET", &format!("/_index_template/{name}"), "");
        assert_eq!(found["index_templates"][0]["name"], name, "{found}");
    }
    // As `esrally list races` and `esrally compare` ask.
    let listed = r#"{"query": {"bool": {"filter": [{"term": {"environment": "narrows"}},
        {"range": {"race-timestamp": {"gte": "20200101", "lte": "20991231", "format": "basic_date"}}}]}},
        "sort": [{"race-timestamp": {"order": "desc"}}]}"#;
    let one = format!(
        "{{\"query\": {{\"bool\": {{\"filter\": [{{\"term\": {{\"race-id\": \"{id}\"}}}}]}}}}}}"
    );
    for query in [listed, one.as_str()] {
        let found = cluster.ask("POST", "/rally-races-*/_search", query);
        assert_eq!(found["hits"]["hits"][0]["_source"]["race-id"], id, "{found}");
    }
    let since = r#"{"query": {"range": {"race-timestamp": {"gte": "20200101T000000Z"}}}}"#;
    let dated = cluster.ask("POST", "/rally-results-*/_count", since);
    assert_eq!(dated["count"], 2, "{dated}");

    done(&narrows(&["store", "last", "--to", cluster.url(), "--runs", runs]));
    let after = [count("rally-races-*"), count("rally-results-*"), count("rally-metrics-*")];
    assert_eq!(after, before, "what is stored twice is there once");
    // What a parameter of a track is in one race it need not be in the next.
    for (id, rate) in ["500", "0.5", "true", "\"none\""].into_iter().enumerate() {
        let race = format!("{{\"track-params\":{{\"target_throughput\":{rate}}}}}");
        let written = cluster.ask("PUT", &format!("/rally-races-2020-01/_doc/{id}?refresh"), &race);
        assert_eq!(written["result"], "created", "{written}");
    }
    let rate = r#"{"query": {"term": {"track-params.target_throughput": "500"}}}"#;
    assert_eq!(cluster.ask("POST", "/rally-races-2020-01/_count", rate)["count"], 1);
    refused(&["store", "last", "--to", "ftp://x", "--runs", runs], &["http://"]);
}

#[test]
fn a_store_that_is_away_is_asked_again_and_the_record_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let port = testbed::free_port().to_string();
    let url = format!("http://127.0.0.1:{port}");
    let args = [&SMALL[..], &["--runs", runs, "--store", &url]].concat();
    let mut run = spawned(&mut command(&args));
    let (mut told, mut before) = (run.said(), Vec::new());
    let asks_again = told.any(|line| {
        let asks = line.contains("the store does not take the record");
        before.push(line);
        asks
    });
    assert!(asks_again, "it ended, and did not ask again");
    let away = "narrows: the store cannot be written to now (http://127.0.0.1";
    let first = before.iter().take_while(|line| !line.starts_with("start"));
    let said = first.filter(|line| line.starts_with(away)).count();
    assert_eq!(said, 1, "it is told before the run begins: {before:?}");
    let record = only_run(dir.path());
    assert!(record.join("manifest.json").exists(), "the record is there before the store is");
    let cluster = Cluster::start_with(1, |command| command.args(["--port", &port]));
    let rest: Vec<String> = told.collect();
    assert_eq!(run.wait().unwrap().code(), Some(0), "{rest:?}");
    let race = &found(&cluster, "rally-races-*")["hits"]["hits"][0];
    assert_eq!(race["_id"], record.file_name().unwrap().to_str().unwrap(), "{race}");
}

#[test]
fn runs_are_compared_that_only_the_store_has() {
    let cluster = Cluster::start(1);
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let run = |rtt: &str| {
        let more =
            ["--laps", "4", "--rtt", rtt, "--json", "--runs", runs, "--store", cluster.url()];
        let run = json(&narrows(&[&SMALL[..], &more].concat()));
        run["run"].as_str().unwrap().to_owned()
    };
    let (a, b) = (run("100ms"), run("120ms"));
    cluster.ask("POST", "/rally-races-*/_refresh", "");
    let compare = |more: &[&str]| {
        json(&narrows(&[&["compare", &a, &b, "--format", "json", "--runs", runs], more].concat()))
    };
    let here = compare(&[]);
    std::fs::remove_dir_all(dir.path().join(&a)).unwrap();
    let one_here = compare(&["--store", cluster.url()]);
    std::fs::remove_dir_all(dir.path().join(&b)).unwrap();
    let none_here = compare(&["--store", cluster.url()]);
    assert_eq!(here["figures"], none_here["figures"], "lap by lap");
    assert_eq!(one_here["figures"], none_here["figures"]);
    let change = &here["figures"][0]["differences"][0];
    assert!(change["p"].is_null() && change["change_percent"].as_f64().unwrap() > 5.0, "{here}");
    // A race of Rally is one lap.
    let race = |id: &str, ms: f64| {
        let times = format!("{{\"50_0\":{ms},\"99_0\":{ms},\"mean\":{ms}}}");
        let task = format!(
            "{{\"task\":\"term\",\"throughput\":{{\"median\":10}},\"latency\":{times},\"service_time\":{times},\"error_rate\":0}}"
        );
        let race = format!(
            "{{\"race-id\":\"{id}\",\"track\":\"pmc\",\"results\":{{\"op_metrics\":[{task}]}}}}"
        );
        cluster.ask("PUT", &format!("/rally-races-2026-11/_doc/{id}?refresh"), &race);
    };
    race("6ebc6e53-ee20", 4.0);
    race("7ebc6e53-ee20", 6.0);
    let at =
        ["compare", "6ebc6e53-ee20", "7ebc6e53-ee20", "--runs", runs, "--store", cluster.url()];
    failed(
        &narrows(&[&at[..], &["--fail-over", "5%"]].concat()),
        1,
        &["50th percentile latency of default, term is worse by 50.0 %"],
    );
    refused(
        &["compare", &a, "none", "--runs", runs, "--store", cluster.url()],
        &["nor in the store", "none"],
    );
    refused(
        &["compare", &a, "a b", "--runs", runs, "--store", cluster.url()],
        &["no id of a race"],
    );
}
