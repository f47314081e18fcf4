//! A node of the virtual world that answers what a test wants.

use std::rc::Rc;

use rest::{RestMessage, RestRequest, RestResponse};
use world::{Env, Task};

/// What is answered to everything: a cluster in which nothing recovers or waits.
pub(super) const CALM: &str = r#"{"cluster_name":"c","status":"green","initializing_shards":0,
    "relocating_shards":0,"unassigned_shards":0,"number_of_nodes":0,
    "version":{"number":"2.19.1","distribution":"opensearch"}}"#;

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
    let host = env.host("a");
    let mut listener = host.listen::<RestMessage>("a:9200").await.unwrap();
    let address = listener.address().to_owned();
    let (inner, answer) = (host.clone(), Rc::new(answer));
    let task = host.spawn("node", async move {
        loop {
            let mut connection = listener.accept().await.unwrap();
            let answer = answer.clone();
            let speak = async move {
                while let Ok(Some(RestMessage::Request(asked))) = connection.receiver.recv().await {
                    let Some((status, body)) = answer(&asked) else {
                        return std::future::pending().await;
                    };
                    let content_type = "application/json".to_owned();
                    let response = RestResponse { status, content_type, body: body.into() };
                    if connection.sender.send(RestMessage::Response(response)).await.is_err() {
                        return;
                    }
                }
            };
            inner.spawn("connection", speak).detach();
        }
    });
    (address, task)
}
