//! Views that a node holds: between the query and the fetch of a search, between the pages of a scroll, and for the
//! searches of a point in time.

use crate::shard::{LocalShard, ShardKey};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use store::SearchView;
use world::Time;

use crate::transport::{Failure, HeldView, OpenPointInTime, Result, ViewHolder};

/// How long a view is held for a coordinator that does not come back. The fetch follows the query at once.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Views that wait for their fetch at once. `search.max_open_scroll_context` bounds those of scrolls, and
/// `search.max_open_pit_context` those of points in time.
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
    /// For whom it is held from search to search; none: for one fetch.
    kept: Option<Kept>,
}

struct Kept {
    holder: ViewHolder,
    copy: Weak<LocalShard>,
    /// The term that goes with the sequence numbers of its documents.
    primary_term: u64,
    /// For how long after each use.
    keep_alive: Duration,
    /// What the point in time is called, once it is open on every shard: its id, and when it was made.
    name: Option<(String, i64)>,
}

impl Contexts {
    /// None yet; numbers are counted from `first` on.
    pub(super) fn new(first: u64) -> Self {
        Contexts { next: Cell::new(first), open: RefCell::default() }
    }

    /// Holds a view for one fetch; answers with its number.
    pub(super) fn hold(&self, now: Time, shard: ShardKey, view: SearchView) -> Result<u64> {
        if self.count() >= MAX_OPEN {
            let reason =
                format!("[{MAX_OPEN}] searches wait for their fetch on this node; try again");
            return Err(Failure::new(429, "es_rejected_execution_exception", reason));
        }
        Ok(self.enter(Held { shard, view, until: now + KEEP_ALIVE, kept: None }))
    }

    /// Holds a view for further searches; answers with its number. One holder has `most` views here.
    pub(super) fn keep(
        &self,
        now: Time,
        copy: &Rc<LocalShard>,
        view: SearchView,
        (ask, most): (HeldView, usize),
    ) -> Result<u64> {
        let HeldView { holder, keep_alive, .. } = ask;
        if self.of(holder) >= most {
            return Err(too_many(holder, most));
        }
        let (shard, primary_term) = (copy.key().clone(), copy.history_term());
        let copy = Rc::downgrade(copy);
        let kept = Some(Kept { holder, copy, primary_term, keep_alive, name: None });
        Ok(self.enter(Held { shard, view, until: now + keep_alive, kept }))
    }

    fn enter(&self, held: Held) -> u64 {
        let number = self.next.replace(self.next.get().wrapping_add(1));
        self.open.borrow_mut().insert(number, held);
        number
    }

    /// The view of this number. One that is kept for further searches stays; any other is taken out.
    pub(super) fn take(&self, number: u64) -> Result<(ShardKey, SearchView)> {
        let mut open = self.open.borrow_mut();
        if let Some(held) = open.get(&number).filter(|held| held.kept.is_some()) {
            return Ok((held.shard.clone(), held.view.clone()));
        }
        let held = open.remove(&number).ok_or_else(|| missing(number))?;
        Ok((held.shard, held.view))
    }

    /// The kept view of this number, which is kept from now on for the longest `keep_alive` that was asked for so far;
    /// and the term that goes with its sequence numbers. A copy that has come here since the view was made may be of a
    /// later one.
    pub(super) fn renew(
        &self,
        now: Time,
        copy: &Rc<LocalShard>,
        (number, keep_alive): (u64, Duration),
    ) -> Result<(SearchView, u64)> {
        let mut open = self.open.borrow_mut();
        let held = open.get_mut(&number).filter(|held| held.shard == *copy.key());
        let held = held.ok_or_else(|| missing(number))?;
        let kept = held.kept.as_mut().ok_or_else(|| missing(number))?;
        // The node that was asked for a scroll knows when it ends.
        if kept.holder == ViewHolder::PointInTime && held.until <= now {
            return Err(missing(number));
        }
        kept.keep_alive = kept.keep_alive.max(keep_alive);
        held.until = now + kept.keep_alive;
        let is_of_copy = std::ptr::eq(kept.copy.as_ptr(), Rc::as_ptr(copy));
        let term = if is_of_copy { copy.history_term() } else { kept.primary_term };
        Ok((held.view.clone(), term))
    }

    /// Names the point in time that views are held for.
    pub(crate) fn name(&self, numbers: &[u64], id: &str, created_ms: i64) {
        let mut open = self.open.borrow_mut();
        for number in numbers {
            if let Some(kept) = open.get_mut(number).and_then(|held| held.kept.as_mut()) {
                kept.name = Some((id.to_owned(), created_ms));
            }
        }
    }

    /// The points in time that views are held for here.
    pub(crate) fn points_in_time(&self, now: Time) -> Vec<OpenPointInTime> {
        let open = self.open.borrow();
        let kept = open.values().filter(|held| held.until > now).filter_map(|h| h.kept.as_ref());
        let named = kept.filter_map(|kept| Some((kept.name.clone()?, kept.keep_alive)));
        let shown = |((id, created_ms), keep_alive)| OpenPointInTime { id, created_ms, keep_alive };
        named.map(shown).collect()
    }

    /// Whether views of a copy wait for their fetch.
    pub(super) fn wait_for_fetch(&self, shard: &ShardKey) -> bool {
        self.open.borrow().values().any(|held| held.kept.is_none() && held.shard == *shard)
    }

    /// Lets a view go; whether it was held.
    pub(crate) fn free(&self, number: u64) -> bool {
        let held = self.open.borrow_mut().remove(&number);
        held.is_some()
    }

    /// Views that are kept for holders of a kind.
    pub(crate) fn of(&self, holder: ViewHolder) -> usize {
        let is_of = |held: &&Held| held.kept.as_ref().is_some_and(|kept| kept.holder == holder);
        self.open.borrow().values().filter(is_of).count()
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

fn too_many(holder: ViewHolder, most: usize) -> Failure {
    match holder {
        ViewHolder::Scroll => {
            let reason = format!(
                "Trying to create too many scroll contexts. Must be less than or equal to: [{most}]. Clear scrolls that \
                 have ended, or raise the [search.max_open_scroll_context] setting."
            );
            Failure::new(429, "too_many_scroll_contexts_exception", reason)
        }
        ViewHolder::PointInTime => {
            let reason = format!(
                "Trying to create too many Point In Time contexts. Must be less than or equal to: [{most}]. Delete those \
                 that are not needed, or raise the [search.max_open_pit_context] setting."
            );
            Failure::new(429, "rejected_execution_exception", reason)
        }
    }
}

/// There is no such view, or no such scroll.
pub(super) fn missing(number: u64) -> Failure {
    let reason = format!("No search context found for id [{number}]");
    Failure::new(404, "search_context_missing_exception", reason)
}
