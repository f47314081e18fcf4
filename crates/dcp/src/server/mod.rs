//! A server of the binary protocol: buckets for clients, consumers and producers.
//!
//! | file | holds |
//! | --- | --- |
//! | `shared.rs` | what connections share: users, buckets, connections by name |
//! | `session.rs` | the user of a connection, its rights and its bucket |
//! | `connection.rs` | one connection: packets in, packets out, timers |
//! | `stats.rs`, `cluster_config.rs` | STAT, and the cluster's configuration |
//! | `requests.rs` | requests for documents, vbuckets and DCP |
//! | `mod.rs` | [`Server`]: listening |
//!
//! Requests of a connection are answered in their order.

mod cluster_config;
mod connection;
mod requests;
mod session;
mod shared;
mod stats;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ring::hmac;
use world::{Env, Task};

use crate::auth::nonce;
use crate::bucket::Bucket;
use crate::consumer::{ConsumerStats, Counts};
use crate::idle::IdleTime;
use crate::wire::PacketListener;
use crate::{Error, Result};
pub use shared::{ServerSettings, ServerStats};
use shared::{Shared, Side};

/// Pause after a connection could not be accepted; others may close meanwhile.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// The most connections at a time. A move of all vbuckets at once has two for each of 1024.
const MAX_CONNECTIONS: usize = 4096;

/// A server that listens. It ends with the last clone.
#[derive(Clone)]
pub struct Server {
    shared: Rc<Shared>,
    _task: Rc<Task<()>>,
}

impl Server {
    /// Serves buckets at a listener. Fails if there are no users, or two buckets have one name.
    pub fn start(
        env: &Env,
        listener: PacketListener,
        buckets: Vec<Bucket>,
        settings: ServerSettings,
    ) -> Result<Server> {
        if settings.users.is_empty() {
            return Err(Error::Settings("a server needs at least one user".to_owned()));
        }
        let count = buckets.len();
        let buckets: BTreeMap<String, Bucket> =
            buckets.into_iter().map(|bucket| (bucket.settings().name.clone(), bucket)).collect();
        if buckets.len() != count {
            return Err(Error::Settings("two buckets have the same name".to_owned()));
        }
        let secret = hmac::Key::new(hmac::HMAC_SHA256, nonce(env).as_bytes());
        let shared = Rc::new(Shared {
            env: env.clone(),
            address: listener.address().to_owned(),
            counts: buckets.keys().map(|name| (name.clone(), Counts::default())).collect(),
            buckets,
            salted: session::salted_passwords(&secret, &settings.users),
            secret,
            settings,
            named: RefCell::default(),
            next_id: Cell::new(1),
            stats: Cell::default(),
            last_error: RefCell::default(),
            flow_control: RefCell::default(),
        });
        let task = env.spawn("accepts clients", accept(shared.clone(), listener));
        Ok(Server { shared, _task: Rc::new(task) })
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// What it did.
    pub fn stats(&self) -> ServerStats {
        self.shared.stats.get()
    }

    /// Why the last failed connection failed.
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error.borrow().clone()
    }

    /// What the consumers of a bucket's open connections did: sums, and the longest stop.
    pub fn consumer_stats(&self, bucket: &str) -> ConsumerStats {
        let named = self.shared.named.borrow();
        let of_bucket = named.iter().filter(|((of, _), _)| of == bucket);
        of_bucket.fold(ConsumerStats::default(), |sum, (_, connection)| {
            match &connection.report.borrow().side {
                Side::Consumer(stats, ..) => sum.and(stats),
                _ => sum,
            }
        })
    }

    /// Has `waits` count from now on how long the thread waits while producers are held back by full windows.
    pub fn count_flow_control(&self, waits: IdleTime) {
        *self.shared.flow_control.borrow_mut() = Some(waits);
    }

    /// What a fast consumer counted of a bucket.
    pub fn counts(&self, bucket: &str) -> Option<Counts> {
        self.shared.counts.get(bucket).cloned()
    }
}

async fn accept(shared: Rc<Shared>, mut listener: PacketListener) {
    let mut connections: Vec<Task<()>> = Vec::new();
    loop {
        let Ok(wire) = listener.accept().await else {
            shared.env.sleep(ACCEPT_RETRY).await;
            continue;
        };
        connections.retain(|task| !task.is_finished());
        if connections.len() >= MAX_CONNECTIONS {
            let turning = connection::turn_away(shared.clone(), wire);
            connections.push(shared.env.spawn("turns a client away", turning));
            continue;
        }
        let id = shared.next_id.get();
        shared.next_id.set(id + 1);
        shared.count(|stats| stats.connections += 1);
        let serving = connection::serve(shared.clone(), id, wire);
        connections.push(shared.env.spawn("serves a client", serving));
    }
}
