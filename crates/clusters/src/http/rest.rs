//! Asking a node, in either world.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use world::Env;

use super::{Exchange, Failure};
use crate::{Credentials, Error, Result};

/// How long an answer may take: longer than anything that a cluster waits for by itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// A node's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was asked.
    pub path: String,
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; null where it is empty.
    pub fn json(&self) -> Result<Value> {
        self.read()
    }

    /// The body as what JSON of it is read into; an empty one is read as null.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        let body: &[u8] = if self.body.is_empty() { b"null" } else { &self.body };
        serde_json::from_slice(body)
            .map_err(|error| Error::NotJson { path: self.path.clone(), reason: error.to_string() })
    }

    /// Whether the answer is no error: a 2xx, or a 408 of `_cluster/health`, which holds the health as it is when what
    /// it was told to wait for does not come.
    fn is_accepted(&self) -> bool {
        let waited = || self.json().is_ok_and(|body| body["timed_out"] == true);
        (200..300).contains(&self.status) || (self.status == 408 && waited())
    }
}

/// Asks nodes by their REST address: over HTTP in the real world, in messages in the virtual one.
pub struct RestClient {
    env: Env,
    exchange: Exchange,
    limit: Duration,
}

impl RestClient {
    /// A client of this world. An answer may take five minutes.
    pub fn new(env: &Env) -> Self {
        RestClient { env: env.clone(), exchange: Exchange::of(env), limit: ANSWER_TIMEOUT }
    }

    /// The same with credentials. In the virtual world no node asks for them.
    pub fn with_credentials(mut self, credentials: &Credentials) -> Self {
        self.exchange.set_credentials(credentials);
        self
    }

    /// Another client with the same credentials, and connections of its own.
    pub(crate) fn another(&self) -> RestClient {
        RestClient { env: self.env.clone(), exchange: self.exchange.another(), limit: self.limit }
    }

    /// The same with another limit for every answer.
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sends a request. Any status but 2xx is [`Error::Refused`], except for a health request that timed out: its
    /// answer says `timed_out`.
    ///
    /// A request that was lost on a connection of the pool is sent once more on a fresh one, unless that could do
    /// something twice: then it is [`Error::Broken`].
    pub async fn send(
        &self,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        self.send_within(self.limit, address, method, path, body).await
    }

    /// As [`RestClient::send`], with another limit for this answer.
    pub(crate) async fn send_within(
        &self,
        limit: Duration,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        let asking = self.exchange.send(address, method, path, body);
        let asked = self.env.timeout(limit, asking).await;
        let answered = asked.unwrap_or_else(|elapsed| Err(Failure::Late(elapsed.0)));
        let (status, body) = answered.map_err(|failure| failure.error(address, method, path))?;
        let answer = Answer { path: path.to_owned(), status, body };
        if answer.is_accepted() { Ok(answer) } else { Err(refused(method, &answer)) }
    }
}

fn refused(method: &str, answer: &Answer) -> Error {
    let (kind, reason) = error_in(&answer.body);
    let (method, path) = (method.to_owned(), answer.path.clone());
    Error::Refused { method, path, status: answer.status, kind, reason }
}

/// `error.type` and `error.reason` of a node's answer.
pub(crate) fn error_in(body: &[u8]) -> (String, String) {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let plain = || String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    let kind = text("/error/type").unwrap_or_else(|| "error".to_owned());
    // The last is of a service before the cluster: Amazon's.
    let mut reasons = ["/error/reason", "/error", "/Message"].into_iter();
    (kind, reasons.find_map(text).unwrap_or_else(plain))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use rest::{RestMessage, RestResponse};
    use world::Task;

    use super::*;

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer { path: "/a".to_owned(), status, body: Bytes::from_static(body.as_bytes()) }
    }

    #[test]
    fn a_refusal_is_told_in_the_nodes_words() {
        let body = r#"{"error":{"type":"index_not_found_exception","reason":"no such index [a]"},"status":404}"#;
        let said = refused("GET", &answer(404, body)).to_string();
        assert_eq!(said, "GET /a: 404 index_not_found_exception: no such index [a]");
        let said = refused("PUT", &answer(405, r#"{"error":"not here","status":405}"#)).to_string();
        assert_eq!(said, "PUT /a: 405 error: not here");
        let said = refused("GET", &answer(502, "<html>")).to_string();
        assert_eq!(said, "GET /a: 502 error: <html>");
        let said =
            refused("GET", &answer(401, r#"{"Message":"'/a' is not allowed."}"#)).to_string();
        assert_eq!(said, "GET /a: 401 error: '/a' is not allowed.");
    }

    #[test]
    fn a_health_that_did_not_come_is_an_answer() {
        assert!(answer(201, "").is_accepted());
        assert!(answer(408, r#"{"timed_out":true,"number_of_nodes":1}"#).is_accepted());
        assert!(!answer(408, "").is_accepted());
        assert!(!answer(503, r#"{"timed_out":true}"#).is_accepted());
    }

    #[test]
    fn an_answer_is_json_or_says_why_not() {
        assert_eq!(answer(200, "").json().unwrap(), Value::Null);
        assert_eq!(answer(200, "[1]").json().unwrap()[0], 1);
        assert_eq!(answer(200, "").read::<Option<u8>>().unwrap(), None);
        assert_eq!(answer(200, "[1]").read::<Vec<u8>>().unwrap(), [1]);
        assert!(answer(200, "<").json().unwrap_err().to_string().contains("/a"));
    }

    /// Answers so many questions on each connection, and closes when it has read one more.
    async fn server(env: &Env, name: &str, each: u32) -> (String, Rc<Cell<u32>>, Task<()>) {
        let host = env.host(name);
        let mut listener = host.listen::<RestMessage>(&format!("{name}:9200")).await.unwrap();
        let address = listener.address().to_owned();
        let read = Rc::new(Cell::new(0));
        let counted = read.clone();
        let task = host.spawn("server", async move {
            loop {
                let mut connection = listener.accept().await.unwrap();
                let mut left = each;
                while let Ok(Some(RestMessage::Request(_))) = connection.receiver.recv().await {
                    counted.set(counted.get() + 1);
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    let content_type = "application/json".to_owned();
                    let body = Bytes::from_static(b"{}");
                    let response = RestResponse { status: 200, content_type, location: None, body };
                    let sent = connection.sender.send(RestMessage::Response(response)).await;
                    sent.unwrap();
                }
            }
        });
        (address, read, task)
    }

    #[test]
    fn messages_too_are_sent_twice_only_if_that_is_harmless() {
        world::virtual_world::run(1, async |env| {
            let client = RestClient::new(&env);
            let (address, read, _server) = server(&env, "a", 1).await;
            client.send(&address, "POST", "/", Bytes::new()).await.unwrap();
            // The kept connection is closed when this has been read; a fresh one answers it.
            client.send(&address, "GET", "/", Bytes::new()).await.unwrap();
            assert_eq!(read.get(), 3);
            let broken = client.send(&address, "POST", "/", Bytes::new()).await;
            assert!(matches!(broken, Err(Error::Broken { .. })), "{broken:?}");
            assert_eq!(read.get(), 4);
        });
    }

    #[test]
    fn a_restarted_host_is_asked_again() {
        world::virtual_world::run(1, async |env| {
            let client = RestClient::new(&env);
            let (address, _, first) = server(&env, "a", 9).await;
            client.send(&address, "POST", "/", Bytes::new()).await.unwrap();
            env.kill_host("a");
            drop(first);
            let gone = client.send(&address, "POST", "/", Bytes::new()).await.unwrap_err();
            assert_eq!(gone.to_string(), "a:9200: nobody listens there");
            let (_, read, _second) = server(&env, "a", 9).await;
            client.send(&address, "POST", "/", Bytes::new()).await.unwrap();
            assert_eq!(read.get(), 1);
        });
    }
}
