//! `narrows dcp serve` and `narrows dcp drain`, as processes.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::running::Running;
use crate::common::{
    BINARY, done, entries, failed, json, look_until, plans, printed, said, signal, until,
};

fn narrows(args: &[&str], password: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env("NARROWS_USER", "someone").env("NARROWS_PASSWORD", password);
    command.stdin(Stdio::null());
    command
}

/// It is refused in one sentence with these words.
#[track_caller]
fn refused(args: &[&str], password: &str, says: &str) {
    let output = narrows(args, password).output().unwrap();
    failed(&output, 2, &[says]);
    assert_eq!(said(&output).lines().count(), 1, "{args:?}: {}", said(&output));
}

/// A server with documents; it is stopped with the value.
struct Serving {
    child: Running,
    url: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        signal(self.child.id(), "INT");
        let ended = self.child.wait();
        if !std::thread::panicking() {
            assert!(ended.unwrap().success(), "the server did not end well");
        }
    }
}

fn serve(args: &[&str]) -> Serving {
    let (child, url) = started(serving(args));
    Serving { child, url }
}

fn serving(args: &[&str]) -> Command {
    narrows(&[&["dcp", "serve", "--port", "0"], args].concat(), "right")
}

fn started(mut command: Command) -> (Running, String) {
    let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let url = child.line();
    assert!(url.starts_with("couchbase://127.0.0.1:"), "{url}");
    (child, url.trim().to_owned())
}

#[test]
fn a_bucket_is_served_and_drained() {
    let server = serve(&["--items", "3000", "--item-size", "500b", "--vbuckets", "32"]);
    let url = server.url.as_str();
    let drained =
        narrows(&["dcp", "drain", url, "--json", "--connections", "3"], "right").output().unwrap();
    let shown = json(&drained);
    assert_eq!((&shown["items"], &shown["interrupted"]), (&3000.into(), &false.into()));
    let connections = shown["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 3);
    let of_vbuckets = connections.iter().flat_map(|c| c["vbuckets"].as_array().unwrap());
    assert_eq!(of_vbuckets.map(|vb| vb["items"].as_u64().unwrap()).sum::<u64>(), 3000);
    let table = ["dcp", "drain", url, "--each", "--vbuckets", "0-3"];
    let text = printed(&narrows(&table, "right").output().unwrap());
    assert!(text.contains("items/s") && text.contains("vbucket 3"), "{text}");
    let args = ["dcp", "drain", url, "--json", "--vbuckets", "3,40,41"];
    let left_out = narrows(&args, "right").output().unwrap();
    assert_eq!(json(&left_out)["not_active"], serde_json::json!([40, 41]));
    let said = String::from_utf8_lossy(&left_out.stderr);
    assert!(said.contains("vbuckets 40, 41 are active nowhere, and are left out"), "{said}");
    let capped =
        narrows(&["dcp", "drain", url, "--json", "--rate", "2MB/s"], "right").output().unwrap();
    let rate = json(&capped)["mb_per_s"].as_f64().unwrap();
    assert!(rate <= 2.0, "{rate}");
}

#[test]
fn the_files_of_a_server_that_was_killed_are_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let there = || {
        let mut command = serving(&["--vbuckets", "4"]);
        command.env("TMPDIR", dir.path());
        started(command)
    };
    there().0.kill();
    assert_eq!(entries(dir.path()).len(), 1, "nobody was left to remove it");
    let (child, url) = there();
    drop(Serving { child, url });
    assert!(entries(dir.path()).is_empty(), "{:?}", entries(dir.path()));
}

/// Whatever it had made by then.
#[test]
fn a_server_that_is_stopped_as_it_starts_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for ms in 0..25 {
        let mut command = serving(&["--vbuckets", "4"]);
        command.env("TMPDIR", dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = Running::start(&mut command);
        std::thread::sleep(Duration::from_millis(ms));
        until("it stops", || {
            signal(child.id(), "INT");
            child.try_wait().unwrap().is_some()
        });
        assert!(entries(dir.path()).is_empty(), "after {ms} ms: {:?}", entries(dir.path()));
    }
}

#[test]
fn ctrl_c_ends_a_drain_with_what_came() {
    let server = serve(&["--items", "1000", "--vbuckets", "4"]);
    // At that rate it takes a minute and a half.
    let args = ["dcp", "drain", &server.url, "--json", "--rate", "10kB/s"];
    let mut command = narrows(&args, "right");
    let child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    // What has come by then does not matter here, but that it listens does: from then on it drains. It begins with
    // SIGINT and ends with SIGUSR2, the twelfth signal. One that comes while its own handler is put in place is lost.
    until("it listens to Ctrl-C", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0x800 != 0
    });
    signal(child.id(), "INT");
    let shown = json(&child.wait_with_output());
    assert_eq!(shown["interrupted"], true, "{shown}");
}

#[test]
fn what_is_asked_wrongly_is_one_sentence_and_exit_code_2() {
    let server = serve(&["--vbuckets", "4"]);
    let url = server.url.as_str();
    let other = url.replace("/example", "/other");
    for (url, password, says) in [
        (url, "wrong", "AUTH_ERROR"),
        (other.as_str(), "right", "bucket \"other\""),
        ("couchbase://127.0.0.1:1/example", "right", "nobody listens there"),
        ("http://127.0.0.1/example", "right", "couchbase://HOST"),
        (url, "", "NARROWS_PASSWORD"),
    ] {
        refused(&["dcp", "drain", url], password, says);
    }
}

#[test]
fn a_bucket_that_cannot_be_is_not_served() {
    for (option, value, says) in [
        ("--bucket", "a b", "no name of a bucket"),
        ("--quota", "0", "at least 1mb"),
        ("--item-size", "2kb", "--items <N>"),
    ] {
        failed(&serving(&[option, value]).output().unwrap(), 2, &[says]);
    }
}

/// The bundled plan at a hundredth of its full size, with as large a share of the time in which nothing is streamed.
/// Its fast consumer is hardly slower than the proxy: this one is faster.
#[test]
fn explain_names_the_consumer_first_and_then_the_managers_proxy() {
    let bundled = include_str!("../../../../plans/dcp-rebalance.toml");
    let small = bundled.replace("2_000_000", "20_000").replace("\"1.7s\"", "\"17ms\"");
    assert!(small.contains(" 20_000") && small.contains("17ms"), "{small}");
    let fast = r#"{ "dcp.path" = "rebalance", "dcp.consumer" = "fast" }"#;
    let receive = r#""packets.receive" = { value = "1us", source = "ours" }"#;
    let small = small.replace(fast, &format!("{fast}\n[variant.virtual]\n{receive}"));
    assert!(small.contains(receive), "{small}");
    let variants = ["rebalance, mainstream", "rebalance, fast (measuring device)"];
    let variants = variants.map(|variant| ["--variant", variant]).concat();
    let (dir, ran) = plans::run(&small, "virtual", &variants);
    done(&ran);
    let runs = dir.path().join("runs");
    let runs = runs.to_str().unwrap();
    let said = printed(&narrows(&["explain", "last", "--runs", runs], "").output().unwrap());
    let mut lines = said.lines();
    let headline = lines.next().unwrap();
    assert_eq!(headline, "The consumer is the first limit, the manager's proxy the next", "{said}");
    let details: Vec<&str> = lines.take(2).collect();
    assert!(
        details[0].starts_with("rebalance, mainstream: ")
            && details[1].starts_with("rebalance, fast (measuring device): "),
        "{said}"
    );
    let again = narrows(&["explain", "last", "--runs", runs, "--json"], "").output().unwrap();
    let again = json(&again);
    assert_eq!((&again["headline"], &again["details"]), (&headline.into(), &details.into()));
}

/// A consumer that takes little is named, and what a bucket has not is refused by name.
#[test]
fn explain_names_what_holds_a_drain() {
    let server = serve(&["--items", "40000", "--vbuckets", "8"]);
    let url = server.url.as_str();
    let args = ["dcp", "drain", url, "--json", "--rate", "500kB/s", "--window", "100kb"];
    let mut drain = Running::start(narrows(&args, "right").stdout(Stdio::null()));
    let explain =
        |more: &[&str]| narrows(&[&["explain", url][..], more].concat(), "right").output().unwrap();
    let said = look_until(
        || json(&explain(&["--for", "3s", "--json"])),
        |said| said["findings"][0]["class"] == "dcp_consumer",
    );
    signal(drain.id(), "INT");
    drain.wait().unwrap();
    assert_eq!(said["findings"][0]["class"], "dcp_consumer", "{said}");
    assert!(said["cluster"].as_str().unwrap().starts_with("example, couchbase "), "{said}");
    let healthy = "healthy: the bucket sends on no DCP connection";
    // The server may hear of the end of a connection a little later.
    let idle = look_until(|| printed(&explain(&["--for", "1s"])), |idle| idle.contains(healthy));
    assert!(idle.contains(healthy), "{idle}");
    let (other, probe) = (url.replace("/example", "/other"), ["explain", url, "--probe"]);
    for (args, password, says) in [
        (&["explain", url][..], "wrong", "AUTH_ERROR"),
        (&["explain", other.as_str()], "right", "bucket \"other\""),
        (&["explain", "couchbase://127.0.0.1"], "right", "it names no bucket"),
        (&["explain", url, "http://localhost:9200"], "right", "only couchbase://"),
        (&["explain", url, other.as_str()], "right", "not of one bucket"),
        (&probe, "right", "--probe"),
        (&["watch", url], "right", "narrows explain"),
    ] {
        refused(args, password, says);
    }
}
