//! A node of the virtual world that answers what a test wants.

use bytes::Bytes;
use rest::RestRequest;
use world::{Env, Task};

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
    let answer = async move |asked: RestRequest| match answer(&asked) {
        Some((status, body)) => Some((status, Bytes::from(body))),
        None => std::future::pending().await,
    };
    rest_host(env, "a", answer).await
}
