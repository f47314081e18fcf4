//! Asking a node, in either world.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use engine::rest::{RestMessage, RestRequest};
use serde_json::Value;
use world::{Connection, Env};

use crate::Error;
use crate::http::HttpClient;

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
    pub fn json(&self) -> Result<Value, Error> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Error::NotJson { path: self.path.clone(), reason: error.to_string() })
    }
}

/// Asks nodes by their REST address: over HTTP in the real world, in messages in the virtual one.
pub struct RestClient {
    env: Env,
    arm: Arm,
}

enum Arm {
    Http(HttpClient),
    Messages(RefCell<BTreeMap<String, Vec<Connection<RestMessage>>>>),
}

impl RestClient {
    /// A client of this world.
    pub fn new(env: &Env) -> Self {
        let arm = if env.is_virtual() {
            Arm::Messages(RefCell::default())
        } else {
            Arm::Http(HttpClient::new(env.clone()))
        };
        RestClient { env: env.clone(), arm }
    }

    /// Asks; any answer but 2xx is [`Error::Refused`].
    pub async fn send(
        &self,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let asking = async {
            match &self.arm {
                Arm::Http(client) => client.send(address, method, path, body).await,
                Arm::Messages(idle) => {
                    let request = RestRequest {
                        method: method.to_owned(),
                        path: path.to_owned(),
                        body,
                    };
                    self.exchange(idle, address, request).await
                }
            }
        };
        let answer = self.env.timeout(ANSWER_TIMEOUT, asking).await;
        let (status, body) = answer
            .map_err(|elapsed| Error::Timeout {
                address: address.to_owned(),
                method: method.to_owned(),
                path: path.to_owned(),
                limit: elapsed.0,
            })?
            .map_err(|source| Error::Connection { address: address.to_owned(), source })?;
        let answer = Answer { path: path.to_owned(), status, body };
        if (200..300).contains(&status) { Ok(answer) } else { Err(refused(method, &answer)) }
    }

    async fn exchange(
        &self,
        idle: &RefCell<BTreeMap<String, Vec<Connection<RestMessage>>>>,
        address: &str,
        request: RestRequest,
    ) -> io::Result<(u16, Bytes)> {
        let kept = idle.borrow_mut().get_mut(address).and_then(Vec::pop);
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.env.connect(address).await?,
        };
        connection.sender.send(RestMessage::Request(request)).await?;
        match connection.receiver.recv().await? {
            Some(RestMessage::Response(response)) => {
                idle.borrow_mut().entry(address.to_owned()).or_default().push(connection);
                Ok((response.status, response.body))
            }
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the node closed the connection")),
        }
    }
}

fn refused(method: &str, answer: &Answer) -> Error {
    let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let plain = || String::from_utf8_lossy(&answer.body[..answer.body.len().min(200)]).into_owned();
    Error::Refused {
        method: method.to_owned(),
        path: answer.path.clone(),
        status: answer.status,
        kind: text("/error/type").unwrap_or_else(|| "error".to_owned()),
        reason: text("/error/reason").or_else(|| text("/error")).unwrap_or_else(plain),
    }
}
