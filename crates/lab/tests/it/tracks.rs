//! Tracks: what is read of their files, and what comes of their tasks in virtual time, where every moment is exact.

use std::collections::BTreeMap;
use std::time::Duration;

use lab::load::{Check, Content};
use lab::track::{Action, Request, Step, Task, Track, TrackOptions};
use lab::{Error, Options, Place};
use record::{Line, LoadFigures, RunDir, Status};
use serde_json::{Value, json};

use crate::common;

/// An operation that every cluster answers.
const HEALTH: &str = r#"{ "operation-type": "raw-request", "path": "/_cluster/health" }"#;

fn embedded() -> TrackOptions {
    TrackOptions { scale: 1.0, embedded: true, ..TrackOptions::default() }
}

fn live() -> TrackOptions {
    TrackOptions { scale: 1.0, live: true, ..TrackOptions::default() }
}

/// Opens a track with these tasks, the first of which stands in line 6, and a file of three documents of which it says
/// `more`.
fn opened_with(more: &str, tasks: &str, options: &TrackOptions) -> Result<Track, Error> {
    let dir = tempfile::tempdir().unwrap();
    let set = format!(r#"{{ "source-file": "documents.json"{more} }}"#);
    let text = format!(
        "{{\n\"version\": 2,\n\"indices\": [ {{ \"name\": \"orders\" }} ],\n\
         \"corpora\": [ {{ \"name\": \"orders\", \"documents\": [ {set} ] }} ],\n\
         \"schedule\": [\n{tasks}\n] }}"
    );
    let file = dir.path().join("track.json");
    std::fs::write(&file, text).unwrap();
    std::fs::write(dir.path().join("documents.json"), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n").unwrap();
    lab::track::open(&file, options)
}

fn opened(tasks: &str, options: &TrackOptions) -> Result<Track, Error> {
    opened_with("", tasks, options)
}

#[track_caller]
fn says(opened: Result<Track, Error>, words: &[&str]) {
    let said = opened.unwrap_err().to_string();
    for word in words {
        assert!(said.contains(word), "\"{word}\" is not in: {said}");
    }
}

/// A task of this operation, which stands in line 7.
fn task(operation: &str) -> String {
    format!("{{ \"name\": \"x\", \"operation\":\n{operation} }}")
}

fn only_task(track: &Track) -> &Task {
    &track.elements[0].tasks[0]
}

/// The requests of the only task, those of streams too.
fn requests(track: &Track) -> Vec<&Request> {
    fn add<'a>(steps: &'a [Step], found: &mut Vec<&'a Request>) {
        for step in steps {
            match step {
                Step::Request(request) => found.push(request),
                Step::Sleep(_) => {}
                Step::Streams(streams) => streams.iter().for_each(|steps| add(steps, found)),
            }
        }
    }
    let mut found = Vec::new();
    match &only_task(track).action {
        Action::Do(steps) => add(steps, &mut found),
        Action::Send(operation) => panic!("{operation:?} is a load"),
    }
    found
}

/// What the only task sends as a load.
fn content(track: &Track) -> &Content {
    match &only_task(track).action {
        Action::Send(operation) => &operation.content,
        Action::Do(steps) => panic!("{steps:?} are no load"),
    }
}

#[test]
fn what_would_change_somebody_elses_cluster_is_refused_with_its_place() {
    let raw = |method: &str, path: &str| {
        let operation = "{ \"operation-type\": \"raw-request\",\n\"method\"";
        task(&format!("{operation}: \"{method}\", \"path\": \"{path}\" }}"))
    };
    for (method, path) in [
        ("PUT", "/_cluster/settings"),
        ("PUT", "/_ingest/pipeline/x"),
        ("POST", "/_aliases"),
        ("POST", "/_bulk"),
        ("POST", "/orders/_bulk"),
        ("GET", "/_msearch"),
        ("DELETE", "/orders%2C*"),
    ] {
        let tasks = raw(method, path);
        says(opened(&tasks, &live()), &["track.json:8:", path, "there already", "--skip-refused"]);
        // A cluster that is started for the track is all its own.
        let ours = TrackOptions { live: false, ..live() };
        opened(&tasks, &ours).unwrap();
    }
    let composite = r#"{ "operation-type": "composite", "requests": [ { "stream": [
        { "operation-type": "raw-request", "path": "/_msearch", "body": [ {}, { "size": 0 } ] } ] } ] }"#;
    says(opened(&task(composite), &live()), &["track.json:8:", "the body of _msearch"]);
    let aliases =
        r#"{ "operation-type": "create-index", "index": "a", "body": { "aliases": { "b": {} } } }"#;
    says(opened(&task(aliases), &live()), &["track.json:7:", "PUT /a", "aliases"]);
    let odd = r#"{ "operation-type": "delete-index", "index": "a%2C*" }"#;
    says(opened(&task(odd), &live()), &["track.json:7:", "/a%2C*"]);
    for operation in [
        r#"{ "operation-type": "put-settings", "body": { "persistent": { "a": 1 } } }"#,
        r#"{ "operation-type": "search", "body": {} }"#,
        r#"{ "operation-type": "force-merge" }"#,
        r#"{ "operation-type": "raw-request", "method": "PUT", "path": "/orders/_doc/1", "body": {} }"#,
        HEALTH,
    ] {
        opened(&task(operation), &live()).unwrap();
    }
}

#[test]
fn two_tasks_of_one_name_are_refused_at_the_second_with_the_place_of_the_first() {
    let tasks = r#"{ "operation": "refresh" },
        { "parallel": { "tasks": [
            { "clients": 2,
              "operation": "refresh" } ] } }"#;
    for options in [embedded(), TrackOptions { skip_refused: true, ..embedded() }] {
        let words = ["track.json:9:", "two tasks are called \"refresh\"", "track.json:6;"];
        says(opened(tasks, &options), &words);
    }
    let other = tasks.replace("{ \"clients\"", "{ \"name\": \"again\", \"clients\"");
    assert_eq!(opened(&other, &embedded()).unwrap().elements.len(), 2);
}

/// Opens a track of this text, beside which these files lie.
fn opened_beside(
    files: &[(&str, &str)],
    text: &str,
    options: &TrackOptions,
) -> Result<Track, Error> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("track.json");
    for (name, text) in files.iter().chain(&[("track.json", text)]) {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    lab::track::open(&file, options)
}

fn skipping() -> TrackOptions {
    TrackOptions { skip_refused: true, ..embedded() }
}

fn task_names(track: &Track) -> Vec<&str> {
    let tasks = track.elements.iter().flat_map(|element| &element.tasks);
    tasks.map(|task| task.name.as_str()).collect()
}

#[test]
fn python_that_belongs_to_no_task_is_said_and_what_belongs_to_one_is_refused() {
    let python = "def register(registry):\n    registry.register_track_processor(Downloader())\n\
                  \x20   registry.register_runner(\"refresh\", refresh)\n";
    let text = format!(
        "{{ \"schedule\": [ {{ \"operation\": \"refresh\" }}, {{ \"name\": \"x\", \"operation\": {HEALTH} }} ] }}"
    );
    says(
        opened_beside(&[("track.py", python)], &text, &embedded()),
        &["refresh", "Python", "track.py"],
    );
    let track = opened_beside(&[("track.py", python)], &text, &skipping()).unwrap();
    assert_eq!(task_names(&track), ["x"]);
    let said = track.changes.join(" ");
    assert!(said.contains("processor Downloader of track.py is Python and is not run"), "{said}");
}

#[test]
fn a_task_with_a_schedule_of_its_own_is_refused_alone_and_in_test_mode_too() {
    let tasks = format!(
        r#"{{ "name": "own", "operation": {HEALTH}, "schedule": "timestamps" }},
        {{ "name": "x", "operation": {HEALTH} }}"#
    );
    for options in [embedded(), TrackOptions { test_mode: true, ..embedded() }] {
        let words = ["track.json:6:", "own: the schedule \"timestamps\"", "--skip-refused"];
        says(opened(&tasks, &options), &words);
    }
    assert_eq!(task_names(&opened(&tasks, &skipping()).unwrap()), ["x"]);
}

#[test]
fn an_index_that_is_not_made_is_refused_with_what_is_about_it_and_the_others_are_made() {
    let shapes = "{ \"mappings\": { \"properties\": {\n\"at\": { \"type\": \"geo_shape\" } } } }";
    let text = r#"{
        "indices": [ { "name": "shapes", "body": "shapes.json" }, { "name": "orders" } ],
        "corpora": [ { "name": "all", "documents": [
            { "source-file": "documents.json", "target-index": "shapes" },
            { "source-file": "documents.json", "target-index": "orders" } ] } ],
        "schedule": [
            { "operation": "create-index" },
            { "name": "health", "operation": { "operation-type": "cluster-health", "index": "shapes",
                "request-params": { "wait_for_status": "green" } } },
            { "name": "fill", "operation": { "operation-type": "bulk", "bulk-size": 1 } },
            { "name": "at", "operation": { "operation-type": "search", "index": "shapes", "body": {} } },
            { "name": "all", "operation": { "operation-type": "search", "index": "orders", "body": {} } },
            { "name": "make", "operation": { "operation-type": "create-index",
                "settings": { "index.number_of_shards": "many" } } } ] }"#;
    let open = |options: &TrackOptions| {
        let files = [("shapes.json", shapes), ("documents.json", "{\"n\":1}\n")];
        opened_beside(&files, text, options)
    };
    says(open(&embedded()), &["shapes.json:2:", "index shapes: ", "geo_shape", "--skip-refused"]);
    let track = open(&skipping()).unwrap();
    assert_eq!(task_names(&track), ["create-index", "fill", "all"]);
    let paths: Vec<&str> = requests(&track).iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/orders"]);
    let Action::Send(fill) = &track.elements[1].tasks[0].action else { panic!("{track:?}") };
    let Content::Corpora(parts) = &fill.content else { panic!("{track:?}") };
    assert_eq!(parts.iter().map(|part| part.index.as_str()).collect::<Vec<_>>(), ["orders"]);
    let said = track.changes.join(" ");
    for words in ["shapes is not made", "health is left out", "at is left out", "make is left out"]
    {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn members_of_a_task_within_its_bulk_operation_change_nothing_as_in_rally_and_that_is_said() {
    let bulk =
        r#"{ "operation-type": "bulk", "bulk-size": 1, "clients": 8, "warmup-time-period": 10 }"#;
    let track = opened(&task(bulk), &embedded()).unwrap();
    let found = only_task(&track);
    let plain =
        opened(&task(r#"{ "operation-type": "bulk", "bulk-size": 1 }"#), &embedded()).unwrap();
    assert_eq!((found.clients, &found.warm_up), (1, &only_task(&plain).warm_up));
    let said = track.changes.join(" ");
    for name in ["\"clients\" within", "\"warmup-time-period\" within"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn operations_that_the_field_has_and_that_are_not_run_are_refused_with_their_reason() {
    for (kind, why) in [
        ("wait-for-transform", "transforms are a plugin"),
        ("downsample", "Elasticsearch from 8.5"),
        ("warmup-knn-indices", "vectors are not searched"),
    ] {
        says(
            opened(&task(&format!(r#"{{ "operation-type": "{kind}" }}"#)), &embedded()),
            &["track.json:7:", kind, why, "--skip-refused"],
        );
    }
}

#[test]
fn documents_that_are_made_of_a_mapping_hold_what_searches_look_for() {
    let mapping = r#"{ "mappings": { "properties": { "k": { "type": "keyword" } } } }"#;
    let text = r#"{
        "indices": [ { "name": "orders", "body": "orders.json" } ],
        "corpora": [ { "name": "orders", "documents": [
            { "source-file": "gone.json", "document-count": 9 } ] } ],
        "schedule": [
            { "name": "fill", "operation": { "operation-type": "bulk", "bulk-size": 1 } },
            { "name": "x", "operation": { "operation-type": "search",
                "body": { "query": { "term": { "k": "from a search" } } } } } ] }"#;
    let options = TrackOptions { generate: true, ..embedded() };
    let track = opened_beside(&[("orders.json", mapping)], text, &options).unwrap();
    let Action::Send(fill) = &track.elements[0].tasks[0].action else { panic!("{track:?}") };
    let Content::Corpora(parts) = &fill.content else { panic!("{track:?}") };
    assert!(format!("{:?}", parts[0].source).contains("from a search"), "{parts:?}");
}

#[test]
fn what_the_embedded_engine_has_no_api_or_parameter_for_is_refused_before_anything_starts() {
    let raw = |path: &str| format!(r#"{{ "operation-type": "raw-request", "path": "{path}" }}"#);
    for path in ["/_ml/info", "/_no_such", "/orders/_count?wait_for_statu=green"] {
        let operation = task(&raw(path));
        let words = ["track.json:7:", "does not answer GET", path, "--skip-refused"];
        says(opened(&operation, &embedded()), &words);
        let elsewhere = TrackOptions { embedded: false, ..embedded() };
        opened(&operation, &elsewhere).unwrap();
    }
    opened(&task(&raw("/_no_such").replace(" }", ", \"ignore\": 400 }")), &embedded()).unwrap();
    let stats = r#"{ "operation-type": "index-stats", "request-params": { "no_such": 1 } }"#;
    says(opened(&task(stats), &embedded()), &["track.json:7:", "[no_such]"]);
    let search = r#"{ "operation-type": "raw-request", "path": "/orders/_search",
        "body": { "query": { "no_such": {} } } }"#;
    says(opened(&task(search), &embedded()), &["track.json:8:", "no_such"]);
}

#[test]
fn requests_of_a_composite_are_checked_and_sent_as_they_are() {
    let composite = |more: &str, requests: &str| {
        let kind = "\"operation-type\": \"composite\"";
        task(&format!("{{ {kind}{more}, \"requests\": [ {{ \"stream\": [\n{requests} ] }} ] }}"))
    };
    let three = r#"{ "operation-type": "search", "body": { "size": 0 } },
        { "operation-type": "raw-request", "path": "/_msearch", "body": [ {}, { "size": 0 } ] },
        { "operation-type": "raw-request", "method": "DELETE", "path": "/a", "ignore": [ 404, 409 ] }"#;
    let track = opened(&composite(", \"max-connections\": 2", three), &embedded()).unwrap();
    assert_eq!(only_task(&track).connections, Some(2));
    let found = requests(&track);
    assert_eq!((found[0].check, found[0].is_counted), (Check::Search, false), "one of them writes");
    assert_eq!(found[0].body, Some(json!({ "size": 0 })));
    assert_eq!(found[1].body, Some(Value::from("{}\n{\"size\":0}\n")));
    assert_eq!(found[1].check, Check::Searches);
    let ignored = Check::StatusOr([404, 409, 0, 0]);
    assert_eq!((found[2].check, found[2].is_counted), (ignored, false));
    for (request, words) in [
        (r#""operation-type": "search", "pages": 3, "body": {}"#, ["pages", "sends no scrolls"]),
        (r#""operation-type": "raw-request", "method": "PATCH", "path": "/a""#, ["PATCH", "GET"]),
    ] {
        let said = opened(&composite("", &format!("{{ {request} }}")), &embedded());
        says(said, &[&words[..], &["track.json:8:"]].concat());
    }
}

#[test]
fn what_a_task_says_of_its_requests_is_obeyed() {
    let raw = r#"{ "operation-type": "raw-request", "path": "/a", "ignore": 404 }"#;
    let track = opened(&task(raw), &embedded()).unwrap();
    let Content::Pattern { check, .. } = content(&track) else { panic!("{track:?}") };
    assert_eq!(*check, Check::StatusOr([404, 0, 0, 0]));
    let searched = opened(&task(&raw.replace("/a", "/a/_search")), &embedded()).unwrap();
    let Content::Pattern { check, .. } = content(&searched) else { panic!("{searched:?}") };
    assert_eq!(*check, Check::SearchOr([404, 0, 0, 0]));
    let many = opened(&task(&raw.replace("/a", "/a/_msearch")), &embedded()).unwrap();
    let Content::Pattern { check, .. } = content(&many) else { panic!("{many:?}") };
    assert_eq!(*check, Check::SearchesOr([404, 0, 0, 0]));
    for ignored in ["\"never\"", "[ 404, 7 ]", "[ 400, 401, 402, 403, 404 ]"] {
        let raw = raw.replace("404", ignored);
        says(opened(&task(&raw), &embedded()), &["track.json:7:", "ignore has statuses"]);
    }

    let search = r#"{ "operation-type": "search", "results-per-page": 7, "body": { "size": 1 } }"#;
    let track = opened(&task(search), &embedded()).unwrap();
    let Content::Pattern { bodies, .. } = content(&track) else { panic!("{track:?}") };
    assert_eq!(serde_json::from_str::<Value>(&bodies[0]).unwrap(), json!({ "size": 7 }));
    let scroll = search.replace("\"results-per-page\"", "\"pages\": 2, \"results-per-page\"");
    let track = opened(&task(&scroll), &embedded()).unwrap();
    let Content::Scroll { body, .. } = content(&track) else { panic!("{track:?}") };
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({ "size": 7, "sort": ["_doc"] }));

    let merge = |mode: &str, options: &TrackOptions| {
        let merge = r#"{ "operation-type": "force-merge", "poll-period": 5, "mode""#;
        opened(&task(&format!("{merge}: \"{mode}\" }}")), options)
    };
    let polled = merge("polling", &live()).unwrap();
    assert_eq!(requests(&polled)[0].polled, Some(Duration::from_secs(5)));
    assert!(merge("polling", &embedded()).is_ok(), "its own answer is waited for");
    assert_eq!(requests(&merge("blocking", &embedded()).unwrap())[0].polled, None);
    says(merge("pulling", &embedded()), &["track.json:7:", "did you mean \"polling\""]);
}

#[test]
fn a_share_of_what_is_not_counted_or_more_than_all_of_a_file_is_refused() {
    let half = r#"{ "operation-type": "bulk", "bulk-size": 1, "ingest-percentage": 50 }"#;
    let words = ["track.json:7:", "documents.json has no document-count"];
    says(opened(&task(half), &embedded()), &words);
    let counted = |scale: f64| {
        let options = TrackOptions { scale, ..embedded() };
        opened_with(", \"document-count\": 3", &task(half), &options)
    };
    let track = counted(1.0).unwrap();
    let Content::Corpora(parts) = content(&track) else { panic!("{track:?}") };
    assert_eq!(parts[0].documents, 0..2);
    says(counted(5.0), &["documents.json is sent once", "--scale", "found 5"]);
    for percentage in ["0", "101"] {
        let words = ["track.json:7:", "ingest-percentage is a number above 0 and up to 100"];
        says(opened(&task(&half.replace("50", percentage)), &embedded()), &words);
    }

    let dir = tempfile::tempdir().unwrap();
    for scale in [0.0, -1.0, 1e7] {
        let options = Options { scale, ..Options::new(dir.path()) };
        let track = opened(&task(HEALTH), &embedded()).unwrap();
        let refused = lab::execute_track(track, 1, &Place::VIRTUAL, &options);
        assert!(matches!(refused, Err(Error::Scale { .. })), "{scale}");
    }
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is begun");
}

/// What came of a track with these tasks in virtual time, and its record.
fn ran(tasks: &str) -> (Result<(), Error>, RunDir) {
    let track = opened(tasks, &embedded()).unwrap();
    common::on_a_large_stack(move || {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new(dir.path());
        let executed = lab::execute_track(track, 1, &Place::VIRTUAL, &options).unwrap();
        (executed.ended.map(|_| ()), executed.run)
    })
}

#[track_caller]
fn complete(tasks: &str) -> RunDir {
    let (ended, run) = ran(tasks);
    ended.unwrap();
    run
}

fn load<'a>(run: &'a RunDir, name: &str) -> &'a LoadFigures {
    run.rows[0].loads.iter().find(|load| load.operation == name).unwrap()
}

fn names(run: &RunDir) -> Vec<&str> {
    run.rows[0].loads.iter().map(|load| load.operation.as_str()).collect()
}

/// The last moment that the record knows.
fn last_ms(run: &RunDir) -> f64 {
    run.lines.iter().map(Line::t_ms).fold(0.0, f64::max)
}

#[test]
fn what_was_measured_before_a_task_failed_is_kept() {
    let (ended, run) = ran(&format!(
        r#"{{ "operation": "create-index" }},
        {{ "name": "health", "operation": {HEALTH}, "iterations": 5 }},
        {{ "name": "never", "operation": {{ "operation-type": "index-stats",
            "condition": {{ "path": "_all.primaries.docs.count", "expected-value": 7 }} }} }}"#
    ));
    let said = ended.unwrap_err().to_string();
    assert!(said.contains("never: GET /_all/_stats"), "{said}");
    assert_eq!((run.manifest.status, run.rows.len()), (Status::Failed, 1));
    assert_eq!(names(&run), ["create-index", "health"]);
    assert_eq!(load(&run, "health").requests, 5);
}

#[test]
fn what_only_reads_counts_as_an_error_where_it_fails() {
    let composite = |more: &str| {
        let request = r#""operation-type": "raw-request", "path": "/nothing/_count""#;
        let requests = format!("[ {{ \"stream\": [ {{ {request}{more} }} ] }} ]");
        let operation = r#"{ "operation-type": "composite", "requests""#;
        format!(
            "{{ \"name\": \"x\", \"iterations\": 3, \"operation\": {operation}: {requests} }} }}"
        )
    };
    let run = complete(&composite(""));
    let missing = "404 index_not_found_exception".to_owned();
    assert_eq!(load(&run, "x").errors, BTreeMap::from([(missing, 3)]));
    let run = complete(&composite(", \"ignore\": [ 404 ]"));
    assert_eq!((load(&run, "x").requests, load(&run, "x").failed()), (3, 0));
}

#[test]
fn what_writes_ends_the_run_with_what_is_read_beside_it() {
    let (ended, _) = ran(
        r#"{ "name": "x", "operation": { "operation-type": "composite", "requests": [
            { "operation-type": "raw-request", "path": "/nothing/_count" },
            { "operation-type": "raw-request", "method": "PUT", "path": "/orders/_doc/1", "body": { "n": 1 } } ] } }"#,
    );
    let said = ended.unwrap_err().to_string();
    assert!(said.contains("x: GET /nothing/_count"), "{said}");
}

#[test]
fn statistics_are_asked_for_again_until_there_are_some() {
    let run = complete(
        r#"{ "parallel": { "tasks": [
            { "name": "x", "operation": { "operation-type": "index-stats", "index": "orders",
                "retry-until-success": true } },
            { "name": "late", "operation": { "operation-type": "composite", "requests": [
                { "operation-type": "sleep", "duration": 5 },
                { "operation-type": "raw-request", "method": "PUT", "path": "/orders", "body": {} } ] } } ] } }"#,
    );
    let found = load(&run, "x");
    assert_eq!((found.requests, found.failed()), (1, 0));
    assert!(found.service_time.unwrap().p50_ms > 4900.0, "{found:?}");
}

#[test]
fn a_health_that_cannot_come_ends_the_run_at_once_and_says_what_is_lacking() {
    for (params, more) in
        [("", ", \"retry-until-success\": true"), (", \"timeout\": \"100ms\"", "")]
    {
        let params = format!("{{ \"wait_for_status\": \"green\"{params} }}");
        let (ended, run) = ran(&format!(
            r#"{{ "operation": "create-index" }},
            {{ "name": "health", "operation": {{ "operation-type": "cluster-health",
                "request-params": {params}{more} }} }}"#
        ));
        let said = ended.unwrap_err().to_string();
        for words in ["health: GET /_cluster/health", "yellow", "unassigned copies: 1", "--nodes 2"]
        {
            assert!(said.contains(words), "{said}");
        }
        assert!(last_ms(&run) < 20_000.0, "{}", last_ms(&run));
    }
}

/// What is deleted at the end is the index, not its alias.
#[test]
fn a_track_may_write_to_an_alias() {
    let run = complete(
        r#"{ "operation": { "operation-type": "create-index", "index": "orders-000001",
            "body": { "aliases": { "orders": {} } } } },
        { "name": "write", "operation": { "operation-type": "raw-request", "method": "PUT", "path": "/orders/_doc/1",
            "body": { "n": 1 } } }"#,
    );
    assert_eq!(load(&run, "write").errors, BTreeMap::new());
}

#[test]
fn what_an_operation_lacks_or_asks_of_pipelines_is_said_before_anything_starts() {
    for (operation, word) in [
        (r#"{ "operation-type": "sleep" }"#, "sleep needs \"duration\""),
        (r#"{ "operation-type": "put-settings" }"#, "put-settings needs \"body\""),
        (
            r#"{ "operation-type": "bulk", "bulk-size": 1, "pipeline": "p" }"#,
            "the embedded engine has no pipelines",
        ),
    ] {
        says(opened(&task(operation), &embedded()), &["track.json:7:", word]);
    }
}

#[test]
fn what_chooses_no_task_and_no_challenge_is_said() {
    let chosen = |include: &str| {
        let include = include.split(',').map(str::to_owned).collect();
        opened(&task(HEALTH), &TrackOptions { include, ..embedded() })
    };
    let said = |include: &str| chosen(include).unwrap().changes.join(" ");
    assert!(!said("x,type:raw-request").contains("no task is"));
    assert!(said("x,type:search").contains("Tasks that are \"type:search\""));
    says(chosen("type:search"), &["leaves no task"]);
    let of = |challenge: &str| TrackOptions { challenge: Some(challenge.to_owned()), ..embedded() };
    assert_eq!(opened(&task(HEALTH), &of("default")).unwrap().challenge, "default");
    says(opened(&task(HEALTH), &of("nothing")), &["no challenge \"nothing\"", "default"]);
}

#[test]
fn lines_of_a_composite_arrive_as_lines() {
    complete(
        r#"{ "operation": "create-index" },
        { "name": "x", "operation": { "operation-type": "composite", "requests": [ { "stream": [
            { "operation-type": "raw-request", "method": "POST", "path": "/orders/_bulk",
              "body": [ { "index": {} }, { "n": 1 } ] } ] } ] } },
        { "operation": "refresh" },
        { "name": "is-there", "operation": { "operation-type": "index-stats", "index": "orders",
            "condition": { "path": "_all.primaries.docs.count", "expected-value": 1 } } }"#,
    );
}

#[test]
fn no_more_requests_of_a_composite_go_on_than_it_lets() {
    let nap = r#"{ "stream": [ { "operation-type": "sleep", "duration": 1 } ] }"#;
    let took_ms = |more: &str| {
        let kind = "\"operation-type\": \"composite\"";
        let run =
            complete(&task(&format!("{{ {kind}{more}, \"requests\": [ {nap}, {nap}, {nap} ] }}")));
        load(&run, "x").service_time.unwrap().p50_ms
    };
    assert!((took_ms("") / 1000.0 - 1.0).abs() < 0.01);
    assert!((took_ms(", \"max-connections\": 2") / 2000.0 - 1.0).abs() < 0.01);
}

#[test]
fn clients_that_go_through_steps_begin_one_after_another() {
    let run = complete(
        r#"{ "name": "x", "operation": { "operation-type": "sleep", "duration": 7 }, "clients": 2,
            "ramp-up-time-period": 10, "warmup-time-period": 10, "time-period": 8 }"#,
    );
    assert_eq!(
        load(&run, "x").requests,
        3,
        "at 14 s of the first, at 12 s and 19 s of one that comes 5 s later"
    );
}

#[test]
fn a_ramp_up_is_a_part_of_a_warm_up_as_in_rally() {
    let of = |times: &str| format!(r#"{{ "name": "x", "operation": {HEALTH}, {times} }}"#);
    let together = |of_all: &str, task: &str| {
        format!(r#"{{ "parallel": {{ {of_all} "tasks": [ {task} ] }} }}"#)
    };
    let ten = "\"ramp-up-time-period\": 10";
    let warm =
        |seconds: u32| of(&format!("{ten}, \"time-period\": 9, \"warmup-time-period\": {seconds}"));
    for (tasks, said) in [
        (of(&format!("{ten}, \"time-period\": 9")), "of 10 seconds but no warmup-time-period"),
        (warm(9), "of 9 seconds, which must be greater than or equal to"),
        (of(&format!("{ten}, \"iterations\": 9")), "mixing time periods and iterations"),
        (together("", &warm(10)), "only allowed on the 'parallel' element"),
        (together("\"ramp-up-time-period\": 5,", &warm(10)), "a different ramp-up-time-period"),
    ] {
        for test_mode in [false, true] {
            let options = TrackOptions { test_mode, ..embedded() };
            says(opened(&tasks, &options), &["track.json:6", "ramp-up-time-period", said]);
        }
    }
    opened(&warm(10), &embedded()).unwrap();
    opened(&together(&format!("{ten},"), &warm(10)), &embedded()).unwrap();
}

#[test]
fn loads_that_go_on_together_end_each_at_its_own_time() {
    let run = complete(&format!(
        r#"{{ "parallel": {{ "tasks": [
            {{ "name": "long", "operation": {HEALTH}, "iterations": 50, "target-throughput": 10 }},
            {{ "name": "short", "operation": {HEALTH}, "iterations": 10, "target-throughput": 10 }}
        ] }} }}"#
    ));
    let ends = run.lines.iter().filter_map(|line| match line {
        Line::Phase { t_ms, phase, .. } if phase.name == "load" && !phase.begins => Some(*t_ms),
        _ => None,
    });
    let ends: Vec<f64> = ends.collect();
    assert_eq!((names(&run), ends.len()), (vec!["short", "long"], 2), "in the order of their ends");
    assert!((ends[1] - ends[0] - 4000.0).abs() < 200.0, "{ends:?}");
}

#[test]
fn nobody_waits_for_a_client_whose_next_start_is_an_hour_away() {
    // One client is refused at once, while the other waits.
    let (ended, run) =
        ran(r#"{ "name": "x", "operation": { "operation-type": "delete-index", "index": "nothing",
            "only-if-exists": false }, "clients": 2, "iterations": 2, "target-interval": 3600 }"#);
    assert!(ended.is_err() && last_ms(&run) < 60_000.0, "{ended:?} after {} ms", last_ms(&run));
    let (ended, run) = ran(r#"{ "parallel": { "tasks": [
            { "name": "nap", "operation": { "operation-type": "sleep", "duration": 3600 } },
            { "name": "x", "operation": { "operation-type": "delete-index", "index": "nothing",
                "only-if-exists": false } } ] } }"#);
    assert!(ended.is_err() && last_ms(&run) < 60_000.0, "{ended:?} after {} ms", last_ms(&run));
    let run = complete(&format!(
        r#"{{ "parallel": {{ "completed-by": "short", "tasks": [
            {{ "name": "rare", "operation": {{ "operation-type": "sleep", "duration": 0.1 }}, "iterations": 3,
               "target-interval": 3600 }},
            {{ "name": "short", "operation": {HEALTH}, "iterations": 50, "target-throughput": 10 }}
        ] }} }}"#
    ));
    assert_eq!((load(&run, "rare").requests, load(&run, "short").requests), (1, 50));
    assert!(last_ms(&run) < 60_000.0, "{}", last_ms(&run));
}
