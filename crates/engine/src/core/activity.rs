//! Which copies are in use: a node may have thousands, and maintenance rests while nobody writes or searches.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use world::Time;

use crate::shard::{LocalShard, ShardKey};

/// A copy that was not written or searched for this long has nothing left to refresh or to commit. Longer than a search
/// keeps a copy refreshed.
pub(crate) const QUIET_AFTER: Duration = Duration::from_secs(60);

/// Which copies are in use.
pub(crate) struct Activity {
    /// When a copy here was last written or searched, or the state changed.
    pub(crate) used_at: Cell<Time>,
    pub(crate) used: Notify,
    /// Copies that were written or searched lately; the maintenance skips the others.
    pub(crate) in_use: RefCell<BTreeMap<ShardKey, Rc<LocalShard>>>,
    /// Whether the maintenance must also look at idle copies: their settings may have changed, or one has a new lease.
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
