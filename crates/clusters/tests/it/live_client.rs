//! The client for live clusters against servers that behave as clusters and their proxies do on bad days.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clusters::live::{
    Address, Header, LiveClient, LiveOptions, Replay, Sampler, TlsOptions, Transcript,
};
use clusters::{ClusterIdentity, Credentials, Error, FollowApi, follow_api};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use serde_json::json;
use testbed::tls::Authority;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use world::{Env, Task};

use crate::looks::ROOT;

/// Answers what the test wants, in turn; the last answer is given for ever.
struct Server {
    address: String,
    seen: Seen,
    _task: Task<()>,
}

impl Server {
    /// A client of it alone.
    fn client(&self, env: &Env) -> LiveClient {
        client(env, std::slice::from_ref(&self.address), TlsOptions::default())
    }
}

/// Paths that were asked for, and what `Authorization` came with them.
type Seen = Rc<RefCell<Vec<(String, Option<String>)>>>;
/// Status and body of each answer.
type Answers = Rc<RefCell<VecDeque<(u16, &'static str)>>>;

async fn serve(
    env: &Env,
    tls: Option<Arc<ServerConfig>>,
    answers: &[(u16, &'static str)],
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    let answers: Answers = Rc::new(RefCell::new(answers.iter().copied().collect()));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (told, inner) = (seen.clone(), env.clone());
    let task = env.spawn("server", async move {
        let mut tasks = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (answers, told, tls) = (answers.clone(), told.clone(), tls.clone());
            tasks.push(inner.spawn("connection", async move {
                match tls {
                    None => speak(stream, answers, told).await,
                    Some(config) => {
                        let Ok(stream) = TlsAcceptor::from(config).accept(stream).await else {
                            return;
                        };
                        speak(stream, answers, told).await;
                    }
                }
            }));
        }
    });
    Server { address, seen, _task: task }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    answers: Answers,
    seen: Seen,
) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        seen.borrow_mut().push((request.uri().to_string(), header.map(str::to_owned)));
        let mut answers = answers.borrow_mut();
        let (status, body) =
            if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0] };
        async move {
            let body = Full::new(Bytes::from_static(body.as_bytes()));
            let answer = Response::builder().status(status).body(body);
            Ok::<_, std::convert::Infallible>(answer.unwrap())
        }
    });
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

fn options(urls: &[String]) -> LiveOptions {
    LiveOptions::anonymous(
        Address::parse_all(urls.iter().map(String::as_str)).unwrap(),
        Duration::from_secs(60),
    )
}

fn client(env: &Env, urls: &[String], tls: TlsOptions) -> LiveClient {
    LiveClient::new(env, &LiveOptions { tls, ..options(urls) }).unwrap()
}

#[track_caller]
pub fn says<T: std::fmt::Debug>(answer: Result<T, Error>, words: &[&str]) {
    let said = answer.unwrap_err().to_string();
    for word in words {
        assert!(said.contains(word), "\"{word}\" is not in: {said}");
    }
    assert!(!said.contains('\n') && !said.contains("s3cret"), "{said}");
}

#[test]
fn refusals_say_what_to_do() {
    world::real_world::run(1, async |env| {
        let html = "<html><title>502 Bad Gateway</title></html>";
        let security =
            r#"{"error":{"type":"security_exception","reason":"no permissions"},"status":403}"#;
        let amazons = r#"{"Message":"Your request: '/_nodes' is not allowed."}"#;
        let cases: [(u16, &'static str, &[&str]); 6] = [
            (401, security, &["401", "NARROWS_USER", "user and password"]),
            (401, amazons, &["GET /_nodes: 401 error: Your request: '/_nodes' is not allowed."]),
            (
                403,
                security,
                &["/_nodes", "403", "no permissions", "\"monitor\"", "cluster:monitor/*"],
            ),
            (502, html, &["HTML", "proxy", "502"]),
            (200, html, &["HTML", "address of a node"]),
            (200, "no json", &["/_nodes", "no json"]),
        ];
        for (status, body, words) in cases {
            let server = serve(&env, None, &[(status, body)]).await;
            let credentials = Credentials::Basic { user: "u".into(), password: "s3cret".into() };
            let options =
                LiveOptions { credentials, ..options(std::slice::from_ref(&server.address)) };
            let client = LiveClient::new(&env, &options).unwrap();
            says(client.get("/_nodes").await, words);
            let header = server.seen.borrow()[0].1.clone();
            assert_eq!(header.as_deref(), Some("Basic dTpzM2NyZXQ="));
        }
    });
}

#[test]
fn a_busy_cluster_is_given_time() {
    world::real_world::run(1, async |env| {
        let server = serve(&env, None, &[(429, "{}"), (200, ROOT)]).await;
        let client = server.client(&env);
        assert_eq!(client.get("/").await.unwrap()["cluster_name"], "c");
        assert_eq!(server.seen.borrow().len(), 2);
    });
}

#[test]
fn another_host_answers_for_one_that_does_not() {
    world::real_world::run(1, async |env| {
        let server = serve(&env, None, &[(200, ROOT)]).await;
        let busy = serve(&env, None, &[(503, "{}")]).await;
        let hosts = ["127.0.0.1:1".to_owned(), busy.address.clone(), server.address.clone()];
        let client = client(&env, &hosts, TlsOptions::default());
        for _ in 0..3 {
            client.get("/").await.unwrap();
        }
        // The others were asked once; then the one that answers.
        assert_eq!((busy.seen.borrow().len(), server.seen.borrow().len()), (1, 3));
        assert_eq!(client.cost().0, 5);
        let none = self::client(
            &env,
            &["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()],
            TlsOptions::default(),
        );
        says(none.get("/").await, &["none of 2 hosts", "127.0.0.1:1", "127.0.0.1:2"]);
    });
}

/// A gateway that gave up may have handed a bulk request on, whose documents another host would index once more.
#[test]
fn what_may_have_been_done_is_asked_of_no_other_host() {
    world::real_world::run(1, async |env| {
        let html = "<html><title>504 Gateway Time-out</title></html>";
        let blocked = r#"{"error":{"type":"cluster_block_exception","reason":"no master"}}"#;
        for (status, body, path, goes_on) in [
            (502, "{}", "/narrows-1/_bulk", false),
            (503, "{}", "/_search/scroll", false),
            (504, html, "/narrows-1/_bulk", false),
            (503, blocked, "/narrows-1/_bulk", true),
            (502, "{}", "/_analyze", true),
            (504, html, "/narrows-1/_search?size=0", true),
        ] {
            let gateway = serve(&env, None, &[(status, body)]).await;
            let other = serve(&env, None, &[(200, "{}")]).await;
            let hosts = [gateway.address.clone(), other.address.clone()];
            let client = client(&env, &hosts, TlsOptions::default());
            let asked = client.ask("POST", path, &json!({})).await;
            let seen = (gateway.seen.borrow().len(), other.seen.borrow().len());
            assert_eq!(seen, (1, usize::from(goes_on)), "{status} {path}");
            match goes_on {
                true => drop(asked.unwrap()),
                false => says(asked, &["may have been done"]),
            }
        }
    });
}

#[test]
fn a_prefix_and_a_large_answer() {
    world::real_world::run(1, async |env| {
        let server = serve(&env, None, &[(200, ROOT)]).await;
        let url = format!("http://{}/behind/", server.address);
        client(&env, &[url], TlsOptions::default()).get("/_nodes").await.unwrap();
        assert_eq!(server.seen.borrow()[0].0, "/behind/_nodes");
    });
}

#[test]
fn tls_is_trusted_or_says_why_not() {
    world::real_world::run(1, async |env| {
        let (ours, other) = (Authority::new(), Authority::new());
        let server = serve(&env, Some(ours.config.clone()), &[(200, ROOT)]).await;
        let url = [format!("https://{}", server.address)];
        let with_ca = |authority: &Authority| TlsOptions {
            ca: Some(authority.file("ca.pem").into()),
            ..TlsOptions::default()
        };
        client(&env, &url, with_ca(&ours)).get("/").await.unwrap();
        says(client(&env, &url, with_ca(&other)).get("/").await, &["certificate", "--ca FILE"]);
        let insecure = TlsOptions { insecure: true, ..TlsOptions::default() };
        client(&env, &url, insecure).get("/").await.unwrap();
        let by_address = [url[0].replace("localhost", "127.0.0.1")];
        says(
            client(&env, &by_address, with_ca(&ours)).get("/").await,
            &["is not for \"127.0.0.1\""],
        );
        assert_eq!(server.seen.borrow().len(), 2);
    });
}

#[test]
fn the_wrong_protocol_is_named() {
    world::real_world::run(1, async |env| {
        let authority = Authority::new();
        let secure = serve(&env, Some(authority.config.clone()), &[(200, ROOT)]).await;
        let plain = serve(&env, None, &[(200, ROOT)]).await;
        let to_secure =
            client(&env, &[format!("http://{}", secure.address)], TlsOptions::default());
        says(to_secure.get("/").await, &["speaks TLS", "https://"]);
        let insecure = TlsOptions { insecure: true, ..TlsOptions::default() };
        let to_plain = client(&env, &[format!("https://{}", plain.address)], insecure);
        says(to_plain.get("/").await, &["plain HTTP", "http://"]);
        // Looking for the right protocol tells nobody who we are.
        let all = [&secure, &plain].map(|server| server.seen.borrow().clone()).concat();
        assert!(all.iter().all(|(_, header)| header.is_none()));
    });
}

#[test]
fn a_client_certificate_is_shown_where_it_is_asked_for() {
    world::real_world::run(1, async |env| {
        let authority = Authority::new();
        let server = serve(&env, Some(authority.demanding.clone()), &[(200, ROOT)]).await;
        let url = [format!("https://{}", server.address)];
        let bare =
            TlsOptions { ca: Some(authority.file("ca.pem").into()), ..TlsOptions::default() };
        says(client(&env, &url, bare.clone()).get("/").await, &["--cert FILE"]);
        let known = TlsOptions {
            cert: Some(authority.file("cert.pem").into()),
            key: Some(authority.file("key.pem").into()),
            ..bare
        };
        client(&env, &url, known).get("/").await.unwrap();
    });
}

/// What cannot be followed is found before anything is changed.
#[test]
fn a_cluster_without_replication_between_clusters_says_so() {
    world::real_world::run(1, async |env| {
        let unknown = r#"{"error":"no handler found for uri [/_ccr/stats] and method [GET]"}"#;
        let server = serve(&env, None, &[(200, ROOT), (400, unknown)]).await;
        let client = server.client(&env);
        let identity = ClusterIdentity::ask(&client).await.unwrap();
        let refused = follow_api(&client, &identity).await;
        assert!(refused.as_ref().is_err_and(Error::is_usage));
        says(
            refused,
            &[
                "opensearch 2.19.1", "_ccr/stats", "_plugins/_replication", "replica-over-link",
                "nothing was changed",
            ],
        );
        let server = serve(&env, None, &[(200, ROOT), (200, "{}")]).await;
        let client = server.client(&env);
        // It is asked first for what OpenSearch has.
        assert_eq!(follow_api(&client, &identity).await.unwrap(), FollowApi::Plugin);
        let identity = ClusterIdentity { is_opensearch: false, ..identity };
        assert_eq!(follow_api(&client, &identity).await.unwrap(), FollowApi::Ccr);
    });
}

#[test]
fn a_version_never_seen_and_what_is_no_cluster_are_refused() {
    world::real_world::run(1, async |env| {
        let future = r#"{"cluster_name":"c","version":{"number":"42.0.0"},"tagline":"You Know, for Search"}"#;
        let server = serve(&env, None, &[(200, future)]).await;
        let connected = Sampler::connect(server.client(&env)).await;
        says(connected.unwrap().check_version(), &["elasticsearch 42.0.0", "--any-version"]);
        // As OpenSearch 1 and 2 answer where they are to be taken for Elasticsearch (their pull request 898).
        let hidden = r#"{"cluster_name":"c","version":{"number":"7.10.2","build_type":"tar"},"tagline":"The OpenSearch Project: https://opensearch.org/"}"#;
        let server = serve(&env, None, &[(200, hidden)]).await;
        let sampler = Sampler::connect(server.client(&env)).await.unwrap();
        assert_eq!(sampler.identity().flavour, "opensearch");
        sampler.check_version().unwrap();
        // Made after the documentation: no such project was asked.
        let serverless = r#"{"cluster_name":"c","version":{"number":"8.11.0","build_flavor":"serverless"},"tagline":"You Know, for Search"}"#;
        let server = serve(&env, None, &[(200, serverless)]).await;
        let sampler = Sampler::connect(server.client(&env)).await.unwrap();
        says(sampler.check_version(), &["serverless", "410", "with nodes"]);
        let server = serve(&env, None, &[(200, r#"{"hello":"world"}"#)]).await;
        let other = Sampler::connect(server.client(&env)).await;
        let said = other.err().unwrap().to_string();
        assert!(said.contains("neither Elasticsearch nor OpenSearch"), "{said}");
        // A path may be that of a proxy, and may be that of an index.
        for answer in [(200, r#"{"logs":{"aliases":{}}}"#), (404, "{}"), (200, "<html>")] {
            let server = serve(&env, None, &[answer]).await;
            let client =
                client(&env, &[format!("{}/logs/", server.address)], TlsOptions::default());
            let said = Sampler::connect(client).await.err().unwrap().to_string();
            let without = format!("write http://{}, or", server.address);
            assert!(said.contains("the path /logs,") && said.contains(&without), "{said}");
        }
    });
}

/// Errors, retries, late answers and hosts that are gone come again as they were, and so does the time.
#[test]
fn a_transcript_answers_as_the_cluster_did() {
    world::real_world::run(1, async |env| {
        let busy = [(200, ROOT), (429, "{}"), (503, "{}"), (200, r#"{"n":1}"#), (403, "{}")];
        let server = serve(&env, None, &busy).await;
        let urls = ["127.0.0.1:1".to_owned(), server.address.clone()];
        let dir = tempfile::tempdir().unwrap();
        let asked = async |client: &LiveClient| {
            let began = client.now();
            let mut said = Vec::new();
            for path in ["/", "/a", "/b", "/c"] {
                let answer = client.get(path).await.map_err(|error| error.to_string());
                said.push((format!("{answer:?}"), client.now() - began));
            }
            (said, client.cost())
        };
        let second = Duration::from_secs(1);
        let header = Header::new(urls.to_vec(), second, second);
        let transcript = Transcript::create(dir.path(), &header).unwrap();
        let client = client(&env, &urls, TlsOptions::default()).written_to(transcript);
        let then = asked(&client).await;
        client.transcript().unwrap().unwrap();
        assert!(then.0[1].0.contains("n") && then.0[3].0.contains("403"), "{then:?}");

        drop(server);
        let (read, replay) = Replay::open(dir.path()).unwrap();
        assert_eq!(read, header);
        let client = LiveClient::replaying(&env, &read, replay).unwrap();
        assert_eq!(asked(&client).await, then);
        assert!(!client.has_broken_off());
        says(client.get("/d").await, &["no answer to GET /d"]);
        client.now();
        assert!(client.has_broken_off());
    });
}

/// `_cat/shards` was asked for its columns in another order, nodes for their heap in percent alone, and so on.
#[test]
fn an_earlier_transcript_still_tells_of_copies_and_nodes() {
    let asked = [
        (
            "/_cat/shards?format=json&h=index,shard,prirep,state,node,unassigned.reason",
            "/_cat/shards?format=json&h=state,index,shard,prirep,node,unassigned.reason",
        ),
        (
            "/_nodes/stats/jvm?filter_path=nodes.*.jvm.mem.heap_used_percent,nodes.*.name",
            "/_nodes/stats/jvm?filter_path=nodes.*.jvm.mem.heap_used_*,nodes.*.name",
        ),
        (
            "/_nodes/stats/breaker,indexing_pressure,indices/search?filter_path=nodes.*.x",
            "/_nodes/stats/breaker,indexing_pressure,thread_pool,indices/search?filter_path=nodes.*.x",
        ),
        (
            "/_ccr/stats?filter_path=follow_stats",
            "/_ccr/stats?filter_path=auto_follow_stats.recent*.leader_index,auto_follow_stats.recent*.timestamp,\
             auto_follow_stats.recent*.*.reason,follow_stats",
        ),
        // An address among the others may hold a password.
        (
            "/_snapshot/backups?filter_path=*.settings",
            "/_snapshot/backups?filter_path=*.*.max_*_bytes_per_sec",
        ),
    ];
    world::real_world::run(1, async |env| {
        let answer = (200, r#"[{"state":"UNASSIGNED"}]"#);
        let server = serve(&env, None, &[answer; 5]).await;
        let urls = std::slice::from_ref(&server.address);
        let dir = tempfile::tempdir().unwrap();
        let second = Duration::from_secs(1);
        let header = Header::new(urls.to_vec(), second, second);
        let transcript = Transcript::create(dir.path(), &header).unwrap();
        let client = client(&env, urls, TlsOptions::default()).written_to(transcript);
        let mut then = Vec::new();
        for (earlier, _) in asked {
            then.push(format!("{:?}", client.get(earlier).await.unwrap()));
        }
        assert!(then.iter().all(|said| said.contains("UNASSIGNED")), "{then:?}");
        client.transcript().unwrap();
        let (read, replay) = Replay::open(dir.path()).unwrap();
        let client = LiveClient::replaying(&env, &read, replay).unwrap();
        for ((_, today), then) in asked.into_iter().zip(then) {
            assert_eq!(format!("{:?}", client.get(today).await.unwrap()), then);
        }
    });
}
