//! A load in the virtual world, whose clients send requests as messages, each over a connection of its own to each
//! host.

use std::sync::Arc;

use bytes::Bytes;
use record::LoadFigures;
use rest::{RestMessage, RestRequest};
use world::{Connection, Env};

use super::client::{Client, Reply};
use super::driver::{Live, drive};
use super::{Failure, Load, Operation, Request};
use crate::error::Result;

/// Drives a load in the virtual world. Fails as [`Operation::requests`] and [`drive`].
pub async fn in_virtual_time(
    env: &Env,
    load: &Load,
    operation: &Operation,
    live: &Arc<Live>,
) -> Result<LoadFigures> {
    let requests = operation.requests(load.seed, 0, 1)?;
    let client = |_| MessageClient::new(env, &load.hosts);
    let recorder = drive(env, load, requests, client, live).await?;
    Ok(recorder.figures(&operation.name, load))
}

/// A client.
pub struct MessageClient {
    env: Env,
    hosts: Vec<(String, Option<Connection<RestMessage>>)>,
    body: Bytes,
}

impl MessageClient {
    /// A client on the host of `env`, which has asked nobody yet.
    pub fn new(env: &Env, hosts: &[String]) -> Self {
        let hosts = hosts.iter().map(|host| (host.clone(), None)).collect();
        MessageClient { env: env.clone(), hosts, body: Bytes::new() }
    }
}

impl Client for MessageClient {
    async fn ask(&mut self, host: usize, request: &Request) -> Result<Reply, Failure> {
        let message = || {
            RestMessage::Request(RestRequest {
                method: request.method.to_string(),
                path: request.path.to_string(),
                body: request.body.clone(),
            })
        };
        let (address, kept) = &mut self.hosts[host];
        // A kept connection may have been closed by its node; that is no failure of this request.
        let mut connection = match kept.take() {
            Some(connection) if connection.sender.send(message()).await.is_ok() => connection,
            _ => {
                let connected = self.env.connect::<RestMessage>(address).await;
                let connection = connected.map_err(|_| Failure::Unreachable)?;
                connection.sender.send(message()).await.map_err(|_| Failure::Unreachable)?;
                connection
            }
        };
        match connection.receiver.recv().await {
            Ok(Some(RestMessage::Response(response))) => {
                *kept = Some(connection);
                let reply = Reply { status: response.status, bytes: response.body.len() as u64 };
                self.body = response.body;
                Ok(reply)
            }
            Ok(Some(RestMessage::Request(_))) => Err(Failure::Malformed),
            Ok(None) | Err(_) => Err(Failure::Closed),
        }
    }

    fn body(&self) -> &[u8] {
        &self.body
    }

    fn give_up(&mut self, host: usize) {
        // Already dropped by the request that did not come back.
        self.hosts[host].1 = None;
    }
}
