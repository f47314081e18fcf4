//! How one request is sent, and its answer read: over HTTP in the real world, in messages in the virtual one.

use std::io;

use bytes::Bytes;
use rest::{RestMessage, RestRequest};
use world::{Connection, Env};

use super::{ConnectionPool, Failure, HttpClient};
use crate::Credentials;

/// Sends requests to nodes of one world.
pub(crate) enum Exchange {
    Http(HttpClient),
    /// In the virtual world no node asks for credentials, and no answer is too large.
    Messages(Env, ConnectionPool<Connection<RestMessage>>),
}

impl Exchange {
    /// The exchange of the world of `env`.
    pub(crate) fn of(env: &Env) -> Exchange {
        match env.is_virtual() {
            true => Exchange::Messages(env.clone(), ConnectionPool::default()),
            false => Exchange::Http(HttpClient::new(env.clone())),
        }
    }

    /// Another one with the same credentials, and connections of its own.
    pub(crate) fn another(&self) -> Exchange {
        match self {
            Exchange::Http(client) => Exchange::Http(client.another()),
            Exchange::Messages(env, _) => Exchange::of(env),
        }
    }

    /// How often a connection broke after a node may have read what was asked on it.
    pub(crate) fn broken(&self) -> u32 {
        match self {
            Exchange::Http(client) => client.broken(),
            Exchange::Messages(_, pool) => pool.broken(),
        }
    }

    /// Sends credentials with every request from now on.
    pub(crate) fn set_credentials(&mut self, credentials: &Credentials) {
        if let Exchange::Http(client) = self {
            client.set_credentials(credentials);
        }
    }

    /// The same with another bound on answers.
    pub(crate) fn with_answer_bytes_max(self, bytes: usize) -> Exchange {
        match self {
            Exchange::Http(client) => Exchange::Http(client.with_answer_bytes_max(bytes)),
            messages @ Exchange::Messages(..) => messages,
        }
    }

    /// Sends a request and reads the whole answer: status and body. Where a connection of the pool turns out closed,
    /// the request is sent once more on a fresh one, unless that could do something twice.
    pub(crate) async fn send(
        &self,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<(u16, Bytes), Failure> {
        let (env, pool) = match self {
            Exchange::Http(client) => return client.send(address, method, path, body).await,
            Exchange::Messages(env, pool) => (env, pool),
        };
        let request = RestRequest { method: method.to_owned(), path: path.to_owned(), body };
        let open = async || {
            env.connect(address).await.map_err(|error| {
                // The address is in the error that this becomes.
                let text = error.to_string().replace(&format!("connect to {address}: "), "");
                io::Error::new(error.kind(), text)
            })
        };
        pool.ask(address, method, open, async |connection| ask(connection, request.clone()).await)
            .await
    }
}

async fn ask(
    mut connection: Connection<RestMessage>,
    request: RestRequest,
) -> Result<((u16, Bytes), Option<Connection<RestMessage>>), Failure> {
    connection.sender.send(RestMessage::Request(request)).await.map_err(Failure::Unread)?;
    match connection.receiver.recv().await.map_err(Failure::Broken)? {
        Some(RestMessage::Response(response)) => {
            Ok(((response.status, response.body), Some(connection)))
        }
        _ => {
            let text = "the node closed the connection before it answered";
            Err(Failure::Broken(io::Error::new(io::ErrorKind::UnexpectedEof, text)))
        }
    }
}
