//! What `narrows doctor` says of machines that have much, little or nothing.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{BINARY, command, done, failed, json, narrows, path_with, said};
use crate::mentioned::commands;

/// `narrows doctor` on a machine with these programs alone, and nothing in its cache.
fn doctor(dir: &Path, programs: &[&str]) -> Command {
    let mut doctor = command(&["doctor", "--json", "--runs"]);
    doctor.arg(dir.join("runs")).env("PATH", path_with(dir, programs)).env_remove("JAVA_HOME");
    doctor.env("NARROWS_CACHE", dir.join("cache")).env("TMPDIR", dir);
    doctor
}

fn json_whatever_the_code(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

/// The finding of this name in the group whose title begins so.
#[track_caller]
fn finding<'a>(found: &'a Value, group: &str, what: &str) -> &'a Value {
    let begins =
        |value: &Value, key: &str, with: &str| value[key].as_str().unwrap().starts_with(with);
    let groups = found["groups"].as_array().unwrap();
    let group = groups.iter().find(|of| begins(of, "commands", group)).expect(group);
    let findings = group["findings"].as_array().unwrap();
    findings.iter().find(|finding| begins(finding, "what", what)).expect(what)
}

#[test]
fn without_any_program_the_first_run_still_works_and_opensearch_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let found = json(&doctor(dir.path(), &[]).output().unwrap());
    assert!(found["version"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")));
    for what in ["loopback", "room for nodes", "room for records"] {
        assert_eq!(finding(&found, "the first run", what)["state"], "ok", "{found:#}");
    }
    for (what, remedy) in
        [("Java 11", "apt-get install default-jre"), ("Maven", "apt-get install maven")]
    {
        let finding = finding(&found, "OpenSearch", what);
        assert_eq!(finding["state"], "lacks", "{finding}");
        assert!(finding["found"].as_str().unwrap().contains("on the path"), "{finding}");
        assert!(finding["remedy"].as_str().unwrap().starts_with(remedy), "{finding}");
    }
    for what in ["control groups", "stress-ng", "mounts"] {
        assert_eq!(finding(&found, "faults", what)["state"], "less", "{found:#}");
    }
    let left: Vec<_> = crate::common::entries(dir.path());
    assert_eq!(left, ["bin"], "a look leaves nothing behind");
}

/// What doctor says of Java and Maven is what a run with OpenSearch says.
#[test]
fn it_finds_what_a_run_finds() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let program = |path: &Path, script: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    };
    let home = dir.path().join("java-home");
    program(&home.join("bin/java"), "echo 'openjdk version \"12.0.1\" 2019-04-16' >&2");
    program(&dir.path().join("bin/mvn"), "echo 'Apache Maven 3.8.7'");
    let with_java = || {
        let mut doctor = doctor(dir.path(), &[]);
        doctor.env("JAVA_HOME", &home);
        doctor
    };
    let found = json(&with_java().output().unwrap());
    let java = finding(&found, "OpenSearch", "Java 11");
    assert_eq!(java["state"], "ok");
    assert!(java["found"].as_str().unwrap().contains(home.to_str().unwrap()), "{java}");
    let maven = finding(&found, "OpenSearch", "Maven");
    assert!(maven["found"].as_str().unwrap().starts_with("Apache Maven 3.8.7"), "{maven}");
    // Jars that were fetched need no Maven, whatever their release.
    std::fs::remove_file(dir.path().join("bin/mvn")).unwrap();
    let found = json(&with_java().output().unwrap());
    assert_eq!(finding(&found, "OpenSearch", "Maven")["state"], "lacks");
    let maven = finding(&found, "OpenSearch", "Maven")["found"].as_str().unwrap();
    for arguments in [
        &["run", "replica-over-link", "--on", "opensearch"][..],
        &["diagnose", "--on", "opensearch"],
        &["diagnose", "--bench", "--on", "opensearch"],
        &["calibrate", "--on", "opensearch"],
    ] {
        let mut run = Command::new(BINARY);
        run.args(arguments).current_dir(dir.path());
        run.env("PATH", dir.path().join("bin")).env("JAVA_HOME", &home);
        run.env("NARROWS_CACHE", dir.path().join("cache")).env("TMPDIR", dir.path());
        // What would take minutes in silence is said before it begins.
        failed(&run.output().unwrap(), 2, &["one to five minutes", maven, "apt-get install maven"]);
    }
}

#[test]
fn where_nothing_can_be_written_the_first_run_cannot_work() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = doctor(dir.path(), &[]).env("TMPDIR", file.join("below")).output().unwrap();
    failed(&output, 1, &["first run cannot work", "room for nodes"]);
    let found = json_whatever_the_code(&output);
    let room = finding(&found, "the first run", "room for nodes");
    assert_eq!((&room["state"], &found["groups"][0]["state"]), (&"lacks".into(), &"lacks".into()));
    assert!(room["remedy"].as_str().unwrap().contains("TMPDIR"), "{room}");
}

#[test]
fn few_open_files_are_said_with_the_command_that_allows_more() {
    let dir = tempfile::tempdir().unwrap();
    for (limit, code, state) in [(100, 1, "lacks"), (300, 0, "less")] {
        let script = format!("ulimit -n {limit} && exec \"$0\" doctor --json --runs \"$1\"");
        let mut limited = Command::new("sh");
        limited.args(["-c", &script, BINARY]).arg(dir.path().join("runs"));
        let output = limited.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        let found = json_whatever_the_code(&output);
        let files = finding(&found, "the first run", "open files");
        assert_eq!((&files["state"], &files["remedy"]), (&state.into(), &"ulimit -n 1024".into()));
    }
}

#[test]
fn in_words_every_lack_has_a_line_that_mends_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut words = command(&["doctor", "--tests", "--runs"]);
    words.arg(dir.path().join("runs")).env("PATH", path_with(dir.path(), &[]));
    let text = done(&words.env_remove("JAVA_HOME").output().unwrap());
    assert!(text.contains("the first run: narrows run remote-recovery"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let lacks = |line: &&str| line.starts_with("  lacks  ") || line.starts_with("  less ");
    let lacking = lines.iter().filter(|line| lacks(line)).count();
    let mended =
        lines.windows(2).filter(|pair| lacks(&pair[0]) && pair[1].contains("to mend it: "));
    assert!(lacking >= 10 && mended.count() == lacking, "{text}");
    assert!(text.contains("chromium") && text.contains("tshark"), "{text}");
}

#[test]
fn every_command_is_named_with_what_it_needs() {
    let text = said(&narrows(&["doctor"]));
    let titles = text.lines().filter(|line| !line.starts_with(' '));
    let mut named: Vec<&str> =
        titles.flat_map(|line| line.split(|c: char| c != '-' && !c.is_alphabetic())).collect();
    named.extend(["doctor", "help"]);
    for command in commands() {
        assert!(named.contains(&command.as_str()), "{command} is not in: {text}");
    }
}
