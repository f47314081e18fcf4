//! Views that a node holds: between the query and the fetch of a search, and between the pages of a scroll.

use crate::shard::ShardKey;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use store::SearchView;
use world::Time;

use crate::transport::Failure;

/// How long a view is held for a coordinator that does not come back. The fetch follows the query at once.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Views that wait for their fetch at once. `search.max_open_scroll_context` bounds those of scrolls.
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
    /// Whether it is held from page to page, and not for one fetch.
    scrolls: bool,
}

impl Contexts {
    /// None yet; numbers are counted from `first` on.
    pub(super) fn new(first: u64) -> Self {
        Contexts { next: Cell::new(first), open: RefCell::default() }
    }

    /// Holds a view for one fetch; answers with its number.
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
        Ok(self.enter(Held { shard, view, until: now + KEEP_ALIVE, scrolls: false }))
    }

    /// Holds a view for the pages of a scroll; answers with its number.
    pub(super) fn hold_scroll(
        &self,
        until: Time,
        shard: ShardKey,
        view: SearchView,
        most: usize,
    ) -> Result<u64, Failure> {
        if self.scrolls() >= most {
            let reason = format!(
                "Trying to create too many scroll contexts. Must be less than or equal to: [{most}]. Clear scrolls that \
                 have ended, or raise the [search.max_open_scroll_context] setting."
            );
            return Err(Failure::new(429, "too_many_scroll_contexts_exception", reason));
        }
        Ok(self.enter(Held { shard, view, until, scrolls: true }))
    }

    fn enter(&self, held: Held) -> u64 {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        self.open.borrow_mut().insert(number, held);
        number
    }

    /// Gives a view back: that of a scroll as often as it is asked for, another once.
    pub(super) fn take(&self, number: u64) -> Result<(ShardKey, SearchView), Failure> {
        let mut open = self.open.borrow_mut();
        match open.get(&number) {
            Some(held) if held.scrolls => Ok((held.shard.clone(), held.view.clone())),
            Some(_) => {
                Ok(open.remove(&number).map(|held| (held.shard, held.view)).expect("it is there"))
            }
            None => Err(missing(number)),
        }
    }

    /// Holds the view of a scroll until then.
    pub(super) fn prolong(&self, number: u64, until: Time) {
        if let Some(held) = self.open.borrow_mut().get_mut(&number) {
            held.until = until;
        }
    }

    /// Whether views of a copy wait for their fetch.
    pub(super) fn wait_for_fetch(&self, shard: &ShardKey) -> bool {
        self.open.borrow().values().any(|held| !held.scrolls && held.shard == *shard)
    }

    /// Lets a view go; whether it was held.
    pub(crate) fn free(&self, number: u64) -> bool {
        let held = self.open.borrow_mut().remove(&number);
        held.is_some()
    }

    /// Views that are held for scrolls.
    pub(crate) fn scrolls(&self) -> usize {
        self.open.borrow().values().filter(|held| held.scrolls).count()
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

/// There is no such view, or no such scroll.
pub(super) fn missing(number: u64) -> Failure {
    let reason = format!("No search context found for id [{number}]");
    Failure::new(404, "search_context_missing_exception", reason)
}
