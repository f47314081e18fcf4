//! The names of what a track declares.

use std::time::Duration;

use lab::load::Arrival;
use lab::track::{Action, Step};

use super::{HEALTH, embedded, opened, opened_beside, says, task};

#[test]
fn what_is_declared_twice_is_refused_at_the_second_with_the_place_of_the_first() {
    let schedule = "\"schedule\": [ { \"operation\": \"refresh\" } ]";
    for (declared, words) in [
        (
            format!(
                "\"challenges\": [\n{{ \"name\": \"a\", \"default\": true, {schedule} }},\n\
                 {{ \"name\": \"a\", {schedule} }} ]"
            ),
            ["track.json:3:", "two challenges are called \"a\"", "track.json:2;"],
        ),
        (
            format!(
                "\"challenges\": [\n{{ \"name\": \"a\", \"default\": true, {schedule} }},\n\
                 {{ \"name\": \"b\", \"default\": true, {schedule} }} ]"
            ),
            ["track.json:3:", "\"b\" is a default challenge", "so is \"a\""],
        ),
        (
            format!("{schedule},\n\"challenges\": [ {{ \"name\": \"a\", {schedule} }} ]"),
            ["track.json:2:", "\"schedule\" or \"challenges\"", "not both"],
        ),
        (
            format!(
                "\"operations\": [\n{{ \"name\": \"q\", \"operation-type\": \"refresh\" }},\n\
                 {{ \"name\": \"q\", \"operation-type\": \"search\", \"body\": {{}} }} ], {schedule}"
            ),
            ["track.json:3:", "two operations are called \"q\"", "track.json:2;"],
        ),
        (
            format!(
                "\"corpora\": [\n{{ \"name\": \"c\", \"documents\": [] }},\n\
                 {{ \"name\": \"c\", \"documents\": [] }} ], {schedule}"
            ),
            ["track.json:3:", "two corpora are called \"c\"", "track.json:2;"],
        ),
    ] {
        says(opened_beside(&[], &format!("{{ {declared} }}"), &embedded()), &words);
    }
}

#[test]
fn an_operation_without_a_name_goes_by_its_type_as_in_rally() {
    let text = r#"{ "operations": [ { "operation-type": "sleep", "duration": 7 } ],
        "schedule": [ { "operation": "sleep" } ] }"#;
    let track = opened_beside(&[], text, &embedded()).unwrap();
    let Action::Do(steps) = &track.elements[0].tasks[0].action else { panic!("{track:?}") };
    assert_eq!(*steps, [Step::Sleep(Duration::from_secs(7))]);
}

#[test]
fn an_operation_without_a_type_and_a_schedule_without_tasks_are_told_as_that() {
    let untyped = opened(&task(r#"{ "body": {} }"#), &embedded());
    says(untyped, &["track.json:7:", "the operation of x has no \"operation-type\""]);
    says(opened("", &embedded()), &["the schedule of the challenge default has no tasks"]);
}

#[test]
fn documents_for_a_data_stream_are_told_as_such_also_where_the_track_has_no_index() {
    let set =
        |target: &str| format!("{{ \"source-file\": \"d.json\", \"document-count\": 1{target} }}");
    let opened = |target: &str, more: &str| {
        let text = format!(
            "{{ {more}\"corpora\": [ {{ \"name\": \"c\", \"documents\": [ {} ] }} ],\n\
             \"schedule\": [ {{ \"operation\": {{ \"operation-type\": \"bulk\", \"bulk-size\": 1 }} }} ] }}",
            set(target)
        );
        opened_beside(&[], &text, &embedded())
    };
    let words = ["track.json:2:", "d.json: documents are not sent to data streams"];
    says(opened(", \"target-data-stream\": \"logs\"", ""), &words);
    says(opened("", "\"data-streams\": [ { \"name\": \"logs\" } ], "), &words);
    says(opened("", ""), &["track.json:2:", "d.json has no target-index"]);
}

#[test]
fn a_bulk_operation_that_asks_for_no_loop_no_pipeline_and_no_type_is_taken() {
    let opened = |more: &str| {
        let bulk = format!("{{ \"operation-type\": \"bulk\", \"bulk-size\": 1, {more} }}");
        super::opened(&task(&bulk), &embedded())
    };
    says(opened("\"looped\": true"), &["track.json:7:", "a corpus is sent once", "write false"]);
    says(opened("\"pipeline\": \"geo\""), &["track.json:7:", "has no pipelines"]);
    says(opened("\"type\": \"logs\""), &["track.json:7:", "have no types"]);
    let track = opened("\"looped\": false, \"pipeline\": \"_none\", \"type\": \"_doc\"").unwrap();
    assert_eq!(track.elements[0].tasks.len(), 1);
}

#[test]
fn a_search_in_a_type_of_documents_is_refused() {
    let search = |name: &str| format!("{{ \"operation-type\": \"search\", \"type\": \"{name}\" }}");
    says(opened(&task(&search("logs")), &embedded()), &["track.json:7:", "have no types"]);
    opened(&task(&search("_doc")), &embedded()).unwrap();
}

#[test]
fn a_reason_that_ends_with_a_question_gets_no_other_sign() {
    let search = r#"{ "operation-type": "search", "body": { "query": { "mach_all": {} } } }"#;
    says(opened(&task(search), &embedded()), &["did you mean \"match_all\"", "\"? --skip-refused"]);
}

#[test]
fn scrolls_and_paginated_searches_say_how_many_pages_they_fetch_as_in_rally() {
    for kind in ["scroll-search", "paginated-search"] {
        let search = |pages: &str| {
            task(&format!(
                r#"{{ "operation-type": "{kind}"{pages}, "body": {{ "sort": [ "n" ] }} }}"#
            ))
        };
        says(opened(&search(""), &embedded()), &["track.json:7:", kind, "needs \"pages\""]);
        opened(&search(r#", "pages": "all""#), &embedded()).unwrap();
    }
}

#[test]
fn what_a_search_asks_for_in_vain_is_refused_or_said() {
    let search = |member: &str| {
        task(&format!(r#"{{ "operation-type": "search", {member}, "body": {{}} }}"#))
    };
    for (member, changes) in [
        (r#""type": "", "response-compression-enabled": false"#, vec![]),
        (r#""response-compression-enabled": true"#, vec!["Answers to x are not compressed."]),
    ] {
        assert_eq!(opened(&search(member), &embedded()).unwrap().changes, changes, "{member}");
    }
}

#[test]
fn assertions_are_said_to_be_left_unchecked() {
    let asserts = r#"{ "operation-type": "search", "body": {},
        "assertions": [ { "property": "hits", "condition": ">", "value": 0 } ] }"#;
    let track = opened(&task(asserts), &embedded()).unwrap();
    assert_eq!(track.changes, ["The assertions of x are not checked."]);
}

#[test]
fn a_rate_of_a_parallel_element_changes_nothing_as_in_rally_and_that_is_said() {
    let tasks = format!(
        r#"{{ "parallel": {{ "target-throughput": 5, "tasks": [ {{ "operation": {HEALTH} }} ] }} }}"#
    );
    let track = opened(&tasks, &embedded()).unwrap();
    assert_eq!(track.elements[0].tasks[0].load.arrival, Arrival::Closed);
    let said = track.changes.join(" ");
    assert!(said.starts_with("\"target-throughput\" of a parallel element"), "{said}");
}

#[test]
fn documents_in_a_form_that_is_not_read_are_refused_before_anything_starts() {
    let opened = |file: &str, more: &str| {
        let text = format!(
            "{{ \"indices\": [ {{ \"name\": \"i\" }} ], \"corpora\": [ {{ \"name\": \"c\", \"documents\": [\n\
             {{ \"source-file\": \"{file}\", \"target-index\": \"\"{more} }} ] }} ],\n\
             \"schedule\": [ {{ \"operation\": {{ \"operation-type\": \"bulk\", \"bulk-size\": 1 }} }} ] }}"
        );
        opened_beside(&[(file, "PK no JSON\n")], &text, &embedded())
    };
    for (file, more, said) in [
        ("d.zip", "", "the ending .zip is not known"),
        ("d.json", "", "d.json line 1"),
        ("d.hdf5", ", \"source-format\": \"hdf5\"", "d.hdf5: it is hdf5"),
    ] {
        says(opened(file, more), &["track.json:3:", said, "--skip-refused"]);
    }
}

#[test]
fn members_of_opensearch_benchmark_and_functions_of_jinja_are_known() {
    let text = r#"{ "default": true,
        "description": "{% for x in [1, 2] %}{{ x }}{% if loop.nextitem is defined %}+{% endif %}{% endfor %}",
        "schedule": [ {% set comma = joiner(",") %}
        {% for name, shown in {"b": "false", "a": "true"}.items() %}{{ comma() }} { "name": "{{ name }}", "operation": {
            "operation-type": "sleep", "duration": 1,
            "include-in-results_publishing": {{ shown }} } }{% endfor %} ] }"#;
    let track = opened_beside(&[], text, &embedded()).unwrap();
    assert_eq!(track.about, "1+2");
    let tasks = track.elements.iter().map(|one| &one.tasks[0]);
    let reported: Vec<(&str, bool)> =
        tasks.map(|task| (task.name.as_str(), task.reported)).collect();
    // A dictionary keeps its order, as in Python.
    assert_eq!(reported, [("b", false), ("a", true)]);
    let to_a_stream = r#"{ "operation-type": "search", "data-stream": "logs", "body": {} }"#;
    let words = ["track.json:7:", "data streams are not made here", "--skip-refused"];
    says(opened(&task(to_a_stream), &embedded()), &words);
}

#[test]
fn what_is_for_serverless_clusters_or_for_python_alone_is_read_over() {
    let text = r#"{ "parameters": { "a": 1 }, "schedule": [ { "name": "x", "run-on-serverless": true, "operation":
        { "operation-type": "sleep", "duration": 1, "run-on-serverless": false } } ] }"#;
    assert_eq!(opened_beside(&[], text, &embedded()).unwrap().elements.len(), 1);
}

#[test]
fn documents_are_read_from_no_folder_that_a_track_chooses() {
    for (corpus, file) in [("c", "/etc/hostname"), ("c", "a/../../b.json"), ("../..", "b.json")] {
        let text = format!(
            "{{ \"indices\": [ {{ \"name\": \"i\" }} ],\n\
             \"corpora\": [ {{ \"name\": \"{corpus}\", \"documents\": [ {{ \"source-file\": \"{file}\" }} ] }} ],\n\
             \"schedule\": [ {{ \"operation\": {{ \"operation-type\": \"bulk\", \"bulk-size\": 1 }} }} ] }}"
        );
        let words = ["track.json:2:", "leads out of the folders of documents", "--corpora DIR"];
        says(opened_beside(&[], &text, &embedded()), &words);
    }
}
