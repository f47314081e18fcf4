//! `narrows watch --web` and `--serve-metrics` as whoever asks them finds them: who is answered, with what, and how
//! they end.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use testbed::tls::Authority;

use crate::common::answering::{CALM, answering};
use crate::common::cluster::{Cluster, ask_over, connect};
use crate::common::large::Large;
use crate::common::steered::{Steering, steer};
use crate::common::watched::Watched;
use crate::common::{
    PATIENCE, assert_no_secret, done, narrows, noise, private, refused, signal, until, until_found,
};
use crate::steer::recovering;

const TOKEN: &str = "a-token-of-sufficient-length";

fn ask(address: &str, head: &str) -> (u16, String, String) {
    ask_over(connect(address), &format!("{head}\r\n\r\n"))
}

fn get(address: &str, path: &str) -> (u16, String, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: {address}"))
}

/// An event of a page: its name and its JSON.
type Event = (String, Value);

/// The first events of a page.
fn events(address: &str, count: usize) -> Vec<Event> {
    events_until(address, |found| found.len() == count)
}

/// Events of a page, from its first on, until they are enough.
fn events_until(address: &str, is_enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let give_up = Instant::now() + PATIENCE;
    let mut stream = connect(address);
    write!(stream, "GET /events HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut found = Vec::new();
    while !is_enough(&found) {
        assert!(Instant::now() < give_up, "{:?}", found.last());
        let line = lines.next().expect("it goes on");
        if let Some(name) = line.strip_prefix("event: ") {
            let data = lines.next().unwrap();
            let json = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            found.push((name.to_owned(), json));
        }
    }
    found
}

#[test]
fn a_page_is_sent_once_and_then_every_look() {
    let (one, two) = (Cluster::start(1), Cluster::start_with(1, |c| c.args(["--name", "second"])));
    let arguments = ["--web", "127.0.0.1:0", one.url(), "--also", two.url(), "--interval", "200ms"];
    let watched = Watched::start(&arguments);
    let address = watched.address();
    let (status, head, page) = get(address, "/");
    assert_eq!(status, 200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "default-src 'none'; connect-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "script-src 'sha256-",
        "style-src 'sha256-",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    assert!(!head.contains("unsafe") && !head.contains("access-control"), "{head}");
    // The page asks nobody else, and puts nothing in as HTML.
    for forbidden in ["innerHTML", "insertAdjacentHTML", "document.write", "eval(", " src=", "url("]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let elsewhere =
        page.matches("://").count() - page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(elsewhere, 0, "addresses in the page");

    let look_of = |found: &[Event], cluster: u64| {
        let mut looks = found.iter().filter(|(name, _)| name == "look").map(|(_, look)| look);
        looks.find(|look| look["cluster"] == cluster).cloned()
    };
    let both = |found: &[Event]| [0, 1].iter().all(|cluster| look_of(found, *cluster).is_some());
    let found = events_until(address, |found| found.len() >= 6 && both(found));
    assert_eq!(found[0].0, "all");
    let names: Vec<_> = found[0].1.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["narrows", "second"]);
    let look = look_of(&found, 1).unwrap();
    let frame = &look["frame"];
    assert_eq!((&frame["health"], &frame["totals"]["green"]), (&"green".into(), &"now".into()));
    let at_ms = frame["at_ms"].as_u64().unwrap();
    let (status, _, earlier) = get(address, &format!("/at?cluster=1&ms={at_ms}"));
    assert_eq!(status, 200);
    assert!(
        serde_json::from_str::<Value>(&earlier).unwrap()["at_ms"].as_u64().unwrap()
            > 1_600_000_000_000
    );
    for nothing in
        ["/at?cluster=2&ms=1", "/at?cluster=0", "/at?cluster=-1&ms=x", "/metrics", "/../etc", "//"]
    {
        assert_eq!(get(address, nothing).0, 404, "{nothing}");
    }
    for (_, event) in &found {
        assert_no_secret(event.to_string().as_bytes());
    }
    assert_no_secret(page.as_bytes());
    assert_eq!(watched.end("TERM"), Some(0));
}

/// Of two clusters one is steered, and of the other it was asked what happens to it.
#[test]
fn what_steer_and_what_if_left_is_on_the_page_of_that_cluster_alone() {
    let (steered, calm, dir) = (recovering(), Cluster::start(2), tempfile::tempdir().unwrap());
    let runs = dir.path().to_str().unwrap();
    noise::fill(&calm, 1, 500);
    calm.set(&json!({ "indices.recovery.max_bytes_per_sec": "1mb" }));
    let both = [steered.url(), "--also", calm.url(), "--interval", "200ms"];
    let watched = Watched::start(&[&["--web", "127.0.0.1:0", "--runs", runs], &both[..]].concat());
    let of = |cluster: usize, key: &str| {
        let all = events(watched.address(), 1).remove(0).1;
        all[cluster].get(key).cloned().unwrap_or_default()
    };
    for (cluster, key) in [(0, "steering"), (0, "outlook"), (1, "steering"), (1, "outlook")] {
        assert_eq!(of(cluster, key), Value::Null, "nothing was left yet");
    }
    let more = ["--apply", "--max", "indices.recovery.max_bytes_per_sec=2mb"];
    let mut steering = Steering::start(steer(steered.url(), dir.path(), &more));
    let kept = steering.until("keep");
    let asked = ["what-if", calm.url(), "--replicas", "logs=1", "--draws", "1", "--runs", runs];
    done(&narrows(&asked));
    let until = |cluster: usize, key: &str, is_it: &dyn Fn(&Value) -> bool| {
        until_found(|| of(cluster, key), is_it)
    };
    let steps = until(0, "steering", &|found| found["runs"][0]["steps"][0]["result"] == "kept");
    let allowed = steps["runs"][0]["allowed"].as_str().unwrap();
    assert!(allowed.starts_with("indices.recovery.max_bytes_per_sec up to 2mb, "), "{steps}");
    let step = &steps["runs"][0]["steps"][0];
    for key in ["setting", "from", "to", "holds", "why"] {
        assert_eq!(step[key], kept[key], "{step}");
    }
    let trial = step["at_ms"].as_u64().unwrap()..=step["ended_ms"].as_u64().unwrap();
    assert!(!trial.is_empty() && *trial.start() > 1_600_000_000_000, "{step}");
    assert_eq!(step["got"].as_str().unwrap().split(' ').nth(1), Some("times"), "{step}");
    let outlook = until(1, "outlook", &|found| !found.is_null());
    assert_eq!((&outlook["until"], &outlook["lost"]), (&"green".into(), &Value::Array(vec![])));
    assert!(outlook["answers"][0]["words"].as_str().unwrap().starts_with("green in "), "{outlook}");
    assert!(outlook["curve"][0]["bytes"].as_u64().unwrap() > 1_000_000, "{outlook}");
    assert_eq!((of(0, "outlook"), of(1, "steering")), (Value::Null, Value::Null));
    signal(steering.child.id(), "TERM");
    steering.end(0);
    let ended = until(0, "steering", &|found| !found["runs"][0]["end"].is_null());
    assert!(
        ended["runs"][0]["end"]["why"].as_str().unwrap().contains("every setting is as it was"),
        "{ended}"
    );
}

#[test]
fn strangers_are_not_answered() {
    let cluster = Cluster::start(1);
    let arguments = [cluster.url(), "--web", "127.0.0.1:0", "--allow-host", "watch.example"];
    let watched = Watched::start(&arguments);
    let address = watched.address();
    let status = |head: &str| ask(address, head).0;
    assert_eq!(status("GET / HTTP/1.1\r\nhost: watch.example"), 200);
    let own = format!("GET / HTTP/1.1\r\nhost: {address}");
    assert_eq!(status(&format!("{own}\r\norigin: http://{address}")), 200);
    let refusals = [
        ("GET /events HTTP/1.1\r\nhost: evil.example".to_owned(), 403),
        ("GET / HTTP/1.1".to_owned(), 403),
        ("GET / HTTP/1.0".to_owned(), 403),
        (format!("{own}\r\nhost: {address}"), 403),
        (format!("{own}\r\norigin: http://evil.example"), 403),
        (format!("{own}\r\norigin: null"), 403),
        (format!("{own}\r\norigin: http://{address}\r\norigin: http://{address}"), 403),
        (format!("POST / HTTP/1.1\r\nhost: {address}"), 405),
        (format!("DELETE / HTTP/1.1\r\nhost: {address}"), 405),
        (format!("OPTIONS / HTTP/1.1\r\nhost: {address}"), 405),
        (format!("{own}\r\nx: {}", "x".repeat(16 << 10)), 431),
    ];
    for (head, expected) in refusals {
        assert_eq!(status(&head), expected, "{}", &head[..head.len().min(120)]);
    }
    let (_, _, said) = ask(address, "GET / HTTP/1.1\r\nhost: evil.example:80");
    assert!(said.contains("--allow-host evil.example"), "{said}");
    assert_eq!(watched.end("INT"), Some(0));
}

#[test]
fn only_so_many_pages_are_open_and_the_others_are_told() {
    let cluster = Cluster::start(1);
    let watched = Watched::start(&[cluster.url(), "--web", "127.0.0.1:0"]);
    let address = watched.address();
    let mut open = Vec::new();
    for _ in 0..64 {
        let mut stream = connect(address);
        write!(stream, "GET /events HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        open.push(stream);
    }
    let mut more = connect(address);
    let mut answer = String::new();
    more.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    drop(open);
    // What was closed makes room as soon as the next look is sent.
    until("there is no room", || {
        let mut stream = connect(address);
        let _ = write!(stream, "GET / HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer.starts_with(b"HTTP/1.1 200")
    });
}

#[test]
fn beyond_loopback_it_takes_a_token_and_tls() {
    let cluster = Cluster::start(1);
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (cert, key) = (authority.file("cert.pem"), authority.file("key.pem"));
    let token = private(dir.path(), &format!("token = \"{TOKEN}\"\n"));
    let (url, everybody) = (cluster.url(), "0.0.0.0:0");
    refused(&["watch", url, "--web", everybody], &["--web-token-file", "--web-cert", "ssh -L"]);
    refused(&["watch", url, "--serve-metrics", everybody], &["--web-token-file"]);
    let tls = ["--web-cert", &cert, "--web-key", &key];
    refused(&[&["watch", url, "--web", everybody], &tls[..]].concat(), &["give --web-token-file"]);
    refused(
        &["watch", url, "--web", everybody, "--web-token-file", &token],
        &["give --web-cert FILE and --web-key"],
    );
    let all = [&[url, "--web", everybody, "--web-token-file", &token], &tls[..]].concat();
    let watched = Watched::start(&all);
    assert!(watched.url().starts_with("https://0.0.0.0:"), "{}", watched.url());
    let port = watched.address().rsplit(':').next().unwrap().to_owned();
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.clone()).unwrap();
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let config = Arc::new(config);
    let ask = |more: &str| {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(config.clone(), name).unwrap();
        let stream = StreamOwned::new(connection, connect(&format!("127.0.0.1:{port}")));
        ask_over(stream, &format!("GET / HTTP/1.1\r\nhost: localhost:{port}{more}\r\n\r\n"))
    };
    let (status, head, _) = ask("");
    assert_eq!(status, 401);
    assert!(head.contains("www-authenticate: basic"), "{head}");
    assert_eq!(ask("\r\nauthorization: Bearer another-token-of-length").0, 401);
    assert_eq!(ask(&format!("\r\nauthorization: Bearer {TOKEN}")).0, 200);
    // The same as browsers write it: narrows:a-token-of-sufficient-length.
    let basic = "bmFycm93czphLXRva2VuLW9mLXN1ZmZpY2llbnQtbGVuZ3Ro";
    assert_eq!(ask(&format!("\r\nauthorization: Basic {basic}")).0, 200);
    // Whoever speaks no TLS is not answered at all.
    let mut plain = connect(&format!("127.0.0.1:{port}"));
    write!(plain, "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn what_is_asked_wrongly_is_said_with_what_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:1";
    refused(&["watch", "--web"], &["which cluster", "narrows watch http://localhost:9200 --web"]);
    refused(&["watch", "--web", "es:9200"], &["which cluster"]);
    refused(&["watch", url, "--web", "es:9200"], &["no address to listen on", "127.0.0.1:9290"]);
    refused(&["watch", url, "--also", url], &["--also goes with --web"]);
    for option in ["--web-token-file", "--allow-host"] {
        // Whoever asks for a token believes that something is behind it.
        refused(&["watch", url, "--plain", option, "x"], &[option, "goes with --web"]);
    }
    refused(&["watch", url, "--web", "--also", url], &["stands there twice"]);
    refused(&["watch", url, "--web", "--plain"], &["--plain"]);
    refused(&["watch", url, "--web", "--web-cert", "x"], &["--web-key"]);
    refused(&["watch", "--web", url], &["127.0.0.1:1"]);
    let short = private(dir.path(), "token = \"short\"\n");
    refused(&["watch", url, "--web", "--web-token-file", &short], &["fewer than 16"]);
    let user = private(dir.path(), "user = \"a\"\npassword = \"b\"\n");
    refused(&["watch", url, "--web", "--web-token-file", &user], &["token = "]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let cluster = Cluster::start(1);
    let address = taken.local_addr().unwrap().to_string();
    refused(&["watch", cluster.url(), "--web", &address], &[&address, "--web 127.0.0.1:0"]);
}

#[test]
fn figures_are_told_in_openmetrics_and_none_while_nobody_answers() {
    let cluster = Cluster::start(2);
    let arguments = [cluster.url(), "--serve-metrics", "127.0.0.1:0", "--interval", "200ms"];
    let watched = Watched::start(&arguments);
    let address = watched.address();
    let figures = || {
        let (status, head, text) = get(address, "/metrics");
        assert_eq!(status, 200);
        assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        assert_no_secret(text.as_bytes());
        text
    };
    let until = |words: &str| until_found(&figures, |text| text.contains(words));
    until("narrows_up{cluster=\"narrows\"} 1");
    for line in [
        "# TYPE narrows_up gauge",
        "# UNIT narrows_time_to_green_seconds seconds",
        "narrows_health{cluster=\"narrows\",status=\"green\"} 1",
        "narrows_health{cluster=\"narrows\",status=\"red\"} 0",
        "narrows_time_to_green_seconds{cluster=\"narrows\",bound=\"late\"} 0",
        "narrows_copies{cluster=\"narrows\",state=\"unassigned\"} 0",
        "narrows_looks_total{cluster=\"narrows\"} ",
        "narrows_node_gone{cluster=\"narrows\",node=\"narrows-0\"} 0",
    ] {
        until(line);
    }
    assert_eq!(get(address, "/").0, 404, "figures alone were asked for");
    drop(cluster);
    let text = until("narrows_up{cluster=\"narrows\"} 0");
    assert!(
        text.contains("narrows_answer_age_seconds") && !text.contains("narrows_health{"),
        "{text}"
    );
}

/// As where they have expired: it is asked no more, and the others are watched on.
#[test]
fn a_cluster_that_refuses_the_credentials_ends_no_other_page() {
    let calm = answering(|_| Some(("200 OK", CALM)));
    let mut healths = 0;
    let refusing = answering(move |path| {
        healths += u32::from(path.starts_with("/_cluster/health"));
        Some(if healths < 2 { ("200 OK", CALM) } else { ("401 Unauthorized", "{}") })
    });
    let arguments = ["--web", "127.0.0.1:0", &calm, "--also", &refusing, "--interval", "200ms"];
    let watched = Watched::start(&arguments);
    // A page that is opened late begins with what the tab says by then.
    let is_over = |(name, event): &Event| {
        let is_its_own = name == "look" && event["cluster"] == 1;
        let frame = if is_its_own { event.get("frame") } else { event.pointer("/1/frame") };
        let trouble = frame.and_then(|frame| frame["trouble"].as_str());
        trouble.is_some_and(|words| words.contains("it is asked no more"))
    };
    let is_watched = |(_, event): &Event| event["cluster"] == 0;
    events_until(watched.address(), |found| {
        let at = found.iter().position(is_over);
        at.is_some_and(|at| found[at..].iter().any(is_watched))
    });
    assert_eq!(watched.end("TERM"), Some(0));
}

#[test]
fn a_large_cluster_is_shown_in_few_lines() {
    let url = Large::start(300, 20_000, 60, 900);
    let watched = Watched::start(&["--web", "127.0.0.1:0", &url, "--interval", "500ms"]);
    let is_held = |(_, look): &Event| look["frame"]["held"].to_string().contains("\"rate limit\"");
    let found = events_until(watched.address(), |found| {
        found.len() >= 12 && found.last().is_some_and(is_held)
    });
    let frame = &found.last().unwrap().1["frame"];
    // Nodes are sent where they were asked for again, and come with what a page begins with.
    let nodes = found.iter().rev().find_map(|(_, event)| {
        event.pointer("/frame/nodes").or(event.pointer("/0/frame/nodes"))?.as_array()
    });
    assert_eq!(nodes.unwrap().len(), 300);
    let looks = found.iter().filter(|(name, _)| name == "look").count();
    let with_nodes = found.iter().filter(|(_, event)| event.pointer("/frame/nodes").is_some());
    assert!(with_nodes.count() < looks / 2, "nodes are asked for every fifth second");
    assert_eq!(
        (&frame["totals"]["active"], &frame["totals"]["waiting"]),
        (&60.into(), &900.into())
    );
    // Three were asked about.
    let waits = frame["waiting"].as_array().unwrap();
    let last = waits.last().and_then(Value::as_str).unwrap();
    assert!(waits.len() == 2 && last.starts_with("897 replicas of "), "{waits:?}");
    assert_eq!(frame["waiting_more"], 0);
    let text = frame.to_string();
    assert!(text.len() < 200_000, "{} bytes a look", text.len());
    let classes: Vec<_> =
        frame["held"].as_array().unwrap().iter().map(|one| &one["class"]).collect();
    assert!(classes.iter().any(|class| *class == "rate limit"), "{classes:?}");
}
