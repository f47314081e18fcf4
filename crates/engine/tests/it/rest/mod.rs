//! The REST face, in both worlds: what ordinary clients ask, and what they are answered.

mod aliases;
mod by_query;
mod cat;
mod cluster;
mod documents;
mod routing;
mod stats;
mod tasks;
mod templates;
mod updates;

use std::time::Duration;

use bytes::Bytes;
use rest::{BasicAuth, RestMessage, RestRequest};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use world::Env;

use crate::common::Cluster;

testbed::virtual_world!(answers_messages);
testbed::real_world!(
    speaks_http,
    strangers_are_told_nothing,
    others_than_loopback_only_with_credentials,
    an_address_in_use_is_named,
);

fn lines(actions: &[Value]) -> Bytes {
    Bytes::from(actions.iter().map(|action| format!("{action}\n")).collect::<String>())
}

/// What hosts of the virtual world send each other.
async fn answers_messages(env: Env) {
    let c = Cluster::start(&env, "c", 1).await;
    let client = env.host("client");
    let mut connection = client.connect::<RestMessage>(c.any().http_address()).await.unwrap();
    for path in ["/", "/_cluster/health"] {
        let request = RestRequest { method: "GET".into(), path: path.into(), body: Bytes::new() };
        connection.sender.send(RestMessage::Request(request)).await.unwrap();
        let Some(RestMessage::Response(answer)) = connection.receiver.recv().await.unwrap() else {
            panic!("not answered");
        };
        assert_eq!(answer.status, 200);
        assert_eq!(answer.content_type, "application/json; charset=UTF-8");
        let json: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(json["cluster_name"], "c");
    }
}

/// Sends text as it is, and reads what comes until all of it is answered, or the connection is closed.
async fn http(env: &Env, address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = async {
        while !is_answered(text, &answer) {
            if !stream.read_buf(&mut answer).await.is_ok_and(|bytes| bytes > 0) {
                break;
            }
        }
    };
    env.timeout(Duration::from_secs(60), reading).await.expect("an answer");
    String::from_utf8(answer).unwrap()
}

/// Whether each request has an answer, and the last answer is whole.
fn is_answered(requests: &str, answers: &[u8]) -> bool {
    const VERSION: &str = "HTTP/1.1 ";
    let Ok(answers) = str::from_utf8(answers) else { return false };
    let last = answers.rfind(VERSION).map_or("", |at| &answers[at..]);
    let Some((head, body)) = last.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let has_come = |length: &str| length.parse().is_ok_and(|bytes: usize| body.len() >= bytes);
    let is_whole = requests.starts_with("HEAD ") || length.is_some_and(has_come);
    is_whole && answers.matches(VERSION).count() >= requests.matches(" HTTP/1.1\r\n").count()
}

async fn speaks_http(env: Env) {
    // A port that is nobody else's when the node has stopped.
    let own = format!("127.0.0.1:{}", testbed::free_port());
    let c = Cluster::start_as(&env, "c", 1, |config| config.http = own.clone()).await;
    let address = c.any().http_address().to_owned();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");

    let twice = get("/") + &get("/_cluster/health");
    let answer = http(&env, &address, &twice).await;
    assert_eq!(
        answer.matches("HTTP/1.1 200 OK").count(),
        2,
        "one connection, two requests: {answer}"
    );
    assert!(answer.contains("content-type: application/json; charset=UTF-8"), "{answer}");

    let gone = "HEAD /gone HTTP/1.1\r\nHost: localhost\r\nX-Opaque-Id: mine\r\n\r\n";
    let answer = http(&env, &address, gone).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(answer.contains("\r\nx-opaque-id: mine\r\n"), "the client's own comes back: {answer}");

    let answer =
        http(&env, &address, "DELETE /_cluster/health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET\r\n"), "{answer}");

    let post = |headers: &str, body: &str| {
        let len = body.len();
        format!(
            "POST /a/_doc HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len}\r\n\r\n{body}"
        )
    };
    let json = "Content-Type: application/json\r\n";
    for line in ["PUT /a/_doc/b%2Fc?routing=d", "POST /a/_update/e"] {
        let body = r#"{"doc":{},"doc_as_upsert":true}"#;
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{json}");
        let text = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        let (first, second) =
            (http(&env, &address, &text).await, http(&env, &address, &text).await);
        let path = if line.starts_with("PUT") { "/a/_doc/b%2Fc?routing=d" } else { "/a/_doc/e" };
        assert!(first.contains(&format!("\r\nlocation: {path}\r\n")), "{first}");
        assert!(!second.contains("location:"), "{second}");
    }
    for (text, status) in [
        (post(json, "{\"a\":1}"), "201"),
        (post("", "{\"a\":1}"), "201"),
        (post("Content-Type: text/plain\r\n", "{}"), "406"),
        (post("Content-Encoding: gzip\r\n", "{}"), "400"),
        (post("Content-Encoding: br\r\n", "{}"), "415"),
        (post("Origin: https://example.org\r\n", "{}"), "403"),
        (
            "POST /_bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857601\r\n\r\n"
                .to_owned(),
            "413",
        ),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = http(&env, &address, &text).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{text}: {answer}");
    }
    let chunked = "POST /a/_doc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
                   4\r\n{\"a\"\r\n3\r\n:2}\r\n0\r\n\r\n";
    let answer = http(&env, &address, chunked).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(c.counted("a").await["count"], 5, "two of them by their ids");
    c.stop().await;
    assert!(TcpStream::connect(&address).await.is_err(), "a node that stopped does not listen");
}

const USER: &str = "anna";
const PASSWORD: &str = "open sesame";

async fn guarded(env: &Env, nodes: usize) -> Cluster {
    let credentials = BasicAuth::new(USER, PASSWORD).unwrap();
    Cluster::start_as(env, "c", nodes, |config| config.credentials = Some(credentials.clone()))
        .await
}

async fn strangers_are_told_nothing(env: Env) {
    let c = guarded(&env, 2).await;
    let address = c.any().http_address().to_owned();
    let ask = async |line: &str, headers: &str, body: &str| {
        let len = body.len();
        let head =
            format!("{line} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len}\r\n\r\n");
        http(&env, &address, &(head + body)).await
    };
    let wrong = BasicAuth::new(USER, "open sesam").unwrap().authorization();
    let wrong = format!("Authorization: {wrong}\r\n");
    for line in [
        "GET /", "HEAD /", "PUT /a", "POST /_bulk", "DELETE /a", "GET /_cat/nodes",
        "GET /no/such/path", "PATCH /_cluster/health",
    ] {
        for headers in ["", &wrong, "Authorization: Bearer x\r\n", "Authorization: Basic\r\n"] {
            let answer = ask(line, headers, "{}").await;
            assert!(answer.starts_with("HTTP/1.1 401"), "{line} {headers}: {answer}");
            let challenge = "www-authenticate: Basic realm=\"security\", charset=\"UTF-8\"\r\n";
            assert!(answer.contains(challenge), "{line}: {answer}");
            assert!(!answer.contains(PASSWORD) && !answer.contains("c-0"), "{answer}");
            let shaped = answer.contains(r#""type":"security_exception""#);
            assert_eq!(shaped, !line.starts_with("HEAD"), "{answer}");
        }
    }
    let right = BasicAuth::new(USER, PASSWORD).unwrap().authorization();
    let right = format!("Authorization: {right}\r\n");
    let json = format!("{right}Content-Type: application/json\r\n");
    assert!(ask("GET /a", &right, "").await.starts_with("HTTP/1.1 404"), "nothing was made");
    assert!(ask("PUT /a", &json, "{}").await.starts_with("HTTP/1.1 200"));
    // Both nodes take part in it: among themselves they do not speak REST.
    let nodes = ask("GET /_cat/nodes?h=name", &right, "").await;
    assert!(nodes.contains("c-0") && nodes.contains("c-1"), "{nodes}");
}

async fn others_than_loopback_only_with_credentials(env: Env) {
    let start = async |transport: &str, http: &str, guarded: bool| {
        let dir = tempfile::tempdir().unwrap();
        let mut config = lone_config(dir.path(), http);
        config.transport = transport.to_owned();
        config.credentials = guarded.then(|| BasicAuth::new(USER, PASSWORD).unwrap());
        let node = rest::start(&env, config).await;
        match node {
            Ok(node) => {
                node.stop().await;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    };
    assert_eq!(start("127.0.0.1:0", "0.0.0.0:0", true).await, Ok(()));
    for (transport, http, guarded) in
        [("127.0.0.1:0", "0.0.0.0:0", false), ("0.0.0.0:0", "127.0.0.1:0", true)]
    {
        let refused = start(transport, http, guarded).await.unwrap_err();
        assert!(refused.contains("will not listen on 0.0.0.0:0"), "{refused}");
        assert!(refused.contains("credentials"), "{refused}");
    }
}

fn lone_config(data: &std::path::Path, http: &str) -> engine::NodeConfig {
    let config = engine::NodeConfig::new("n", "c", &["n".to_owned()], data);
    engine::NodeConfig { http: http.to_owned(), ..config }
}

async fn an_address_in_use_is_named(env: Env) {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    let error =
        rest::start(&env, lone_config(dir.path(), &address)).await.err().unwrap().to_string();
    assert!(error.contains(&format!("listen for REST on {address}")), "{error}");
}
