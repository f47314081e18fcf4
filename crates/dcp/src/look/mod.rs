//! Looks at a bucket of a live cluster: what its data nodes say of its memory and its DCP connections.
//!
//! Read-only: it authenticates, selects the bucket, and asks for statistics.

mod parse;

use world::{Env, Time};

use record::bucket::BucketNode;
use record::observation::{Cost, Gap, Identity, Observation};

use crate::client::{Client, ClientOptions, nodes_known_to};
use crate::codec::{Answer, Body};
use crate::{Error, Result};

pub use parse::Statistics;

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
}

impl Looker {
    /// Connects to the nodes that are named, and finds the others by them. Those that cannot be reached are a gap of
    /// every look.
    ///
    /// # Errors
    /// If a node that is named cannot be reached, or refuses us or the bucket.
    pub async fn connect(env: &Env, named: &[ClientOptions]) -> Result<Looker> {
        let mut addresses: Vec<String> = Vec::new();
        let mut version = String::new();
        for options in named {
            let mut client = Client::connect(env, options).await?;
            for address in nodes_known_to(&mut client, options).await? {
                if !addresses.contains(&address) {
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
        };
        let nodes = addresses.into_iter().map(node).collect();
        Ok(Looker { env: env.clone(), began: env.now(), identity, nodes })
    }

    /// Whose bucket it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Looks once, one node after another; answers the look's time in milliseconds since the first.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn look(&mut self) -> Result<(f64, Observation)> {
        let begun = self.env.now();
        let (mut buckets, mut gaps, mut failure) = (Vec::new(), Vec::new(), None);
        for node in &mut self.nodes {
            match node.look(&self.env, self.began).await {
                Ok(bucket) => buckets.push(bucket),
                Err(error) => {
                    // What is still to come on it would answer the next question.
                    node.client = None;
                    gaps.push(Gap {
                        path: node.options.address.clone(),
                        found: error.to_string(),
                        lost: "what its connections send and whether its memory is short"
                            .to_owned(),
                    });
                    failure = Some(error);
                }
            }
        }
        if let Some(error) = failure.filter(|_| buckets.is_empty()) {
            return Err(error);
        }
        let requests = (self.nodes.len() * GROUPS.len()) as u32;
        let took_ms = self.env.now().since(begun).as_secs_f64() * 1e3;
        let cost = Cost { requests, bytes: 0, took_ms };
        let cluster = self.identity.clone();
        let look = Observation { cluster, buckets, gaps, cost, ..Observation::default() };
        Ok((begun.since(self.began).as_secs_f64() * 1e3, look))
    }
}

impl DataNode {
    async fn look(&mut self, env: &Env, began: Time) -> Result<BucketNode> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::connect(env, &self.options).await?),
        };
        let mut statistics = Statistics::default();
        for group in GROUPS {
            client.each_stat(group, |name, value| statistics.take(name, value)).await?;
        }
        let answered_ms = env.now().since(began).as_secs_f64() * 1e3;
        Ok(statistics.of_node(&self.options.address, answered_ms))
    }
}
