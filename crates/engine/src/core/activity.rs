//! Which copies are in use: a node may have thousands, and maintenance rests while nobody writes or searches.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use world::Time;

use crate::shard::{LocalShard, ShardKey};

/// Without a write or a search for this long there is nothing left to refresh or to commit. Longer than searches keep
/// a copy refreshed.
pub(crate) const QUIET_AFTER: Duration = Duration::from_secs(60);

/// Which copies are in use.
pub(crate) struct Activity {
    /// When a copy here was last written or searched, or the state changed; told to who rests until then.
    pub(crate) used_at: Cell<Time>,
    pub(crate) used: Notify,
    /// Copies that were written or searched lately: the others rest.
    pub(crate) in_use: RefCell<BTreeMap<ShardKey, Rc<LocalShard>>>,
    /// Something may be due to copies that rest, too: their settings may have changed, or one has a new lease.
    pub(crate) all_are_due: Cell<bool>,
}

impl Activity {
    pub(super) fn new(now: Time) -> Self {
        Activity {
            used_at: Cell::new(now),
            used: Notify::new(),
            in_use: RefCell::default(),
            all_are_due: Cell::new(true),
        }
    }
}
