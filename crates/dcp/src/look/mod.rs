//! Looks at a bucket of a live cluster: what its data nodes say of its memory and its DCP connections.
//!
//! Read-only: it authenticates, selects the bucket, and asks for statistics.

mod parse;

use std::time::Duration;

use world::{Env, LocalFuture, Task, Time};

use record::bucket::BucketNode;
use record::observation::{Cost, Gap, Identity, Observation};

use crate::client::{Client, ClientOptions, NODES_MAX, nodes_known_to};
use crate::codec::{Answer, Body};
use crate::{Error, Result};

pub use parse::Statistics;

/// How many times longer than one answer all answers of a node may take in one look, connecting included.
const LOOK_ANSWERS: u32 = 3;
/// A node that failed is asked again after this time: while nobody answers, each try holds up the look.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// The groups that are asked for: of the whole bucket, and of its DCP connections.
const GROUPS: [&str; 2] = ["", "dcp"];

/// Looks at one bucket.
pub struct Looker {
    env: Env,
    began: Time,
    identity: Identity,
    nodes: Vec<DataNode>,
}

/// A node, with its connection while it has one.
struct DataNode {
    options: ClientOptions,
    client: Option<Client>,
    /// Why it failed, and when.
    failed: Option<(String, Time)>,
}

impl Looker {
    /// Connects to the nodes that are named, and finds the others by them. Those that cannot be reached are a gap of
    /// every look. Fails if a node that is named cannot be reached, or refuses us or the bucket.
    pub fn connect<'a>(
        env: &'a Env,
        named: &'a [ClientOptions],
    ) -> LocalFuture<'a, Result<Looker>> {
        Box::pin(async move {
            let mut addresses: Vec<String> = Vec::new();
            let mut version = String::new();
            for options in named {
                let mut client = Client::connect(env, options).await?;
                for address in nodes_known_to(&mut client, options).await? {
                    if !addresses.contains(&address) && addresses.len() < NODES_MAX {
                        addresses.push(address);
                    }
                }
                if let Answer::Value(text) = client.require(0, Body::Version).await?.answer {
                    version = String::from_utf8_lossy(&text).into_owned();
                }
            }
            let Some(first) = named.first() else {
                return Err(Error::Settings("no node is named".to_owned()));
            };
            let identity =
                Identity { name: first.bucket.clone(), flavour: "couchbase".to_owned(), version };
            let node = |address: String| DataNode {
                options: ClientOptions { address, ..first.clone() },
                client: None,
                failed: None,
            };
            let nodes = addresses.into_iter().map(node).collect();
            Ok(Looker { env: env.clone(), began: env.now(), identity, nodes })
        })
    }

    /// Whose bucket it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Looks once, at all nodes at the same time; answers the look's time in milliseconds since the first. Fails if no
    /// node answers.
    pub fn look(&mut self) -> LocalFuture<'_, Result<(f64, Observation)>> {
        Box::pin(async move {
            let begun = self.env.now();
            let looking = std::mem::take(&mut self.nodes).into_iter().map(|mut node| {
                let (env, began) = (self.env.clone(), self.began);
                let looked = async move {
                    let answer = node.look(&env, began).await;
                    (node, answer)
                };
                self.env.spawn("looks at a node", looked)
            });
            let looking: Vec<Task<_>> = looking.collect();
            let (mut buckets, mut gaps, mut failure) = (Vec::new(), Vec::new(), None);
            for looked in looking {
                let Ok((node, answer)) = looked.await else { continue };
                match answer {
                    Ok(bucket) => buckets.extend(bucket),
                    Err(error) => failure = Some(error),
                }
                gaps.extend(node.failed.as_ref().map(|(found, _)| Gap {
                    path: node.options.address.clone(),
                    found: found.clone(),
                    lost: "what its connections send and whether its memory is short".to_owned(),
                }));
                self.nodes.push(node);
            }
            if let Some(error) = failure.filter(|_| buckets.is_empty()) {
                return Err(error);
            }
            let requests = (self.nodes.len() * GROUPS.len()) as u32;
            let took_ms = (self.env.now() - begun).as_secs_f64() * 1e3;
            let cost = Cost { requests, bytes: 0, took_ms };
            let cluster = self.identity.clone();
            let look = Observation { cluster, buckets, gaps, cost, ..Observation::default() };
            Ok(((begun - self.began).as_secs_f64() * 1e3, look))
        })
    }
}

impl DataNode {
    /// What it says; none while it is not asked again.
    async fn look(&mut self, env: &Env, began: Time) -> Result<Option<BucketNode>> {
        if self.failed.as_ref().is_some_and(|(_, at)| env.now() - *at < ASK_AGAIN) {
            return Ok(None);
        }
        let limit = self.options.timeout * LOOK_ANSWERS;
        let answer = env.timeout(limit, self.ask(env, began)).await;
        match answer.unwrap_or_else(|_| Err(Error::silent(&self.options.address, limit))) {
            Ok(bucket) => {
                self.failed = None;
                Ok(Some(bucket))
            }
            Err(error) => {
                // What is still to come on it would answer the next question.
                self.client = None;
                self.failed = Some((error.to_string(), env.now()));
                Err(error)
            }
        }
    }

    async fn ask(&mut self, env: &Env, began: Time) -> Result<BucketNode> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::connect(env, &self.options).await?),
        };
        let mut statistics = Statistics::default();
        for group in GROUPS {
            client.each_stat(group, |name, value| statistics.take(name, value)).await?;
        }
        let answered_ms = (env.now() - began).as_secs_f64() * 1e3;
        Ok(statistics.of_node(&self.options.address, answered_ms))
    }
}
