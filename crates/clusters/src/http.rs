//! A small HTTP/1.1 client for the real world: kept connections, bounded answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use world::{Env, Task};

/// An answer larger than this is refused.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Kept connections of one address.
const IDLE_MAX: usize = 32;

struct Open {
    send: SendRequest<Full<Bytes>>,
    _connection: Task<()>,
}

/// The client. Clones share its connections.
#[derive(Clone)]
pub(crate) struct HttpClient {
    env: Env,
    idle: Rc<RefCell<BTreeMap<String, Vec<Open>>>>,
}

impl HttpClient {
    pub(crate) fn new(env: Env) -> Self {
        HttpClient { env, idle: Rc::default() }
    }

    /// Asks, and reads the whole answer: status and body.
    pub(crate) async fn send(
        &self,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> io::Result<(u16, Bytes)> {
        let kept = self.idle.borrow_mut().get_mut(address).and_then(Vec::pop);
        if let Some(open) = kept {
            let again = body.clone();
            match self.ask(open, address, method, path, body).await {
                // The node closed the kept connection before it read the question: ask anew.
                Err((_, true)) => {
                    let open = self.open(address).await?;
                    let answer = self.ask(open, address, method, path, again).await;
                    return answer.map_err(|(error, _)| error);
                }
                answer => return answer.map_err(|(error, _)| error),
            }
        }
        let open = self.open(address).await?;
        self.ask(open, address, method, path, body).await.map_err(|(error, _)| error)
    }

    async fn open(&self, address: &str) -> io::Result<Open> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (send, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let connection = self.env.spawn("http connection", async move {
            // How it ends is seen by who waits for an answer.
            let _ = connection.await;
        });
        Ok(Open { send, _connection: connection })
    }

    /// Asks on a connection. With the error: whether the question was certainly never read.
    async fn ask(
        &self,
        mut open: Open,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<(u16, Bytes), (io::Error, bool)> {
        let request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("host", address)
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| (io::Error::new(io::ErrorKind::InvalidInput, error), false))?;
        if open.send.ready().await.is_err() {
            return Err((io::ErrorKind::ConnectionReset.into(), true));
        }
        let response = open
            .send
            .send_request(request)
            .await
            .map_err(|error| (io::Error::other(error.to_string()), error.is_canceled()))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| (io::Error::other(error.to_string()), false))?;
        let mut idle = self.idle.borrow_mut();
        let kept = idle.entry(address.to_owned()).or_default();
        if kept.len() < IDLE_MAX && !open.send.is_closed() {
            kept.push(open);
        }
        Ok((status, body.to_bytes()))
    }
}
