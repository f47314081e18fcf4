//! The client for live clusters against servers that behave as clusters and their proxies do on bad days.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clusters::live::{
    Address, Depth, Header, LiveClient, LiveOptions, Replay, Sampler, TlsOptions, Transcript,
};
use clusters::{ClusterIdentity, Credentials, Error, FollowApi, follow_api};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use record::observation::Observation;
use rustls::ServerConfig;
use testbed::tls::Authority;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use world::{Env, Task};

const ROOT: &str =
    r#"{"cluster_name":"c","version":{"distribution":"opensearch","number":"2.19.1"}}"#;

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
/// Status and body of the answer to a path.
type Answer = Rc<dyn Fn(&str) -> (u16, &'static str)>;

async fn serve(
    env: &Env,
    tls: Option<Arc<ServerConfig>>,
    answers: &[(u16, &'static str)],
) -> Server {
    let answers = RefCell::new(answers.iter().copied().collect::<VecDeque<_>>());
    let next = move |_: &str| {
        let mut answers = answers.borrow_mut();
        if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0] }
    };
    serve_by(env, tls, next).await
}

/// As `serve`, with answers by path; what follows a question mark is not part of it.
async fn serve_by(
    env: &Env,
    tls: Option<Arc<ServerConfig>>,
    answer: impl Fn(&str) -> (u16, &'static str) + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    let answer: Answer = Rc::new(answer);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (told, inner) = (seen.clone(), env.clone());
    let task = env.spawn("server", async move {
        let mut tasks = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (answer, told, tls) = (answer.clone(), told.clone(), tls.clone());
            tasks.push(inner.spawn("connection", async move {
                match tls {
                    None => speak(stream, answer, told).await,
                    Some(config) => {
                        let Ok(stream) = TlsAcceptor::from(config).accept(stream).await else {
                            return;
                        };
                        speak(stream, answer, told).await;
                    }
                }
            }));
        }
    });
    Server { address, seen, _task: task }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, answer: Answer, seen: Seen) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        seen.borrow_mut().push((request.uri().to_string(), header.map(str::to_owned)));
        let (status, body) = answer(request.uri().path());
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

fn real<F: Future<Output = ()>>(body: impl FnOnce(Env) -> F) {
    world::real_world::run(1, body);
}

#[track_caller]
fn says<T: std::fmt::Debug>(answer: Result<T, Error>, words: &[&str]) {
    let said = answer.unwrap_err().to_string();
    for word in words {
        assert!(said.contains(word), "\"{word}\" is not in: {said}");
    }
    assert!(!said.contains('\n') && !said.contains("s3cret"), "{said}");
}

#[test]
fn refusals_say_what_to_do() {
    real(async |env| {
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
    real(async |env| {
        let server = serve(&env, None, &[(429, "{}"), (200, ROOT)]).await;
        let client = server.client(&env);
        assert_eq!(client.get("/").await.unwrap()["cluster_name"], "c");
        assert_eq!(server.seen.borrow().len(), 2);
    });
}

#[test]
fn another_host_answers_for_one_that_does_not() {
    real(async |env| {
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

#[test]
fn a_prefix_and_a_large_answer() {
    real(async |env| {
        let server = serve(&env, None, &[(200, ROOT)]).await;
        let url = format!("http://{}/behind/", server.address);
        client(&env, &[url], TlsOptions::default()).get("/_nodes").await.unwrap();
        assert_eq!(server.seen.borrow()[0].0, "/behind/_nodes");
    });
}

#[test]
fn tls_is_trusted_or_says_why_not() {
    real(async |env| {
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
    real(async |env| {
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
    real(async |env| {
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

/// A cluster of which most is forbidden: looked at all the same, and what is lost is said. Without its recoveries there
/// is nothing to see.
#[test]
fn what_is_forbidden_becomes_a_gap() {
    real(async |env| {
        let calm = r#"{"status":"green","initializing_shards":0,"relocating_shards":0,"unassigned_shards":0}"#;
        let server = serve(&env, None, &[(200, ROOT), (200, calm), (403, "{}")]).await;
        let mut sampler = Sampler::connect(server.client(&env)).await.unwrap();
        assert_eq!(sampler.identity().flavour, "opensearch");
        sampler.check_version().unwrap();
        let look = sampler.look(Depth::Deep).await.unwrap();
        let lost: Vec<&str> = look.gaps.iter().map(|gap| gap.lost.as_str()).collect();
        assert!(lost.iter().any(|words| words.contains("memory of nodes")), "{lost:?}");
        assert!(look.nodes.is_empty() && look.settings.is_none() && look.health.is_some());
        let server = serve(&env, None, &[(200, ROOT), (403, "{}")]).await;
        let mut sampler = Sampler::connect(server.client(&env)).await.unwrap();
        says(sampler.look(Depth::Light).await, &["/_recovery", "403", "monitor"]);
    });
}

fn gaps(look: &Observation) -> Vec<&str> {
    look.gaps.iter().map(|gap| gap.path.as_str()).collect()
}

/// Recoveries and copies that wait are asked for in vain: none has ended for that, and none has its place.
#[test]
fn a_question_that_fails_is_no_empty_answer() {
    const HEALTH: &str = r#"{"status":"yellow","number_of_nodes":2,"initializing_shards":1,"relocating_shards":0,"unassigned_shards":1}"#;
    const CALM: &str = r#"{"status":"green","number_of_nodes":2,"initializing_shards":0,"relocating_shards":0,"unassigned_shards":0}"#;
    const RECOVERY: &str = r#"{"logs":{"shards":[{"id":0,"type":"PEER","stage":"INDEX","primary":false,"start_time_in_millis":1,"source":{"name":"a"},"target":{"name":"b"}}]}}"#;
    const SHARDS: &str = r#"[{"state":"UNASSIGNED","index":"logs","shard":"1","prirep":"r"}]"#;
    real(async |env| {
        let (fails, health) = (Rc::new(Cell::new(false)), Rc::new(Cell::new((200, HEALTH))));
        let (failing, healthy) = (fails.clone(), health.clone());
        let answer = move |path: &str| match path {
            "/" => (200, ROOT),
            "/_cluster/health" => healthy.get(),
            "/_recovery" | "/_cat/shards" if failing.get() => (503, "{}"),
            "/_recovery" => (200, RECOVERY),
            "/_cat/shards" => (200, SHARDS),
            _ => (404, "{}"),
        };
        let server = serve_by(&env, None, answer).await;
        let client = server.client(&env);
        let mut sampler = Sampler::connect(client).await.unwrap();
        let before = sampler.look(Depth::Deep).await.unwrap();
        assert_eq!((before.recoveries.len(), before.waiting.len()), (1, 1));
        let both = ["/_cat/shards", "/_recovery"];
        assert!(both.iter().all(|path| !gaps(&before).contains(path)), "{:?}", before.gaps);
        fails.set(true);
        let unknown = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| gaps(&unknown).contains(path)), "{:?}", unknown.gaps);
        assert!(unknown.recoveries.is_empty(), "{:?}", unknown.recoveries);
        assert!(Arc::ptr_eq(&unknown.waiting, &before.waiting));
        // Nor is anything known of them without a health.
        health.set((503, "{}"));
        let unknown = sampler.look(Depth::Deep).await.unwrap();
        assert!(Arc::ptr_eq(&unknown.waiting, &before.waiting) && unknown.health.is_none());
        fails.set(false);
        health.set((200, HEALTH));
        let after = sampler.look(Depth::Deep).await.unwrap();
        assert_eq!((after.recoveries, after.waiting), (before.recoveries, before.waiting));
        fails.set(true);
        sampler.look(Depth::Deep).await.unwrap();
        // A health of zeros says that there are none of either.
        health.set((200, CALM));
        let calm = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| !gaps(&calm).contains(path)), "{:?}", calm.gaps);
        assert!(calm.recoveries[0].ended && calm.waiting.is_empty());
    });
}

/// One that stumbles is asked again, and one that says that it does not have it is not.
#[test]
fn what_fails_once_is_not_given_up() {
    const ELASTICSEARCH: &str =
        r#"{"cluster_name":"c","version":{"number":"8.15.0"},"tagline":"You Know, for Search"}"#;
    const FOLLOWS: &str =
        r#"{"follow_stats":{"indices":[{"shards":[{"follower_index":"f","shard_id":0}]}]}}"#;
    real(async |env| {
        let stumbles = Rc::new(Cell::new(true));
        let stumbling = stumbles.clone();
        let answer = move |path: &str| match path {
            "/" => (200, ELASTICSEARCH),
            "/_ccr/stats" | "/_remote/info" if stumbling.get() => (503, "{}"),
            "/_ccr/stats" => (200, FOLLOWS),
            "/_remote/info" => (200, r#"{"leader":{"connected":true}}"#),
            _ => (404, "{}"),
        };
        let server = serve_by(&env, None, answer).await;
        let client = server.client(&env);
        let mut sampler = Sampler::connect(client).await.unwrap();
        let both = ["/_ccr/stats", "/_remote/info"];
        let look = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| gaps(&look).contains(path)), "{:?}", look.gaps);
        assert!(!gaps(&look).contains(&"/_snapshot/_status"), "{:?}", look.gaps);
        stumbles.set(false);
        let look = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| !gaps(&look).contains(path)), "{:?}", look.gaps);
        assert_eq!((look.followers.len(), look.remotes.len()), (1, 1));
        // What was told is kept.
        stumbles.set(true);
        let unknown = sampler.look(Depth::Deep).await.unwrap();
        assert!(both.iter().all(|path| gaps(&unknown).contains(path)), "{:?}", unknown.gaps);
        assert_eq!((unknown.followers, unknown.remotes), (look.followers, look.remotes));
        let seen = server.seen.borrow();
        let snapshots = seen.iter().filter(|(path, _)| path.starts_with("/_snapshot/_status"));
        assert_eq!(snapshots.count(), 1);
    });
}

/// Where another cluster is known, a role that may not ask for followers leaves a gap, and a license without them none.
#[test]
fn followers_that_a_role_keeps_from_us_are_a_gap() {
    const ELASTICSEARCH: &str =
        r#"{"cluster_name":"c","version":{"number":"8.15.0"},"tagline":"You Know, for Search"}"#;
    const ROLE: &str =
        r#"{"error":{"reason":"action [cluster:monitor/ccr/stats] is unauthorized"}}"#;
    const LICENSE: &str = r#"{"error":{"reason":"current license is non-compliant for [ccr]"}}"#;
    real(async |env| {
        for (said, remotes, is_gap) in [
            (ROLE, r#"{"eu":{"connected":true}}"#, true),
            (ROLE, "{}", false),
            (LICENSE, r#"{"eu":{"connected":true}}"#, false),
        ] {
            let answer = move |path: &str| match path {
                "/" => (200, ELASTICSEARCH),
                "/_ccr/stats" => (403, said),
                "/_remote/info" => (200, remotes),
                _ => (404, "{}"),
            };
            let server = serve_by(&env, None, answer).await;
            let mut sampler = Sampler::connect(server.client(&env)).await.unwrap();
            for _ in 0..2 {
                let look = sampler.look(Depth::Deep).await.unwrap();
                assert_eq!(gaps(&look).contains(&"/_ccr/stats"), is_gap, "{:?}", look.gaps);
            }
        }
    });
}

/// Amazon's service answers 401 whoever asks for what it offers to nobody. Made after what its users report.
#[test]
fn what_a_service_offers_to_nobody_ends_no_look() {
    const KEPT: &str = r#"{"Message":"Your request: '/_remote/info' is not allowed."}"#;
    real(async |env| {
        let answer = move |path: &str| match path {
            "/" => (200, ROOT),
            "/_remote/info" => (401, KEPT),
            _ => (404, "{}"),
        };
        let server = serve_by(&env, None, answer).await;
        let mut sampler = Sampler::connect(server.client(&env)).await.unwrap();
        let look = sampler.look(Depth::Deep).await.unwrap();
        assert!(!gaps(&look).contains(&"/_remote/info"), "{:?}", look.gaps);
    });
}

/// The limit of a repository is asked for until it is told; and a recording may answer for a recovery that has ended
/// what it was before.
#[test]
fn what_is_told_late_counts_and_what_is_told_again_does_not() {
    const EARLIER: &str = r#"{"logs":{"shards":[{"id":0,"type":"SNAPSHOT","stage":"INDEX","primary":true,"start_time_in_millis":1,"source":{"repository":"backups"},"target":{"name":"b"},"index":{"size":{"recovered_in_bytes":3}}}]}}"#;
    const LATER: &str = r#"{"logs":{"shards":[{"id":0,"type":"SNAPSHOT","stage":"INDEX","primary":true,"start_time_in_millis":1,"source":{"repository":"backups"},"target":{"name":"b"},"index":{"size":{"recovered_in_bytes":5}}}]}}"#;
    const REPOSITORY: &str = r#"{"backups":{"settings":{"max_restore_bytes_per_sec":"1mb"}}}"#;
    real(async |env| {
        let (repository, recovery) = (Rc::new(Cell::new((503, "{}"))), Rc::new(Cell::new(LATER)));
        let (told, recovering) = (repository.clone(), recovery.clone());
        let answer = move |path: &str| match path {
            "/" => (200, ROOT),
            "/_recovery" => (200, recovering.get()),
            "/logs/_recovery" => (200, EARLIER),
            "/_snapshot/backups" => told.get(),
            _ => (404, "{}"),
        };
        let server = serve_by(&env, None, answer).await;
        let client = server.client(&env);
        let mut sampler = Sampler::connect(client).await.unwrap();
        assert!(sampler.look(Depth::Light).await.unwrap().restore_limits.is_empty());
        repository.set((200, REPOSITORY));
        for _ in 0..2 {
            let look = sampler.look(Depth::Light).await.unwrap();
            assert_eq!(look.restore_limits["backups"], "1mb");
        }
        recovery.set("{}");
        let ended = sampler.look(Depth::Light).await.unwrap().recoveries.remove(0);
        assert_eq!((ended.ended, ended.recovered_bytes), (true, Some(5)));
        let seen = server.seen.borrow();
        let asked = seen.iter().filter(|(path, _)| path.starts_with("/_snapshot/backups"));
        assert_eq!(asked.count(), 2);
    });
}

/// What cannot be followed is found before anything is changed.
#[test]
fn a_cluster_without_replication_between_clusters_says_so() {
    real(async |env| {
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
    real(async |env| {
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

/// An old version that does not know a part of the node stats is asked again without it.
#[test]
fn parts_that_a_version_lacks_are_left_out() {
    real(async |env| {
        let unknown = r#"{"error":{"type":"illegal_argument_exception","reason":"request [/_nodes/stats/x] contains unrecognized metric: [indexing_pressure]"},"status":400}"#;
        let stats = r#"{"nodes":{"id":{"name":"n1","timestamp":1}}}"#;
        let answers = [(200, ROOT), (200, "{}"), (400, unknown), (200, stats)];
        let server = serve(&env, None, &answers).await;
        let client = server.client(&env);
        let mut sampler = Sampler::connect(client).await.unwrap();
        let look = sampler.look(Depth::Light).await.unwrap();
        assert_eq!(look.nodes[0].name, "n1");
        let asked = Cell::new(0);
        for (path, _) in
            server.seen.borrow().iter().filter(|(path, _)| path.starts_with("/_nodes/stats"))
        {
            assert_eq!(
                path.contains("indexing_pressure,"),
                asked.replace(asked.get() + 1) == 0,
                "{path}"
            );
        }
        assert_eq!(asked.get(), 2);
    });
}

/// Errors, retries, late answers and hosts that are gone come again as they were, and so does the time.
#[test]
fn a_transcript_answers_as_the_cluster_did() {
    real(async |env| {
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
    ];
    real(async |env| {
        let answer = (200, r#"[{"state":"UNASSIGNED"}]"#);
        let server = serve(&env, None, &[answer; 4]).await;
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
