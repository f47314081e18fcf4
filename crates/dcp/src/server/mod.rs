//! A server of the binary protocol: buckets for clients, consumers and producers.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Server`]: listening, users, buckets, connections by name |
//! | `connection.rs` | one connection: what comes, what goes, what time brings |
//! | `session.rs` | who a client is, what it may, which bucket it uses |
//! | `requests.rs` | documents, vbuckets, settings of DCP |
//! | `stats.rs`, `cluster_config.rs` | what is told of the server |
//!
//! Requests of a connection are answered in their order.

mod cluster_config;
mod connection;
mod requests;
mod session;
mod stats;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ring::hmac;
use tokio::sync::Notify;
use world::{Env, Task};

use crate::auth::{Credentials, Hash, nonce};
use crate::bucket::Bucket;
use crate::consumer::{ConsumerKind, ConsumerStats, Counts};
use crate::policy::Window;
use crate::producer::ProducerStats;
use crate::wire::PacketListener;
use crate::{Error, Result};

/// Pause after a connection could not be accepted: some may close.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What a server is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// Who may use it. At least one.
    pub users: Vec<Credentials>,
    /// How its consumers work.
    pub consumer: ConsumerKind,
    /// The host that clients are told to connect to; none for the one that it listens on.
    pub public_host: Option<String>,
}

/// What a server did since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Connections accepted.
    pub connections: u64,
    /// Connections that ended with an error.
    pub failed: u64,
    /// Authentications that failed.
    pub auth_failures: u64,
}

/// A server that listens. It ends with the last clone.
#[derive(Clone)]
pub struct Server {
    shared: Rc<Shared>,
    _task: Rc<Task<()>>,
}

/// A DCP connection that has a name.
struct Named {
    id: u64,
    close: Rc<Notify>,
    told: Rc<RefCell<Told>>,
}

/// Which side of DCP a connection is, and what it did.
#[derive(Default)]
enum Side {
    #[default]
    None,
    Producer(ProducerStats, Window),
    /// With the number of its streams.
    Consumer(ConsumerStats, usize),
}

/// What others are told of a connection.
#[derive(Default)]
struct Told {
    side: Side,
    /// How far each stream of a producer was read.
    streams: BTreeMap<u16, u64>,
}

struct Shared {
    env: Env,
    settings: ServerSettings,
    address: String,
    buckets: BTreeMap<String, Bucket>,
    /// What fast consumers counted, by bucket.
    counts: BTreeMap<String, Counts>,
    /// By bucket and name.
    named: RefCell<BTreeMap<(String, String), Named>>,
    /// Makes salts of users; those that do not exist have one, too.
    secret: hmac::Key,
    /// Passwords of users, made ready once: a client that comes must not stop those that are here.
    salted: BTreeMap<(Hash, String), Vec<u8>>,
    next_id: Cell<u64>,
    stats: Cell<ServerStats>,
    last_error: RefCell<Option<String>>,
}

impl Shared {
    fn count(&self, change: impl FnOnce(&mut ServerStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    /// What a fast consumer counted for a bucket; none where consumers keep what comes.
    fn fast(&self, bucket: &str) -> Option<&Counts> {
        let fast = self.settings.consumer == ConsumerKind::Fast;
        self.counts.get(bucket).filter(|_| fast)
    }

    /// DCP connections to a bucket whose server's side is the consumer.
    fn consumers(&self, bucket: &str) -> usize {
        let named = self.named.borrow();
        let consumer = |named: &Named| matches!(named.told.borrow().side, Side::Consumer(..));
        named.iter().filter(|((of, _), named)| of == bucket && consumer(named)).count()
    }
}

impl Server {
    /// Serves buckets at a listener.
    ///
    /// # Errors
    /// If there are no users, or two buckets have one name.
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

    /// Why the last connection failed that did.
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error.borrow().clone()
    }

    /// What the consumers of a bucket's connections did, those that are open: sums, and the longest stop.
    pub fn consumer_stats(&self, bucket: &str) -> ConsumerStats {
        let named = self.shared.named.borrow();
        let of_bucket = named.iter().filter(|((of, _), _)| of == bucket);
        of_bucket.fold(ConsumerStats::default(), |sum, (_, connection)| {
            match &connection.told.borrow().side {
                Side::Consumer(stats, _) => sum.and(stats),
                _ => sum,
            }
        })
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
        let id = shared.next_id.get();
        shared.next_id.set(id + 1);
        shared.count(|stats| stats.connections += 1);
        let serving = connection::serve(shared.clone(), id, wire);
        connections.push(shared.env.spawn("serves a client", serving));
    }
}
