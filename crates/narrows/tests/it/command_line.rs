//! The command line as people use it: messages, exit codes, forms of output.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{SECRET, command, done, failed, json, narrows, printed, refused};
use crate::mentioned::commands;

/// What is typed, split at blanks, and words of the refusal: values that cannot be, and options without effect there.
#[rustfmt::skip]
const REFUSED: &[(&str, &[&str])] = &[
    ("cluster --name ../up", &["letters, digits"]),
    ("cluster --name a/b", &["letters, digits"]),
    ("cluster --name ", &["letters, digits"]),
    ("run remote-recovery --rate fast", &["\"fast\" is not a rate", "1gbit"]),
    ("run remote-recovery --seed x", &["'x' for '--seed <SEED>'\n", "a whole number is wanted: --seed 3"]),
    ("run remote-recovery --rtt -5ms", &["takes no number below zero: --rtt 5ms"]),
    ("explain http://127.0.0.1:1 --for -.5s", &["takes no number below zero: --for .5s"]),
    ("compare a b --fail-over -5%", &["takes no number below zero: --fail-over 5%"]),
    ("run remote-recovery --on virtual --allow-changes", &["--allow-changes is for a cluster that is already there"]),
    ("run remote-recovery --on virtual --heap 300m", &["--heap is for nodes of OpenSearch"]),
    ("run remote-recovery --on virtual --opensearch-version 1.3.13", &["--opensearch-version", "--on opensearch"]),
    ("run remote-recovery --on virtual --credentials x",
        &["--credentials", "this run is on virtual", "--on URL or --store URL"]),
    ("run remote-recovery --on virtual --any-version",
        &["--any-version", "this run is on virtual", "--on URL or --store URL"]),
    ("run remote-recovery --on virtual --timeout 5s",
        &["--timeout", "this run is on virtual", "--on URL or --store URL"]),
    ("published --opensearch-home /", &["--opensearch-home is for nodes"]),
    ("published --scale 0", &["scale", "for example"]),
    ("published --scale nan", &["scale", "for example"]),
    ("published --scale 2000000", &["scale", "for example"]),
    ("calibrate --opensearch-home /", &["--opensearch-home is for nodes"]),
    ("calibrate --laps 0", &["1..=100"]),
    ("calibrate --scale 0.5", &["--scale is for a cluster"]),
    ("calibrate --timeout 3s", &["none is measured"]),
    ("calibrate --on virtual", &["the URL of a cluster"]),
    ("calibrate --allow-changes", &["--on"]),
    ("diagnose --on embedded --heap 300m", &["--heap is for nodes"]),
    ("diagnose --on embedded --on virtual", &["nodes that are started for it"]),
    ("diagnose --on virtual", &["--on embedded"]),
    ("diagnose --on http://127.0.0.1:1", &["--on embedded"]),
    ("diagnose --case thottle", &["did you mean \"throttle\"? Cases: throttle,"]),
    ("diagnose --bench --cases 0", &["1..=1000000"]),
    ("diagnose --bench --cases 3 --seeds 1..2", &["--seeds", "cannot be used with"]),
    ("diagnose --bench --seeds 7..18446744073709551615", &["more than 1000000 seeds", "7..186"]),
    ("diagnose --bench --at-once 2", &["--at-once is for processes"]),
    ("diagnose --bench --runs x", &["cannot be used with"]),
    ("diagnose --bench --on=http://127.0.0.1:1", &["--on virtual, --on embedded or --on opensearch"]),
    ("watch http://127.0.0.1:1,http://127.0.0.1:2", &["none of 2 hosts"]),
    ("watch https://127.0.0.1:1 --cert x", &["--key"]),
    ("watch http://127.0.0.1:1 --timeout 0s", &["--timeout", "above 0"]),
    ("explain http://127.0.0.1:1 --timeout 0s", &["--timeout", "above 0"]),
    ("steer http://127.0.0.1:1 --timeout 0s", &["--timeout", "above 0"]),
    ("steer http://127.0.0.1:1 --for 0s", &["--for", "above 0"]),
    ("steer http://127.0.0.1:1 --interval 1ms", &["from 250ms to 10s"]),
    ("steer http://127.0.0.1:1 --apply --dry-run", &["--dry-run"]),
    ("steer http://127.0.0.1:1 --max indices.recovery.chunk_size=1gb", &["more than 100mb"]),
    ("steer http://127.0.0.1:1 --guard-p99 200ms", &["--guard"]),
    ("steer http://127.0.0.1:1 --runs x", &["--apply"]),
    ("steer http://127.0.0.1:1 --max indices.recovery.chunk_size=1mb --max indices.recovery.chunk_size=2mb",
        &["--max indices.recovery.chunk_size is given twice"]),
    ("load http://127.0.0.1:1 --any-version", &["--any-version would change nothing"]),
    ("store --to http://127.0.0.1:1 --any-version", &["--any-version would change nothing"]),
    ("restore --any-version", &["--any-version would change nothing"]),
    ("compare a b --store http://127.0.0.1:1 --any-version", &["--any-version would change nothing"]),
    ("dcp drain couchbase://a/b --any-version", &["--any-version would change nothing"]),
    ("steer http://127.0.0.1:1 --guard http://other:9200/_search", &["a path on that cluster"]),
    ("load http://127.0.0.1:1 --timeout 0s", &["--timeout", "above 0"]),
    ("load http://127.0.0.1:1 --operation search --body {}", &["without it, for example --index logs --body '{"]),
    ("load http://127.0.0.1:1 --corpus pmc", &["--corpus would change nothing", "--operation bulk"]),
    ("load http://127.0.0.1:1 --threads 9", &["--threads 9", "--clients 9"]),
    ("dcp drain couchbase://a/b --for 0s", &["--for", "above 0"]),
    ("dcp drain couchbase://a/b --each --json", &["cannot be used with"]),
    ("compare a b --timeout 3s", &["give --store URL"]),
    ("explain http://127.0.0.1:1 --interval 20s", &["two looks"]),
    // What it is compared with is found before anybody looks.
    ("explain http://127.0.0.1:1 --diff nope", &["no run is called \"nope\""]),
    ("explain --rules --json", &["--rules"]),
    ("explain --rules --probe", &["--rules"]),
    ("explain --rules http://127.0.0.1:1", &["--rules"]),
    ("explain --rules --timeout 3s", &["--rules asks none"]),
    ("explain --rules --runs x", &["cannot be used with"]),
    ("explain a-run --insecure", &["this is over"]),
    ("what-if twin.toml --lose a --timeout 3s", &["is asked without one"]),
    ("what-if http://127.0.0.1:1 --save a.toml --draws 3", &["--draws is for an answer"]),
    ("plans remote-recovery --json", &["cannot be used with"]),
    ("plans --keys remote-recovery", &["--keys"]),
];

#[test]
fn what_cannot_be_or_has_no_effect_is_refused() {
    for (typed, words) in REFUSED {
        refused(&typed.split(' ').collect::<Vec<_>>(), words);
    }
}

/// What is no text is named, though not what may be a password.
#[cfg(unix)]
#[test]
fn an_argument_that_is_no_utf8_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let given = |args: &[&str], last: &[u8]| {
        command(args).arg(std::ffi::OsStr::from_bytes(last)).output().unwrap()
    };
    failed(&given(&["run"], b"pl\xff"), 2, &["tip: \"pl\\xFF\" is no UTF-8"]);
    let operation = ["load", "http://127.0.0.1:1", "--operation"];
    failed(&given(&operation, b"/\xfe"), 2, &["tip: \"/\\xFE\" is no UTF-8"]);
    let address = [b"http://u:", SECRET.as_bytes(), b"@h\xff"].concat();
    failed(&given(&["explain"], &address), 2, &["tip: \"***@h\\xFF\" is no UTF-8"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_found_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let runs = file.join("runs");
    failed(&narrows(&["run", "remote-recovery", "--runs", runs.to_str().unwrap()]), 1, &["file"]);
}

#[test]
fn plans_are_listed_in_words_and_in_json() {
    assert!(printed(&narrows(&["plans"])).contains("remote-recovery"));
    let listed = json(&narrows(&["plans", "--json"]));
    let plans = listed["plans"].as_array().unwrap();
    let names: Vec<&str> = plans.iter().map(|plan| plan["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"remote-recovery") && names.contains(&"shard-recovery"), "{names:?}");
}

#[test]
fn the_keys_of_plans_are_those_of_the_document() {
    let keys = printed(&narrows(&["plans", "--keys"]));
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plans.md");
    assert_eq!(keys, std::fs::read_to_string(document).unwrap());
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(printed(&narrows(&["completions", shell])).contains("narrows"), "{shell}");
    }
}

/// A page for each command that the help lists, and none for what it does not.
#[test]
fn manual_pages_are_written_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man/man1");
    done(&narrows(&["man", pages.to_str().unwrap()]));
    let mut names = commands();
    names.remove("help");
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        let page = std::fs::read_to_string(pages.join(format!("narrows-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let main = std::fs::read_to_string(pages.join("narrows.1")).unwrap();
    assert!(main.contains("narrows\\-run(1)") && !main.contains("narrows\\-man(1)"), "{main}");
    assert!(pages.join("narrows-dcp-drain.1").is_file());
    assert!(!pages.join("narrows-node.1").exists());
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    failed(&narrows(&["man", file.to_str().unwrap()]), 1, &["manual pages", "file"]);
}

#[test]
fn a_calibration_is_a_table_that_plans_can_hold() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, file) = (dir.path().to_str().unwrap(), dir.path().join("virtual.toml"));
    let args =
        ["calibrate", "--laps", "1", "--dir", disk, "--json", "--write", file.to_str().unwrap()];
    let calibration = json(&narrows(&args));
    let figures = calibration["parameters"].as_array().unwrap();
    let written = std::fs::read_to_string(&file).unwrap();
    let plan: toml::Table = written.parse().unwrap();
    let table = plan["virtual"].as_table().unwrap();
    assert_eq!(table.len(), figures.len());
    let mut models = world::model::Models::default();
    for figure in figures {
        let entry = &table[figure["name"].as_str().unwrap()];
        assert_eq!(entry["value"].as_str(), figure["value"].as_str());
        assert!(entry["source"].as_str().unwrap().starts_with("measured on "));
        models.set(figure["name"].as_str().unwrap(), entry["value"].as_str().unwrap()).unwrap();
    }
    assert_ne!(models, world::model::Models::default());
}

/// The whole way: real processes, a real link, a run small enough for a test; then the record again.
#[test]
fn a_small_run_is_measured_verified_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().to_str().unwrap();
    let plan = ["run", "remote-recovery", "--scale", "0.01", "--rtt", "40ms", "--rate", "400mbit"];
    let found = json(&narrows(&[&plan[..], &["--json", "--runs", runs]].concat()));
    assert_eq!((&found["plan"], &found["target"]), (&"remote-recovery".into(), &"embedded".into()));
    let rows = found["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["variant"].as_str().unwrap()).collect();
    assert_eq!(names, ["64 KB x 1", "1 MB x 1", "5 MB x 1", "1 MB x 5", "adaptive"]);
    for row in rows {
        assert_eq!(row["verified"], true, "{row}");
        assert_eq!(row["documents"], rows[0]["documents"]);
        let shares: f64 =
            row["limits"].as_array().unwrap().iter().map(|l| l["share"].as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{row}");
    }
    // Three shards, a round trip a chunk. The machine's disk may hold it for longer, where others keep that busy.
    let least = rows[0]["bytes"].as_f64().unwrap() / f64::from(64 << 10) / 3.0 * 0.04;
    let limits = rows[0]["limits"].as_array().unwrap();
    let latency = limits.iter().find(|limit| limit["limit"] == "latency").unwrap();
    let waited = latency["share"].as_f64().unwrap() * rows[0]["seconds"].as_f64().unwrap();
    assert!(waited > least / 2.0, "{waited} s of {least} s: {}", rows[0]);
    assert_eq!(rows[0]["published_s"], 14384.9);
    assert_eq!(rows[4]["published_s"], Value::Null);
    let run = found["run"].as_str().unwrap();
    let page = Path::new(runs).join(run).join("report.html");
    assert!(std::fs::metadata(&page).unwrap().len() > 20_000);
    std::fs::remove_file(&page).unwrap();
    done(&narrows(&["report", run, "--runs", runs]));
    assert!(page.is_file());
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reads = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    done(&narrows(&["report", run, "--runs", runs, "--output", pipe.to_str().unwrap()]));
    assert!(!pipe.is_file(), "a pipe gets the page, and stays one");
    assert_eq!(reads.join().unwrap(), std::fs::read(&page).unwrap());
    let shown = printed(&narrows(&["show", "last", "--runs", runs]));
    assert!(shown.contains("adaptive") && shown.contains("64 KB x 1"), "{shown}");
    let csv = printed(&narrows(&["show", "--csv", "--runs", runs]));
    assert_eq!(csv.lines().count(), 6, "{csv}");
}

#[test]
fn explain_judges_one_and_says_what_compares_two() {
    let dir = tempfile::tempdir().unwrap();
    let transcript = |name: &str| {
        let dir = dir.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("transcript.jsonl"), "").unwrap();
        dir.to_str().unwrap().to_owned()
    };
    let (then, now) = (transcript("then"), transcript("now"));
    let diff = format!("narrows explain {now} --diff {then}");
    refused(&["explain", &then, &now], &["explain judges one", &diff]);
    refused(&["explain", "http://127.0.0.1:1", &then], &["is a run, and the rest is not"]);
}
