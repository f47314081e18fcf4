//! Views that a node holds between the query and the fetch of a search.

use crate::shard::ShardKey;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use store::SearchView;
use world::Time;

use crate::transport::Failure;

/// How long a view is held for a coordinator that does not come back. The fetch follows the query at once.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Views that are held at once (`search.max_open_scroll_context` of the field bounds its like).
const MAX_OPEN: usize = 5000;

/// The views that are held.
pub(crate) struct Contexts {
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Held>>,
}

struct Held {
    /// Whose view it is. The copy itself is not held: it may close, and open again, meanwhile.
    shard: ShardKey,
    view: SearchView,
    until: Time,
}

impl Contexts {
    /// None yet; numbers are counted from `first` on.
    pub(super) fn new(first: u64) -> Self {
        Contexts { next: Cell::new(first), open: RefCell::default() }
    }

    /// Holds a view; answers with its number.
    pub(super) fn hold(
        &self,
        now: Time,
        shard: ShardKey,
        view: SearchView,
    ) -> Result<u64, Failure> {
        if self.count() >= MAX_OPEN {
            let reason =
                format!("[{MAX_OPEN}] searches wait for their fetch on this node; try again");
            return Err(Failure::new(429, "es_rejected_execution_exception", reason));
        }
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        self.open.borrow_mut().insert(number, Held { shard, view, until: now + KEEP_ALIVE });
        Ok(number)
    }

    /// Gives a view back, once.
    pub(super) fn take(&self, number: u64) -> Result<(ShardKey, SearchView), Failure> {
        let held = self.open.borrow_mut().remove(&number);
        held.map(|held| (held.shard, held.view)).ok_or_else(|| {
            let reason = format!("No search context found for id [{number}]");
            Failure::new(404, "search_context_missing_exception", reason)
        })
    }

    /// Lets a view go that nothing is fetched from.
    pub(crate) fn free(&self, number: u64) {
        let held = self.open.borrow_mut().remove(&number);
        drop(held);
    }

    /// Views that are held.
    pub(crate) fn count(&self) -> usize {
        self.open.borrow().len()
    }

    pub(super) fn expire(&self, now: Time) {
        let mut open = self.open.borrow_mut();
        let gone: Vec<(u64, Held)> = open.extract_if(.., |_, held| held.until <= now).collect();
        drop(open);
        drop(gone);
    }
}
