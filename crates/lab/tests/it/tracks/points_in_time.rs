//! Points in time of composites, and searches page by page: what is read, what is refused, and what is left open.

use std::collections::BTreeMap;

use lab::track::{Action, Step, TrackOptions};

use super::tasks::{complete, load};
use super::{embedded, opened, says, task};

const OPEN: &str =
    r#"{ "operation-type": "create-point-in-time", "name": "p", "keep-alive": "5m" }"#;
const SEARCH: &str = r#"{ "operation-type": "paginated-search", "with-point-in-time-from": "p", "pages": 2,
    "results-per-page": 2, "body": { "sort": [ "n" ] } }"#;
const CLOSE: &str =
    r#"{ "operation-type": "delete-point-in-time", "with-point-in-time-from": "p" }"#;

fn live() -> TrackOptions {
    TrackOptions { scale: 1.0, live: true, ..TrackOptions::default() }
}

fn composite(requests: &[&str]) -> String {
    let requests = requests.join(",\n");
    format!("{{ \"operation-type\": \"composite\", \"requests\": [\n{requests} ] }}")
}

#[test]
fn what_opens_searches_and_ends_one_is_read_for_any_cluster() {
    for options in [embedded(), live()] {
        let track = opened(&task(&composite(&[OPEN, SEARCH, CLOSE])), &options).unwrap();
        let Action::Do(steps) = &track.elements[0].tasks[0].action else { panic!("{track:?}") };
        let found: Vec<_> = steps.iter().flat_map(Step::requests).collect();
        let sent: Vec<_> = found.iter().map(|one| (one.method, one.path.as_str())).collect();
        let opens = ("POST", "/orders/_search/point_in_time?keep_alive=5m");
        assert_eq!(sent, [opens, ("GET", "/_search"), ("DELETE", "/_search/point_in_time")]);
        assert_eq!(found.iter().map(|one| one.pages).collect::<Vec<_>>(), [1, 2, 1]);
        assert!(found.iter().all(|one| one.is_counted), "it only reads");
    }
}

#[test]
fn one_that_nothing_before_opens_or_that_is_of_no_composite_is_refused() {
    let without_sort = SEARCH.replace("\"sort\": [ \"n\" ]", "");
    let scrolls = SEARCH.replace("paginated-search", "search");
    for (operation, words) in [
        (composite(&[SEARCH, OPEN]), "no request before opens a point in time"),
        (composite(&[OPEN, CLOSE, SEARCH]), "no request before opens a point in time"),
        (composite(&[OPEN, &without_sort]), "give the body a \"sort\""),
        (composite(&[OPEN, &scrolls]), "make it a paginated-search"),
        (OPEN.to_owned(), "stand in one composite"),
        (SEARCH.to_owned(), "stand in one composite"),
    ] {
        says(opened(&task(&operation), &embedded()), &["track.json:", words, "--skip-refused"]);
    }
    let all = task(r#"{ "operation-type": "delete-point-in-time" }"#);
    opened(&all, &embedded()).unwrap();
    says(opened(&all, &live()), &["track.json:", "not the run's own"]);
}

/// A node holds one view at a time, so that one which is left open would be an error of the next.
#[test]
fn one_that_is_left_open_is_ended_with_its_composite_or_its_task() {
    let named = |name: &str, operation: &str| {
        format!("{{ \"name\": \"{name}\", \"iterations\": 3, \"operation\": {operation} }}")
    };
    let one_view = r#"{ "operation-type": "put-settings",
        "body": { "transient": { "search.max_open_pit_context": 1 } } }"#;
    let sleep =
        |seconds: u32| format!("{{ \"operation-type\": \"sleep\", \"duration\": {seconds} }}");
    // It is still being opened when the other stream fails.
    let missing = r#"{ "operation-type": "raw-request", "path": "/nothing/_count" }"#;
    let beside = [OPEN, missing].map(|one| format!("{{ \"stream\": [ {one} ] }}"));
    let held = named("held", &composite(&[OPEN, &sleep(3600)]));
    let both = format!("[ {held}, {} ]", named("short", &sleep(1)));
    let tasks = [
        r#"{ "operation": "create-index" }"#.to_owned(),
        named("one-view", one_view),
        named("given-up", &composite(&beside.each_ref().map(String::as_str))),
        named("left", &composite(&[OPEN, SEARCH])),
        named("ended", &composite(&[OPEN, SEARCH, CLOSE, OPEN])),
        format!("{{ \"parallel\": {{ \"completed-by\": \"short\", \"tasks\": {both} }} }}"),
        named("after", &composite(&[OPEN])),
        named("listed", r#"{ "operation-type": "list-all-point-in-time" }"#),
        named("pages", &SEARCH.replace("\"with-point-in-time-from\": \"p\",", "")),
    ];
    let run = complete(&tasks.join(",\n"));
    for name in ["left", "ended", "after", "listed", "pages"] {
        let found = load(&run, name);
        assert_eq!((found.requests, &found.errors), (3, &BTreeMap::new()), "{name}");
    }
}
