//! Clusters and their proxies on bad days: each is one sentence that says what to do, exit code 2, and nothing changed.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use testbed::tls::Authority;

use crate::common::answering::{CALM, answering, answering_heads, falls_silent, in_http};
use crate::common::running::Running;
use crate::common::tls::guarded_end;
use crate::common::{SECRET, command, done, failed, narrows, refused};

/// The password is not repeated, though the message says what was given.
#[test]
fn a_password_in_an_address_is_refused_wherever_it_stands() {
    for password in [SECRET.to_owned(), format!("{SECRET},3")] {
        let address = format!("https://elastic:{password}@es:9200");
        refused(&["watch", &address], &["NARROWS_PASSWORD", "--credentials", "https://es:9200"]);
        for command in [&["run", "replica-over-link"][..], &["diagnose"], &["published"]] {
            let asked = [command, &["--on", &address]].concat();
            refused(&asked, &["'***@es:9200' for '--on <WHERE>'", "NARROWS_PASSWORD"]);
        }
        refused(&["run", "replica-over-link", &address], &["'***@es:9200'"]);
        refused(&[&address], &["'***@es:9200'"]);
    }
}

/// A server that answers everything alike, as long as the test runs.
struct Server {
    url: String,
    /// Heads of the requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(body: &'static str) -> Server {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let told = asked.clone();
        let url = answering_heads(move |head| {
            told.lock().unwrap().push(head.to_owned());
            Some(in_http("200 OK", body))
        });
        Server { url, asked }
    }

    #[track_caller]
    fn was_only_read(&self) {
        let asked = self.asked.lock().unwrap();
        let changes =
            |head: &String| ["PUT ", "POST ", "DELETE "].iter().any(|m| head.starts_with(m));
        assert!(!asked.is_empty() && !asked.iter().any(changes), "{asked:?}");
    }
}

#[test]
fn whoever_answers_instead_of_a_cluster_is_one_sentence_and_exit_code_2() {
    const HTML: &str = "<html><title>Bad Gateway</title></html>";
    const SECURITY: &str =
        r#"{"error":{"type":"security_exception","reason":"no permissions"},"status":403}"#;
    for (status, body, words) in [
        ("401 Unauthorized", SECURITY, ["401", "NARROWS_USER"]),
        ("502 Bad Gateway", HTML, ["HTML", "proxy"]),
        ("200 OK", HTML, ["HTML", "address of a node"]),
        ("200 OK", r#"{"hello":"world"}"#, ["neither Elasticsearch nor OpenSearch", "node"]),
        ("429 Too Many Requests", "{}", ["429", "/"]),
        ("302 Found", "", ["302: it leads elsewhere", "curl -I"]),
    ] {
        let address = answering(move |_| Some((status, body)));
        refused(&["explain", &address, "--for", "1s"], &words);
        refused(&["watch", &address, "--for", "1s", "--plain"], &words);
    }
    // A version never seen is looked at if one says so.
    let root = r#"{"cluster_name":"c","version":{"number":"42.0.0","distribution":"opensearch"}}"#;
    let address = answering(move |_| Some(("200 OK", root)));
    refused(&["explain", &address], &["opensearch 42.0.0 was never tried", "--any-version"]);
    done(&narrows(&["explain", &address, "--for", "1s", "--any-version"]));
}

/// A node answers there in words that are no HTTP.
#[test]
fn the_port_at_which_nodes_speak_to_each_other_is_named() {
    let url = answering_heads(|_| Some(b"This is not an HTTP port".to_vec()));
    refused(&["explain", &url, "--for", "1s"], &["speaks no HTTP", "9300", "http://HOST:9200"]);
}

/// As a cluster without a manager, whichever of its hosts is asked.
#[test]
fn what_answers_nothing_is_not_healthy() {
    let host = || {
        answering(|path| match path {
            "/" => Some(("200 OK", CALM)),
            _ => Some(("503 Service Unavailable", "{}")),
        })
    };
    for urls in [host(), format!("{},{}", host(), host())] {
        let look = ["explain", &urls, "--for", "1s", "--interval", "250ms", "--json"];
        let output = narrows(&look);
        failed(&output, 1, &["no verdict is possible", "/_recovery"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let headline = found["headline"].as_str().unwrap();
        assert!(headline.starts_with("not known: "), "{headline}");
        assert!(found["gaps"].to_string().contains("/_recovery"), "{found:#}");
    }
}

/// A host that takes connections and answers none has not answered a look.
#[test]
fn a_cluster_that_falls_silent_is_in_trouble() {
    let url = falls_silent(|| ());
    let (time, timeout) = (["--for", "5m", "--interval", "200ms"], ["--timeout", "5s"]);
    let watch = [&["watch", &url, "--json"][..], &time, &timeout].concat();
    let mut watch = Running::start(command(&watch).stdout(Stdio::piped()).stderr(Stdio::null()));
    let look = watch.find(|look| !look["trouble"].is_null()).expect("nobody answers any more");
    let trouble = look["trouble"].to_string();
    assert!(trouble.contains("did not answer GET /_cluster/health"), "{trouble}");
    assert_eq!(look["headline"], "unknown: the cluster does not answer");
}

/// A run on a cluster that answers so is refused in these words.
#[track_caller]
fn is_not_changed(answers: &'static str, more: &[&str], words: &[&str]) {
    let (server, runs) = (Server::start(answers), tempfile::tempdir().unwrap());
    let run = ["run", "replica-over-link", "--on", &server.url, "--allow-changes", "--runs"];
    refused(&[&run[..], &[runs.path().to_str().unwrap()], more].concat(), words);
    server.was_only_read();
}

/// Its data cannot be reached: nothing is tried on it, and nothing is changed.
#[test]
fn a_red_cluster_is_left_alone() {
    const RED: &str = r#"{"cluster_name":"c","cluster_uuid":"u","status":"red","unassigned_shards":3,
        "version":{"number":"2.19.1","distribution":"opensearch"}}"#;
    is_not_changed(RED, &[], &["red", "3 unassigned", "nothing was changed", "narrows explain"]);
}

#[test]
fn a_version_never_seen_is_not_changed() {
    const FUTURE: &str = r#"{"cluster_name":"c","cluster_uuid":"u","status":"green",
        "version":{"number":"42.0.0","distribution":"opensearch"}}"#;
    is_not_changed(FUTURE, &[], &["opensearch 42.0.0 was never tried", "--any-version"]);
    // Where one says so it goes on, as far as this server lets it: there are no nodes.
    is_not_changed(FUTURE, &["--any-version"], &["has 0 data nodes"]);
}

#[test]
fn wrong_authorities_and_wrong_protocols_are_named() {
    let (ours, others) = (Authority::new(), Authority::new());
    let (ca, other_ca) = (ours.file("ca.pem"), others.file("ca.pem"));
    let plain = Server::start(CALM);
    let address = plain.url.trim_start_matches("http://");
    // printf 'watcher:open-sesame-4711' | base64
    let known = "Basic d2F0Y2hlcjpvcGVuLXNlc2FtZS00NzEx";
    let secure = guarded_end(address, known, ours.config.clone());
    let https = |address: &str| format!("https://{address}");
    for command in ["explain", "watch"] {
        refused(&[command, &https(&secure), "--ca", &other_ca, "--for", "1s"], &["--ca FILE"]);
        refused(&[command, &https(&secure), "--for", "1s"], &["--ca FILE"]);
        refused(&[command, &secure, "--for", "1s"], &["speaks TLS", "https://"]);
        refused(&[command, &https(address), "--for", "1s"], &["plain HTTP", "http://"]);
    }
    let of_authority = https(&guarded_end(address, known, ours.of_authority.clone()));
    refused(&["explain", &of_authority, "--ca", &ca, "--for", "1s"], &["CA:TRUE", "--insecure"]);
    done(&narrows(&["explain", &https(&secure), "--ca", &ca, "--for", "1s"]));
    plain.was_only_read();
}
