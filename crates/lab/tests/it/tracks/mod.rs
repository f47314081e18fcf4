//! Tracks, and what they are opened from.

mod declared;
mod files;
mod points_in_time;
mod tasks;
mod templates;

use lab::Error;
use lab::track::{Track, TrackOptions};

/// An operation that every cluster answers.
const HEALTH: &str = r#"{ "operation-type": "raw-request", "path": "/_cluster/health" }"#;

fn embedded() -> TrackOptions {
    TrackOptions { scale: 1.0, embedded: true, ..TrackOptions::default() }
}

/// Opens a track with these tasks, the first of which stands in line 6, and a file of three documents of which it says
/// `more`.
fn opened_with(more: &str, tasks: &str, options: &TrackOptions) -> Result<Track, Error> {
    let set = format!(r#"{{ "source-file": "documents.json"{more} }}"#);
    let text = format!(
        "{{\n\"version\": 2,\n\"indices\": [ {{ \"name\": \"orders\" }} ],\n\
         \"corpora\": [ {{ \"name\": \"orders\", \"documents\": [ {set} ] }} ],\n\
         \"schedule\": [\n{tasks}\n] }}"
    );
    let documents = ("documents.json", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    opened_beside(&[documents], &text, options)
}

fn opened(tasks: &str, options: &TrackOptions) -> Result<Track, Error> {
    opened_with("", tasks, options)
}

/// A task of this operation, which stands in line 7.
fn task(operation: &str) -> String {
    format!("{{ \"name\": \"x\", \"operation\":\n{operation} }}")
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

#[track_caller]
fn says(opened: Result<Track, Error>, words: &[&str]) {
    let said = opened.unwrap_err().to_string();
    for word in words {
        assert!(said.contains(word), "\"{word}\" is not in: {said}");
    }
}
