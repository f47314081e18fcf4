//! Servers, plans, records and arguments that mean harm: none of their words commands the terminal.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use record::{
    FORMAT, Line, Machine, Manifest, NodeInfo, Row, RunDir, Status, TwinQuestion, VariantInfo,
    Writer,
};
use serde_json::json;

use crate::common::answering::{answering_heads, in_http};
use crate::common::running::Running;
use crate::common::{BINARY, printed, spawned, until_found};

/// Sets the terminal's title, clears it, overwrites the line, hides what follows, and turns its direction.
const HOSTILE: &str =
    "evil\x1b]0;owned\x07\x1b[2J\x1b[8m\rall is well\u{9b}31m\u{202e}txt\u{2066}\u{7f}";

fn narrows(args: &[&str]) -> Output {
    Command::new(BINARY).args(args).output().expect("the binary runs")
}

/// Whether a terminal would obey something of a text.
fn commands(text: &str) -> Option<char> {
    let text = text.replace("\r\n", "\n");
    let bidi = ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    text.chars().find(|c| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || bidi.iter().any(|range| range.contains(c))
    })
}

#[track_caller]
fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(commands(&text), None, "{text:?}");
    text
}

/// It ended with this code, and said these words of what is wrong, which command nothing.
#[track_caller]
fn harmless_and_failed(args: &[&str], code: i32, words: &[&str]) -> String {
    let output = narrows(args);
    let said = harmless(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: \"{word}\" is not in: {said}");
    }
    assert!(said.len() < 4000, "{} bytes", said.len());
    harmless(&output.stdout)
}

/// All that was said commands nothing, and repeats some of what the hostile side said.
#[track_caller]
fn harmless_and_told(args: &[&str]) {
    let output = narrows(args);
    let text = harmless(&output.stdout) + &harmless(&output.stderr);
    assert!(text.contains("\\u00"), "{args:?}: {text}");
}

/// A cluster whose every name is hostile, as far as `live` asks.
fn hostile_cluster(head: &str) -> Vec<u8> {
    let version = json!({ "distribution": "opensearch", "number": "2.19.1" });
    let recovery = json!({
        "id": 0, "type": "PEER", "stage": HOSTILE, "primary": false, "start_time_in_millis": 1,
        "total_time_in_millis": 1000, "source": { "name": HOSTILE }, "target": { "name": HOSTILE },
        "index": { "size": { "total_in_bytes": 1000, "recovered_in_bytes": 10 },
                   "files": { "total": 1, "recovered": 0 } },
    });
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path.split('?').next().unwrap_or_default() {
        "/" => (
            "200 OK",
            json!({ "cluster_name": HOSTILE, "cluster_uuid": "u", "name": HOSTILE, "version": version }),
        ),
        "/_cluster/health" => {
            ("200 OK", json!({ "cluster_name": HOSTILE, "status": HOSTILE, "number_of_nodes": 1 }))
        }
        recoveries if recoveries.ends_with("/_recovery") => {
            ("200 OK", json!({ HOSTILE: { "shards": [recovery] } }))
        }
        _ => (
            "500 Internal Server Error",
            json!({ "error": { "type": HOSTILE, "reason": HOSTILE }, "status": 500 }),
        ),
    };
    in_http(status, &body.to_string())
}

#[test]
fn a_hostile_cluster_commands_no_terminal() {
    let url = answering_heads(|head| Some(hostile_cluster(head)));
    harmless_and_told(&["explain", &url, "--for", "1s", "--interval", "250ms"]);
    harmless_and_told(&["watch", &url, "--plain", "--for", "600ms", "--interval", "200ms"]);
    let run = ["run", "replica-over-link", "--on", &url, "--allow-changes", "--runs"];
    let runs = tempfile::tempdir().unwrap();
    harmless_and_told(&[&run[..], &[runs.path().to_str().unwrap()]].concat());
    // JSON says the same to a script as before.
    let json = narrows(&["watch", &url, "--json", "--for", "300ms", "--interval", "200ms"]);
    let first = harmless(&json.stdout);
    let value: serde_json::Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!(value["observation"]["cluster"]["name"], HOSTILE);
}

#[test]
fn an_answer_that_is_no_http_commands_no_terminal() {
    for reason in [
        "HTTP/1.1 200 \x1b[2Jfine\r\n\r\n",
        "\x1b]0;owned\x07\r\n\r\n",
        "HTTP/1.1 500 \x1b[8m\r\n\r\n\x1b[2J",
    ] {
        let url = answering_heads(|_| Some(reason.as_bytes().to_vec()));
        for (command, time) in [("explain", "--for"), ("load", "--duration"), ("watch", "--for")] {
            let output = narrows(&[command, &url, "--timeout", "2s", time, "1s"]);
            harmless(&output.stdout);
            harmless(&output.stderr);
            assert_ne!(output.status.code(), Some(101));
        }
    }
}

fn hostile_manifest() -> Manifest {
    let evil = || HOSTILE.to_owned();
    Manifest {
        plan: evil(),
        about: evil(),
        plan_text: evil(),
        target: evil(),
        started: evil(),
        version: evil(),
        status: Status::Complete,
        machine: Machine { os: evil(), cpu: evil(), cores: 1, memory_bytes: 1 },
        nodes: vec![NodeInfo { cluster: evil(), name: evil() }],
        challenge: Some(evil()),
        question: Some(TwinQuestion { asked: evil(), until: evil() }),
        changes: vec![evil()],
        variants: [HOSTILE, "b"]
            .map(|name| VariantInfo {
                name: name.to_owned(),
                settings: [(evil(), evil())].into(),
                ..VariantInfo::default()
            })
            .to_vec(),
        ..Manifest::unknown("r", FORMAT)
    }
}

fn write_record(runs: &Path, manifest: &Manifest) -> std::path::PathBuf {
    let dir = runs.join(&manifest.run);
    let mut writer = Writer::create(&dir, manifest).unwrap();
    writer.row(&Row::measured(HOSTILE, 1, 2.0, 1000)).unwrap();
    writer.row(&Row::measured("b", 1, 1.0, 1000)).unwrap();
    let text = HOSTILE.to_owned();
    writer.line(&Line::Note { t_ms: 1.0, variant: Some(text.clone()), text }).unwrap();
    dir
}

#[test]
fn a_hostile_record_commands_no_terminal() {
    let runs = tempfile::tempdir().unwrap();
    let dir = write_record(runs.path(), &hostile_manifest());
    let run = dir.to_str().unwrap();
    for form in [&[][..], &["--csv"], &["--json"]] {
        harmless_and_told(&[&["show", run][..], form].concat());
    }
    harmless_and_told(&["explain", run]);
    assert_eq!(narrows(&["report", run]).status.code(), Some(0));
    let page = std::fs::read(dir.join("report.html")).unwrap();
    assert!(harmless(&page).contains("\\u001b"));
    // A directory's name is no better than what is in it.
    let named = runs.path().join("\x1b[2J");
    std::fs::rename(&dir, &named).unwrap();
    harmless_and_told(&["show", named.to_str().unwrap()]);
    harmless_and_told(&["show", "nothing", "--runs", named.to_str().unwrap()]);
}

#[test]
fn a_hostile_plan_and_hostile_arguments_command_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    let text = printed(&narrows(&["plans", "remote-recovery"]));
    let quoted = |text: &str| serde_json::to_string(text).unwrap().replace('\u{7f}', "\\u007f");
    for (from, to) in [
        ("\"64 KB x 1\"", quoted(HOSTILE)),
        ("name = \"remote-recovery\"", format!("name = {}", quoted(HOSTILE))),
        ("name = \"remote-recovery\"", format!("{} = 1", quoted(HOSTILE))),
        ("name = \"remote-recovery\"", "name = \"\x1b[2J\"".to_owned()),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, &to, 1)).unwrap();
        let runs = dir.path().to_str().unwrap();
        harmless_and_failed(&["run", path.to_str().unwrap(), "--runs", runs], 2, &[]);
    }
    for args in [&["run", HOSTILE][..], &[HOSTILE], &["run", "a", "--rtt", HOSTILE]] {
        harmless_and_told(args);
    }
}

#[test]
fn a_damaged_record_says_what_is_missing_and_shows_the_rest() {
    let runs = tempfile::tempdir().unwrap();
    let mut manifest = hostile_manifest();
    manifest.variants.iter_mut().zip(["a", "b"]).for_each(|(variant, name)| {
        variant.name = name.to_owned();
    });
    let dir = write_record(runs.path(), &manifest);
    let run = dir.to_str().unwrap();
    let whole = std::fs::read(dir.join("rows.jsonl")).unwrap();
    let shown = |what: &str, code: i32| {
        let output = narrows(&["show", run]);
        assert_eq!(output.status.code(), Some(code), "{what}");
        // Sentences are broken into lines where the terminal's width ends.
        let text = String::from_utf8(output.stdout).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(what), "\"{what}\" is not in: {text}");
        text
    };
    std::fs::write(dir.join("rows.jsonl"), &whole[..whole.len() - 5]).unwrap();
    shown("rows.jsonl breaks off in line 3", 0);
    std::fs::write(dir.join("rows.jsonl"), b"").unwrap();
    shown("rows.jsonl has lost its beginning", 0);
    std::fs::remove_file(dir.join("rows.jsonl")).unwrap();
    shown("rows.jsonl is missing", 0);
    std::fs::write(dir.join("rows.jsonl"), &whole).unwrap();
    std::fs::write(dir.join("manifest.json"), "{\"format\":4,").unwrap();
    let text = shown("manifest.json is damaged", 1);
    assert!(text.contains("b 1.00 s"), "the rows are shown: {text}");
    for command in ["show", "explain", "report"] {
        harmless_and_failed(&[command, run], 1, &["manifest.json of", "put a copy"]);
    }
    assert_eq!(RunDir::open(&dir).unwrap().damage.len(), 1);
    // Others are not measured against what is left of it.
    manifest.run = "sound".to_owned();
    let sound = write_record(runs.path(), &manifest);
    let sound = sound.to_str().unwrap();
    let damaged = format!("manifest.json of {run} is damaged");
    let kept_in = ["store", run, "--to", "http://127.0.0.1:1"];
    for args in [&["compare", sound, run][..], &["compare", run, sound], &kept_in] {
        let printed = harmless_and_failed(args, 1, &[&damaged]);
        assert_eq!(printed, "", "{args:?}");
    }
}

#[test]
fn a_link_does_not_lead_to_itself_and_is_bounded() {
    let port = testbed::free_port();
    let at = |host: &str| format!("{host}:{port}");
    for to in ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        let link = ["link", "--listen", &at("127.0.0.1"), "--to", &at(to)];
        harmless_and_failed(&link, 2, &["where it listens itself"]);
    }
    let behind = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = Command::new(BINARY);
    command.args(["link", "--listen", "127.0.0.1:0", "--connections", "2", "--to"]);
    command.arg(behind.local_addr().unwrap().to_string());
    let mut link = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let first = link.line();
    let address = first.split(' ').next().unwrap();
    // The link looked whether somebody is there.
    drop(behind.accept().unwrap());
    let mut near: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let far: Vec<TcpStream> = (0..2).map(|_| behind.accept().unwrap().0).collect();
    assert!(link.said().any(|line| line.contains("2 connections are open")));
    behind.set_nonblocking(true).unwrap();
    assert!(behind.accept().is_err(), "the third came through beside the others");
    behind.set_nonblocking(false).unwrap();
    // The third comes through when one of the others has closed.
    near[2].write_all(b"third").unwrap();
    near.remove(0);
    drop(far);
    let mut came = [0; 5];
    behind.accept().unwrap().0.read_exact(&mut came).unwrap();
    assert_eq!(&came, b"third");
}

/// Each connection opens another, until both carry as many as they may.
#[test]
fn links_that_lead_to_each_other_are_bounded_and_say_so() {
    let ports = [testbed::free_port(), testbed::free_port()];
    let at = |port: u16| format!("127.0.0.1:{port}");
    let start = |listen: u16, to: u16| {
        let args = ["link", "--connections", "5", "--listen", &at(listen), "--to", &at(to)];
        spawned(Command::new(BINARY).args(args))
    };
    let mut links = [start(ports[0], ports[1]), start(ports[1], ports[0])];
    // Both listen once both were reached: by then the second connection goes round.
    let reach = |port: u16| until_found(|| TcpStream::connect(at(port)).ok(), Option::is_some);
    let _near = ports.map(reach);
    let words = "5 connections are open, and --connections allows no more";
    let mut said = links.each_mut().map(Running::said);
    assert!(said.iter_mut().all(|lines| lines.any(|line| line.contains(words))));
    for link in &links {
        let handles = std::fs::read_dir(format!("/proc/{}/fd", link.id())).unwrap();
        let leads_to = handles.filter_map(|handle| std::fs::read_link(handle.ok()?.path()).ok());
        let sockets = leads_to.filter(|to| to.to_string_lossy().starts_with("socket:")).count();
        // Two of each connection; the listener, and what waits for signals.
        assert!((10..20).contains(&sockets), "{sockets} sockets");
    }
}

#[test]
fn a_link_says_what_to_write_and_that_nobody_answers() {
    for (listen, words) in [
        (":9901", "write host:port, as 127.0.0.1:9901"),
        ("localhost", "write host:port, as localhost:9300"),
        ("localhost:", "write host:port, as localhost:9300"),
        ("localhost:99999", "write host:port, as localhost:9300"),
        ("[::1]", "write host:port, as [::1]:9300"),
    ] {
        harmless_and_failed(&["link", "--listen", listen, "--to", "127.0.0.1:1"], 2, &[words]);
    }
    let to = "127.0.0.1:1";
    let mut command = Command::new(BINARY);
    let mut link = spawned(command.args(["link", "--listen", "127.0.0.1:0", "--to", to]));
    let first = link.said().next().unwrap_or_default();
    assert!(first.contains(&format!("nobody answers at {to} (Connection refused")), "{first}");
}

#[test]
fn what_cannot_run_is_found_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let (path, runs) = (dir.path().join("mine.toml"), dir.path().join("runs"));
    let text = printed(&narrows(&["plans", "remote-recovery"]));
    let refused = |args: &[&str], words: &str| {
        let args = [args, &["--runs", runs.to_str().unwrap()]].concat();
        harmless_and_failed(&args, 2, &[words]);
        assert!(!runs.exists());
    };
    let mine = path.to_str().unwrap();
    for (from, to, words) in [
        ("name = \"geopoint\"", "name = \"gone.json\"", "No such file"),
        ("name = \"geopoint\"", "name = \"mine.toml\"", "ending"),
        ("name = \"leader\"", "name = \"UPPER\"", "lower case"),
        ("name = \"leader\"", "name = \"a\\u001b\"", "cannot be seen"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        refused(&["run", mine], words);
    }
    std::fs::write(&path, format!("name = {} # {}", "\"", "x".repeat(1 << 20))).unwrap();
    refused(&["run", mine], "mine.toml:1:");
    refused(&["run", "remote-recovery", "--rtt", "90s"], "--rtt is out of range; give 0s to 60s");
    refused(&["run", "remote-recovery", "--laps", "4294967295"], "1 to 1000");
    refused(&["published", "remote-recovery", "--also", "nosuchdir"], "there is no such folder");
    let empty = tempfile::tempdir().unwrap();
    let also = ["published", "remote-recovery", "--also", empty.path().to_str().unwrap()];
    refused(&also, "it holds neither embedded.json nor opensearch.json");
    for late in [
        &["published", "remote-recovery", "--html", "no/such/page.html"][..],
        &["diagnose", "--on", "embedded", "--case", "link", "--write", "no/such/page.md"],
    ] {
        let late = [late, &["--runs", runs.to_str().unwrap()]].concat();
        harmless_and_failed(&late, 1, &["mkdir -p no/such"]);
        assert!(!runs.exists(), "nothing was run for a page that cannot be written");
    }
    for (args, words) in [
        (&["link", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1", "--window", "0b"][..], "1kb"),
        (&["link", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1", "--rtt", "90s"], "60s"),
        (&["cluster", "--nodes", "3", "--port", "65535"], "at most 65433"),
    ] {
        harmless_and_failed(args, 2, &[words]);
    }
}
