//! What is read of a track's files, and what is refused of them before anything starts.

use std::time::Duration;

use lab::load::{Arrival, Check, Content};
use lab::track::{Action, Request, Step, Task, Track, TrackOptions};
use serde_json::{Value, json};

use super::{HEALTH, embedded, opened, opened_beside, opened_with, says, task};

fn live() -> TrackOptions {
    TrackOptions { scale: 1.0, live: true, ..TrackOptions::default() }
}

fn only_task(track: &Track) -> &Task {
    &track.elements[0].tasks[0]
}

/// The requests of the only task, those of streams too.
fn requests(track: &Track) -> Vec<&Request> {
    match &only_task(track).action {
        Action::Do(steps) => steps.iter().flat_map(Step::requests).collect(),
        Action::Send(operation) => panic!("{operation:?} is a load"),
    }
}

/// What a task sends as a load.
fn content(task: &Task) -> &Content {
    match &task.action {
        Action::Send(operation) => &operation.content,
        Action::Do(steps) => panic!("{steps:?} are no load"),
    }
}

#[track_caller]
fn has_changed(track: &Track, words: &[&str]) {
    let said = track.changes.join(" ");
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn what_would_change_somebody_elses_cluster_is_refused_with_its_place() {
    let raw = |method: &str, path: &str| {
        let operation = "{ \"operation-type\": \"raw-request\",\n\"method\"";
        task(&format!("{operation}: \"{method}\", \"path\": \"{path}\" }}"))
    };
    for (method, path) in
        [("PUT", "/_cluster/settings"), ("POST", "/_bulk"), ("DELETE", "/orders%2C*")]
    {
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
fn a_track_without_a_challenge_is_refused_with_its_file() {
    let named = TrackOptions { challenge: Some("mine".to_owned()), ..embedded() };
    for options in [embedded(), named] {
        let says = |text: &str, word: &str| {
            says(opened_beside(&[], text, &options), &["track.json:1:", word])
        };
        says("{}", "the track has no challenges");
        says("[]", "a track is an object, found ");
        says(r#"{ "challanges": [] }"#, "\"challenges\"");
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
    let beside = [("track.py", "from .runners import register\n"), ("runners.py", python)];
    says(opened_beside(&beside, &text, &embedded()), &["refresh", "Python", "track.py"]);
    let track = opened_beside(&[("track.py", python)], &text, &skipping()).unwrap();
    assert_eq!(task_names(&track), ["x"]);
    has_changed(&track, &["processor Downloader of track.py is Python and is not run"]);
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
fn a_member_that_is_not_known_refuses_its_task_alone() {
    let tasks = format!(
        r#"{{ "name": "own", "operation": {HEALTH}, "index": "a" }},
        {{ "name": "odd", "operation": {{ "operation-type": "refresh", "indx": "a" }} }},
        {{ "name": "x", "operation": {HEALTH} }}"#
    );
    let own = ["track.json:6:", "own: a task has no \"index\". What it asks for"];
    let odd = ["track.json:7:", "odd: refresh has no \"indx\"", "did you mean \"index\"?"];
    says(opened(&tasks, &embedded()), &[&own[..], &odd, &["--skip-refused"]].concat());
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
    let words = ["shapes.json:2:", "index shapes: ", "geo_shape"];
    says(open(&embedded()), &[&words[..], &["--skip-refused"]].concat());
    let track = open(&skipping()).unwrap();
    assert_eq!(task_names(&track), ["create-index", "fill", "all"]);
    let paths: Vec<&str> = requests(&track).iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/orders"]);
    let Content::Corpora(parts) = content(&track.elements[1].tasks[0]) else { panic!("{track:?}") };
    assert_eq!(parts.iter().map(|part| part.index.as_str()).collect::<Vec<_>>(), ["orders"]);
    let left_out = ["health and at are left out", "make is left out"];
    has_changed(&track, &[&left_out[..], &["shapes is not made"]].concat());
}

#[test]
fn fields_of_an_index_that_are_refused_are_told_all_at_once() {
    let body = "{ \"mappings\": { \"properties\": {\n\"at\": { \"type\": \"geo_shape\" },\n\
                \"n\": { \"type\": \"long\" },\n\"v\": { \"type\": \"knn_vector\" } } } }";
    let other = "{ \"mappings\": { \"properties\": { \"of\": { \"type\": \"join\" } } } }";
    let text = r#"{ "indices": [ { "name": "shapes", "body": "shapes.json" },
        { "name": "joined", "body": "joined.json" } ],
        "schedule": [ { "operation": "create-index" } ] }"#;
    let files = [("shapes.json", body), ("joined.json", other)];
    let first = ["3 mistakes in 2 files", "shapes.json:2:", "geo_shape"];
    let others = ["shapes.json:4:", "knn_vector", "joined.json:1:", "\"join\""];
    says(opened_beside(&files, text, &embedded()), &[&first[..], &others].concat());
}

#[test]
fn an_index_is_made_without_settings_that_would_change_no_answer_and_that_is_said() {
    let index = r#"{ "settings": { "index.merge.policy.max_merged_segment": "100GB", "index.number_of_shards": 2 } }"#;
    let text = r#"{
        "indices": [ { "name": "orders", "body": "orders.json" } ],
        "schedule": [ { "operation": { "operation-type": "create-index",
            "settings": { "index.sort.field": "at" } } } ] }"#;
    let open = |options: &TrackOptions| opened_beside(&[("orders.json", index)], text, options);
    let track = open(&embedded()).unwrap();
    let body = requests(&track)[0].body.as_ref().unwrap();
    assert_eq!(*body, json!({ "settings": { "index.number_of_shards": 2 } }));
    let sent = ["orders.json is sent without index.merge", "The index orders is sent without"];
    has_changed(&track, &sent);
    // Elsewhere they are sent.
    let track = open(&TrackOptions { embedded: false, ..embedded() }).unwrap();
    let settings = &requests(&track)[0].body.as_ref().unwrap()["settings"];
    assert_eq!((settings.as_object().unwrap().len(), track.changes.len()), (3, 0));
}

#[test]
fn members_of_a_task_within_its_bulk_operation_change_nothing_as_in_rally_and_that_is_said() {
    let bulk =
        r#"{ "operation-type": "bulk", "bulk-size": 1, "clients": 8, "warmup-time-period": 10 }"#;
    let track = opened(&task(bulk), &embedded()).unwrap();
    let found = only_task(&track);
    let plain =
        opened(&task(r#"{ "operation-type": "bulk", "bulk-size": 1 }"#), &embedded()).unwrap();
    assert_eq!((found.load.clients, found.load.warm_up), (1, only_task(&plain).load.warm_up));
    has_changed(&track, &["\"clients\" within", "\"warmup-time-period\" within"]);
}

#[test]
fn operations_that_the_field_has_and_that_are_not_run_are_refused_with_their_reason() {
    for (kind, why) in [
        ("wait-for-transform", "transforms are a plugin"),
        ("downsample", "Elasticsearch from 8.5"),
        ("warmup-knn-indices", "vectors are not searched"),
        ("wait-for-snapshot-create", "no snapshots are made"),
    ] {
        says(
            opened(&task(&format!(r#"{{ "operation-type": "{kind}" }}"#)), &embedded()),
            &["track.json:7:", kind, why, "--skip-refused"],
        );
    }
}

#[test]
fn what_can_be_done_with_fields_is_asked_of_all_indices_unless_some_are_named() {
    let own = r#", "index": "logs-*", "fields": ["a", "b"]"#;
    for (own, path) in [("", "/_all/_field_caps?fields=*"), (own, "/logs-*/_field_caps?fields=a,b")]
    {
        let operation = task(&format!(r#"{{ "operation-type": "field-caps"{own} }}"#));
        let track = opened(&operation, &embedded()).unwrap();
        let sent = content(only_task(&track));
        let Content::Pattern { method, path: found, bodies, .. } = sent else { panic!("{sent:?}") };
        assert_eq!((method.as_str(), found.as_str(), bodies.len()), ("GET", path, 0));
    }
    let filter = r#"{ "operation-type": "field-caps", "index_filter": { "range": { "at": { "gte": 1 } } } }"#;
    says(opened(&task(filter), &embedded()), &["track.json:7:", "no filter of indices"]);
    let elsewhere = TrackOptions { embedded: false, ..embedded() };
    assert!(format!("{:?}", opened(&task(filter), &elsewhere).unwrap()).contains("index_filter"));
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
    let of_pages = text.replace("\"search\"", "\"paginated-search\", \"pages\": 1");
    for text in [text, &of_pages] {
        let track = opened_beside(&[("orders.json", mapping)], text, &options).unwrap();
        let fill = content(&track.elements[0].tasks[0]);
        let Content::Corpora(parts) = fill else { panic!("{track:?}") };
        assert!(format!("{:?}", parts[0].source).contains("from a search"), "{parts:?}");
    }
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
fn what_goes_by_words_is_refused_in_virtual_time_before_anything_starts() {
    let in_virtual_time = TrackOptions { is_virtual: true, ..embedded() };
    for path in ["/orders/_delete_by_query?refresh=true", "/orders/_update_by_query", "/_reindex"] {
        let request = r#""operation-type": "raw-request", "method": "POST", "path""#;
        let operation = |more: &str| task(&format!("{{ {request}: \"{path}\"{more} }}"));
        let words = ["track.json:7:", path, "in virtual time", "--skip-refused"];
        says(opened(&operation(""), &in_virtual_time), &words);
        opened(&operation(""), &embedded()).unwrap();
        opened(&operation(", \"ignore\": 400"), &in_virtual_time).unwrap();
    }
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
    let two = r#"{ "operation-type": "field-caps", "index": "orders", "request-timeout": 5 },
        { "operation-type": "index-stats" }"#;
    let track = opened(&composite("", two), &embedded()).unwrap();
    let found = requests(&track);
    let path = found[0].path.as_str();
    assert_eq!((path, found[0].is_counted), ("/orders/_field_caps?fields=*", true));
    assert_eq!((found[0].timeout, found[1].timeout), (Some(Duration::from_secs(5)), None));
    for (request, words) in [
        (r#""operation-type": "bulk""#, ["sends no bulk", "field-caps"]),
        (r#""operation-type": "search", "pages": 3, "body": {}"#, ["pages", "sends no scrolls"]),
        (r#""operation-type": "raw-request", "method": "PATCH", "path": "/a""#, ["PATCH", "GET"]),
    ] {
        let said = opened(&composite("", &format!("{{ {request} }}")), &embedded());
        says(said, &[&words[..], &["track.json:8:"]].concat());
    }
}

#[test]
fn whatever_goes_through_steps_is_tried_again_where_it_says_so() {
    for kind in ["create-index", "delete-index", "refresh"] {
        let text = format!("{{ \"operation-type\": \"{kind}\", \"retry-until-success\": true }}");
        let track = opened(&task(&text), &embedded()).unwrap();
        let found = requests(&track);
        assert!(!found.is_empty() && found.iter().all(|request| request.tries > 1000), "{kind}");
    }
    let refresh = r#"{ "operation-type": "refresh", "retries": 9, "retry-wait-period": 2 }"#;
    let track = opened(&task(refresh), &embedded()).unwrap();
    let found = requests(&track)[0];
    assert_eq!((found.tries, found.pause), (10, Duration::from_secs(2)));
}

#[test]
fn what_a_task_says_of_its_requests_is_obeyed() {
    let raw = r#"{ "operation-type": "raw-request", "path": "/a", "ignore": 404 }"#;
    let track = opened(&task(raw), &embedded()).unwrap();
    let Content::Pattern { check, .. } = content(only_task(&track)) else { panic!("{track:?}") };
    assert_eq!(*check, Check::StatusOr([404, 0, 0, 0]));
    let searched = opened(&task(&raw.replace("/a", "/a/_search")), &embedded()).unwrap();
    let Content::Pattern { check, .. } = content(only_task(&searched)) else {
        panic!("{searched:?}")
    };
    assert_eq!(*check, Check::SearchOr([404, 0, 0, 0]));
    let many = opened(&task(&raw.replace("/a", "/a/_msearch")), &embedded()).unwrap();
    let Content::Pattern { check, .. } = content(only_task(&many)) else { panic!("{many:?}") };
    assert_eq!(*check, Check::SearchesOr([404, 0, 0, 0]));
    for ignored in ["\"never\"", "[ 404, 7 ]", "[ 400, 401, 402, 403, 404 ]"] {
        let raw = raw.replace("404", ignored);
        says(opened(&task(&raw), &embedded()), &["track.json:7:", "ignore has statuses"]);
    }

    let bulk = r#"{ "operation-type": "bulk", "bulk-size": 1, "refresh": true,
        "request-params": { "routing": "a b" } }"#;
    let track = opened(&task(bulk), &embedded()).unwrap();
    let Content::Corpora(parts) = content(only_task(&track)) else { panic!("{track:?}") };
    assert_eq!(parts[0].query, "refresh=true&routing=a%20b");

    let search = r#"{ "operation-type": "search", "results-per-page": 7, "body": { "size": 1 } }"#;
    let track = opened(&task(search), &embedded()).unwrap();
    let Content::Pattern { bodies, .. } = content(only_task(&track)) else { panic!("{track:?}") };
    assert_eq!(serde_json::from_str::<Value>(&bodies[0]).unwrap(), json!({ "size": 7 }));
    let scroll = search.replace("\"results-per-page\"", "\"pages\": 2, \"results-per-page\"");
    let track = opened(&task(&scroll), &embedded()).unwrap();
    let Content::Scroll { body, .. } = content(only_task(&track)) else { panic!("{track:?}") };
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
fn a_status_that_no_cluster_has_is_not_waited_for() {
    let health = |status: &str| {
        let kind = r#""operation-type": "cluster-health", "retry-until-success": true"#;
        task(&format!(r#"{{ {kind}, "request-params": {{ "wait_for_status": "{status}" }} }}"#))
    };
    for options in [embedded(), live()] {
        let words = ["track.json:7:", "green, yellow or red, found \"purple\""];
        says(opened(&health("purple"), &options), &words);
    }
    let track = opened(&health("GREEN"), &embedded()).unwrap();
    let condition = requests(&track)[0].condition.clone().unwrap();
    assert!(!condition.holds(&json!({ "status": "yellow" })), "{condition:?}");
}

#[test]
fn a_rate_of_nothing_is_none() {
    for rate in ["0", "\"\"", "null"] {
        let tasks =
            format!(r#"{{ "name": "x", "operation": {HEALTH}, "target-throughput": {rate} }}"#);
        let track = opened(&tasks, &embedded()).unwrap();
        assert_eq!(only_task(&track).load.arrival, Arrival::Closed, "{rate}");
    }
}

#[test]
fn a_schedule_that_rally_refuses_is_refused_in_test_mode_too() {
    for (own, said) in [
        (r#""target-throughput": "twenty""#, "found \"twenty\""),
        (r#""target-throughput": "20 docs/s""#, "docs/s for bulk requests"),
        (r#""target-throughput": -2"#, "found \"-2\""),
        (r#""target-throughput": 2, "target-interval": 2"#, "not both"),
        (r#""target-interval": 0"#, "above 0"),
        (r#""clients": 0"#, "clients is a number of at least 1, found 0"),
    ] {
        for test_mode in [false, true] {
            let options = TrackOptions { test_mode, ..embedded() };
            let tasks = format!(r#"{{ "name": "x", "operation": {HEALTH}, {own} }}"#);
            says(opened(&tasks, &options), &["track.json:6:", said]);
        }
    }
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
    let Content::Corpora(parts) = content(only_task(&track)) else { panic!("{track:?}") };
    assert_eq!((parts[0].documents.clone(), parts[0].said), (0..2, Some(3)));
    let options = TrackOptions { test_mode: true, ..embedded() };
    let short = opened_with(", \"document-count\": 3", &task(half), &options).unwrap();
    let Content::Corpora(parts) = content(only_task(&short)) else { panic!("{short:?}") };
    assert_eq!(parts[0].said, None, "another file may be read");
    says(counted(5.0), &["documents.json is sent once", "--scale", "found 5"]);
    for percentage in ["0", "101"] {
        let words = ["track.json:7:", "ingest-percentage is a number above 0 and up to 100"];
        says(opened(&task(&half.replace("50", percentage)), &embedded()), &words);
    }
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
    // What was chosen and left out again is not offered as what may have been meant.
    let x = vec!["x".to_owned()];
    let both = TrackOptions { include: x.clone(), exclude: x, ..embedded() };
    says(opened(&task(HEALTH), &both), &["leaves no task of the challenge default; tasks: x"]);
    let of = |challenge: &str| TrackOptions { challenge: Some(challenge.to_owned()), ..embedded() };
    assert_eq!(opened(&task(HEALTH), &of("default")).unwrap().challenge, "default");
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
fn a_track_reads_nothing_that_lies_elsewhere() {
    let above = tempfile::tempdir().unwrap();
    let (dir, secret) = (above.path().join("track"), above.path().join("secret.txt"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(&secret, "\"s3cret\"").unwrap();
    std::fs::write(above.path().join("part.json"), "\"shared\"").unwrap();
    std::os::unix::fs::symlink(&secret, dir.join("link.json")).unwrap();
    let opened = |part: &str| {
        let file = dir.join("track.json");
        let text = format!(
            "{{ \"description\": {part}, \"schedule\": [ {{ \"name\": \"x\", \"operation\": {HEALTH} }} ] }}"
        );
        std::fs::write(&file, text).unwrap();
        lab::track::open(&file, &embedded())
    };
    let collect = |name: &str| format!("{{{{ rally.collect(parts=\"{name}\") }}}}");
    let include = |name: &str| format!("{{% include \"{name}\" %}}");
    for part in [
        include(secret.to_str().unwrap()),
        include("../secret.txt"),
        include("link.json"),
        collect("../secret.txt"),
        collect("link.json"),
    ] {
        says(opened(&part), &["files of its own folder"]);
    }
    // What tracks of one repository share.
    assert_eq!(opened(&collect("../part.json")).unwrap().about, "shared");
}

#[test]
fn a_pattern_that_leads_in_circles_has_an_end() {
    let dir = tempfile::tempdir().unwrap();
    for link in ["a", "b"] {
        std::os::unix::fs::symlink(".", dir.path().join(link)).unwrap();
    }
    let file = dir.path().join("track.json");
    // Two ways at each of twelve steps, and no file at the end of any.
    let part = format!("{{{{ rally.collect(parts=\"{}none.json\") }}}}", "*/".repeat(12));
    std::fs::write(&file, format!("{{ \"schedule\": [ {part} ] }}")).unwrap();
    says(lab::track::open(&file, &embedded()), &["over 2000 files"]);
}
