//! What tests of live clusters share: a node of the virtual world that answers what a test wants, and changes to it.

use std::cell::RefCell;
use std::future::pending;
use std::time::Duration;

use clusters::live::LiveClient;
use clusters::{BorrowedSettings, Head, Journal};
use policy::steering::Proposal;
use rest::RestRequest;
use serde_json::{Value, json};
use tempfile::TempDir;
use world::{Env, Task};

use super::{ConnectArgs, Looking, connect, second_client};

/// What is answered to everything: a cluster in which nothing recovers or waits.
pub(super) const CALM: &str = r#"{"cluster_name":"c","status":"green","initializing_shards":0,
    "relocating_shards":0,"unassigned_shards":0,"number_of_nodes":0,
    "version":{"number":"2.19.1","distribution":"opensearch"}}"#;

testbed::rest_host!();

/// Its address. Where `answer` has none, the request is never answered; one that begins with `error` refuses it.
pub(super) async fn serve(
    env: &Env,
    answer: impl Fn(&RestRequest) -> Option<String> + 'static,
) -> (String, Task<()>) {
    let with_status = move |asked: &RestRequest| {
        let body = answer(asked)?;
        let status = if body.starts_with("{\"error\"") { 400 } else { 200 };
        Some((status, body))
    };
    serve_refusing(env, with_status).await
}

/// The same with a status before each answer.
pub(super) async fn serve_refusing(
    env: &Env,
    answer: impl Fn(&RestRequest) -> Option<(u16, String)> + 'static,
) -> (String, Task<()>) {
    let answers = async move |asked: RestRequest| match answer(&asked) {
        Some((status, body)) => Some((status, bytes::Bytes::from(body))),
        None => pending().await,
    };
    rest_host(env, "a", answers).await
}

/// What a cluster answers about its settings, which it keeps but for what it refuses.
pub(super) fn kept(
    settings: &RefCell<Value>,
    asked: &RestRequest,
    refuses: impl Fn(&str) -> bool,
) -> String {
    if asked.method == "PUT" {
        let body: Value = serde_json::from_slice(&asked.body).unwrap();
        for (name, value) in body["persistent"].as_object().unwrap() {
            if refuses(name) {
                return json!({ "error": "unknown setting" }).to_string();
            }
            settings.borrow_mut()[name] = value.clone();
        }
    }
    json!({ "persistent": *settings.borrow(), "transient": {} }).to_string()
}

pub(super) fn client(env: &Env, url: &str) -> LiveClient {
    second_client(env, &[url.to_owned()], &ConnectArgs::default()).unwrap()
}

/// Its settings, with a journal in a directory of the test's own.
pub(super) fn borrowed(env: &Env, url: &str) -> (BorrowedSettings, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let head = Head::new("uuid".to_owned(), vec![url.to_owned()]);
    let journal = Journal::create(&dir.path().join("changes.jsonl"), head).unwrap();
    (BorrowedSettings::new(client(env, url), journal), dir)
}

/// Looks at it every second.
pub(super) async fn looking(env: &Env, url: &str) -> Looking {
    let sampler = connect(env, &[url.to_owned()], &ConnectArgs::default()).await.unwrap();
    Looking::new(sampler, Duration::from_secs(1))
}

pub(super) fn proposal(from: &str, to: &str) -> Proposal {
    Proposal {
        setting: "limit".to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        label: "rate limit".to_owned(),
        before_per_s: 1.0,
        expected: None,
    }
}
