//! What comes of a track's tasks in virtual time, where every moment is exact.

use std::collections::BTreeMap;
use std::time::Duration;

use lab::load::Extent;
use lab::track::TrackOptions;
use lab::{Error, Options, Place};
use record::{Line, LoadFigures, RunDir, Status};

use super::{HEALTH, embedded, opened, says, task};
use crate::common;

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
pub(super) fn complete(tasks: &str) -> RunDir {
    let (ended, run) = ran(tasks);
    ended.unwrap();
    run
}

pub(super) fn load<'a>(run: &'a RunDir, name: &str) -> &'a LoadFigures {
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
    let failure = run.manifest.failure.as_deref().unwrap();
    assert!(failure.contains("never: GET /_all/_stats"), "{failure}");
    assert_eq!(names(&run), ["create-index", "health"]);
    assert_eq!(run.rows[0].stopped_at.as_deref(), Some("never"));
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

#[test]
fn a_request_that_stays_wrong_is_not_sent_again_and_its_reason_ends_the_run() {
    let (ended, run) = ran(&task(
        r#"{ "operation-type": "cluster-health", "retry-until-success": true,
            "request-params": { "wait_for_nodes": "many" } }"#,
    ));
    let said = ended.unwrap_err().to_string();
    assert!(said.contains("x: GET /_cluster/health") && said.contains("[many]"), "{said}");
    assert!(last_ms(&run) < 20_000.0, "{}", last_ms(&run));
}

#[test]
fn a_health_that_timed_out_is_none_that_was_waited_for() {
    let (ended, _) = ran(&task(
        r#"{ "operation-type": "cluster-health",
            "request-params": { "wait_for_nodes": "5", "timeout": "1s" } }"#,
    ));
    let said = ended.unwrap_err().to_string();
    assert!(said.contains("x: GET /_cluster/health") && said.contains("nodes: 1"), "{said}");
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
fn loads_that_go_on_together_end_each_at_its_own_time() {
    let run = complete(&format!(
        r#"{{ "parallel": {{ "tasks": [
            {{ "name": "long", "operation": {HEALTH}, "iterations": 50, "target-throughput": 10 }},
            {{ "name": "short", "operation": {HEALTH}, "iterations": 10, "target-throughput": 10 }}
        ] }} }}"#
    ));
    let ends = common::lines(&run, |line| match line {
        Line::Phase { t_ms, phase, .. } if phase.name == "load" && !phase.begins => Some(*t_ms),
        _ => None,
    });
    assert_eq!((names(&run), ends.len()), (vec!["short", "long"], 2), "in the order of their ends");
    assert!((ends[1] - ends[0] - 4000.0).abs() < 200.0, "{ends:?}");
}

#[test]
fn tasks_take_turns_where_there_are_fewer_clients_than_they_have() {
    let nap = |n: u32, clients: u32| {
        let operation = r#"{ "operation-type": "sleep", "duration": 10 }"#;
        format!(r#"{{ "name": "nap-{n}", "clients": {clients}, "operation": {operation} }}"#)
    };
    let together = |most: u32, each: [u32; 3]| {
        let tasks: Vec<String> = (0..).zip(each).map(|(n, clients)| nap(n, clients)).collect();
        format!(r#"{{ "parallel": {{ "clients": {most}, "tasks": [ {} ] }} }}"#, tasks.join(", "))
    };
    let ends_s = |tasks: &str| {
        let run = complete(tasks);
        let moments = common::lines(&run, |line| match line {
            Line::Phase { t_ms, phase, .. } if phase.name == "load" => Some(*t_ms),
            _ => None,
        });
        let ends = moments[1..].iter().map(|t_ms| ((t_ms - moments[0]) / 1000.0).round());
        (names(&run).join(" "), ends.collect::<Vec<f64>>())
    };
    let (names, ends) = ends_s(&together(4, [2, 2, 2]));
    assert_eq!((names.as_str(), ends), ("nap-0 nap-1 nap-2", vec![10.0, 10.0, 20.0]));
    assert_eq!(ends_s(&together(6, [2, 2, 2])).1, [10.0; 3]);
    let words = ["track.json:6:", "have 6 clients and there are 4"];
    says(opened(&together(4, [3, 2, 1]), &embedded()), &words);
    // As in Rally, the element with the most clients says how many there are.
    let many = format!("{}, {}", nap(9, 8), together(4, [3, 2, 1]));
    assert_eq!(opened(&many, &embedded()).unwrap().elements[1].at_once, 3);
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

#[test]
fn in_test_mode_each_client_sends_one_request_unless_its_task_goes_by_the_time() {
    let of =
        |more: &str| format!(r#"{{ "name": "x", "operation": {HEALTH}, "clients": 4, {more} }}"#);
    let options = TrackOptions { test_mode: true, ..embedded() };
    let measured = |more: &str| {
        let track = opened(&of(more), &options).unwrap();
        assert!(track.changes.concat().contains("for ten seconds at most"), "{:?}", track.changes);
        track.elements[0].tasks[0].load.measured
    };
    assert_eq!(measured("\"iterations\": 1"), Extent::Requests(4));
    assert_eq!(measured("\"iterations\": 50"), Extent::Requests(4));
    assert_eq!(measured("\"time-period\": 3600"), Extent::Time(Duration::from_secs(10)));
}

#[test]
fn a_task_that_another_one_ends_needs_no_end_of_its_own() {
    for (by, said) in [("short", "short, which would end it"), ("any", "no task beside it")] {
        let tasks = format!(
            r#"{{ "parallel": {{ "completed-by": "{by}", "tasks": [
                {{ "name": "short", "operation": {HEALTH}, "iterations": 50, "target-throughput": 10 }},
                {{ "name": "beside", "operation": {HEALTH}, "warmup-time-period": 1, "target-throughput": 10 }}
            ] }} }}"#
        );
        let run = complete(&tasks);
        let measured = load(&run, "beside").requests;
        assert!((35..=42).contains(&measured), "{measured} in the four seconds after the warm-up");
        let alone = TrackOptions { exclude: vec!["short".to_owned()], ..embedded() };
        says(opened(&tasks, &alone), &["track.json:6:", "beside has no end of its own", said]);
    }
}
