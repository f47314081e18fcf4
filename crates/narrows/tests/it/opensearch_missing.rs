//! What is said of OpenSearch where it cannot be started, and of what it does not have. None of this needs it.

use std::process::Command;

use crate::common::{failed, narrows_in, nothing_is_left, path_with};

const RUN: [&str; 4] = ["run", "replica-over-link", "--on", "opensearch"];

#[track_caller]
fn refused(command: &mut Command, words: &[&str]) {
    failed(&command.output().unwrap(), 2, words);
}

#[test]
fn that_java_is_missing_is_said_with_the_command_that_installs_it() {
    let dir = tempfile::tempdir().unwrap();
    let bare = |more: &[&str]| {
        let mut command = narrows_in(dir.path(), &[&RUN[..], more].concat());
        let cache = dir.path().join("cache");
        command.env("PATH", path_with(dir.path(), &[])).env("NARROWS_CACHE", cache);
        command.env_remove("JAVA_HOME");
        command
    };
    refused(&mut bare(&[]), &["apt-get install default-jre-headless"]);
    let home = dir.path().to_str().unwrap();
    refused(&mut bare(&["--opensearch-home", home]), &["lib and modules"]);
    nothing_is_left(dir.path());
}

#[test]
fn a_release_that_there_is_not_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let run = [&RUN[..], &["--opensearch-version", "2.18.0"]].concat();
    refused(&mut narrows_in(dir.path(), &run), &["1.3.13", "--opensearch-home"]);
}

#[test]
fn what_only_the_embedded_engine_has_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |run: &[&str], words: &[&str]| refused(&mut narrows_in(dir.path(), run), words);
    refused(&[&RUN[..], &["--variant", "adaptive"]].concat(), &["--on embedded"]);
    refused(&[&RUN[..], &["--heap", "big"]].concat(), &["512m"]);
    refused(&[&RUN[..], &["--heap", "99999g"]].concat(), &["of memory; write a smaller heap"]);
    let remote = ["run", "remote-recovery", "--on", "opensearch", "--variant", "1 MB x 1"];
    refused(&remote, &["Variants: default, not throttled"]);
}
