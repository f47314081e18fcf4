//! What the connections of a server share.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use ring::hmac;
use tokio::sync::Notify;
use world::Env;

use crate::auth::{Credentials, Hash};
use crate::bucket::Bucket;
use crate::consumer::{ConsumerKind, ConsumerStats, Counts};
use crate::idle::IdleTime;
use crate::policy::{Pauses, Window};
use crate::producer::{ProducerStats, StreamReports};

/// What a server is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// Who may use it. At least one.
    pub users: Vec<Credentials>,
    /// How its consumers work.
    pub consumer: ConsumerKind,
}

/// What a server did since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Connections accepted.
    pub connections: u64,
    /// Authentications that failed.
    pub auth_failures: u64,
}

/// A DCP connection that has a name.
pub(super) struct NamedConnection {
    pub id: u64,
    pub close: Rc<Notify>,
    pub report: Rc<RefCell<ConnectionReport>>,
}

/// Which side of DCP a connection is, and what it did.
#[derive(Default)]
pub(super) enum Side {
    #[default]
    None,
    Producer(ProducerStats, Window),
    /// And the number of its streams, and whether it waits for memory.
    Consumer(ConsumerStats, usize, bool),
}

/// What a connection shows to STAT and to [`super::Server`].
#[derive(Default)]
pub(super) struct ConnectionReport {
    pub side: Side,
    /// How far each stream of a producer is.
    pub streams: StreamReports,
    /// How long a producer waits, and for what.
    pub pauses: Pauses,
}

/// What the connections of a server share.
pub(super) struct Shared {
    pub env: Env,
    pub settings: ServerSettings,
    pub address: String,
    pub buckets: BTreeMap<String, Bucket>,
    /// What fast consumers counted, by bucket.
    pub counts: BTreeMap<String, Counts>,
    /// DCP connections, by bucket and name.
    pub named: RefCell<BTreeMap<(String, String), NamedConnection>>,
    /// Makes the salts of users, known or not.
    pub secret: hmac::Key,
    /// Salted passwords, computed once at start: a client that connects must not hold up the others.
    pub salted: BTreeMap<(Hash, String), Vec<u8>>,
    pub next_id: Cell<u64>,
    pub stats: Cell<ServerStats>,
    pub last_error: RefCell<Option<String>>,
    /// Counts how long the thread waits while a window is full, where anybody wants to know.
    pub flow_control: RefCell<Option<IdleTime>>,
}

impl Shared {
    pub fn count(&self, change: impl FnOnce(&mut ServerStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    /// What fast consumers counted for a bucket; none if consumers keep items.
    pub fn fast(&self, bucket: &str) -> Option<&Counts> {
        let fast = self.settings.consumer == ConsumerKind::Fast;
        self.counts.get(bucket).filter(|_| fast)
    }

    /// The number of DCP connections to a bucket in which this server is the consumer.
    pub fn consumers(&self, bucket: &str) -> usize {
        let named = self.named.borrow();
        let consumer =
            |named: &NamedConnection| matches!(named.report.borrow().side, Side::Consumer(..));
        named.iter().filter(|((of, _), named)| of == bucket && consumer(named)).count()
    }
}
