//! The scrolls that a node was asked for, between their pages.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use query::SearchRequest;
use world::Time;

use super::asked_shards::ViewOfShard;
use crate::transport::ShardFailure;

/// The scrolls that a node was asked for.
pub(super) struct Scrolls {
    next: Cell<u64>,
    pub(super) open: RefCell<BTreeMap<u64, Open>>,
}

#[derive(Clone)]
pub(super) struct Open {
    pub(super) until: Time,
    /// Held while a page is read: pages that are asked for at once come one after another.
    pub(super) scroll: Rc<tokio::sync::Mutex<Scroll>>,
}

/// A scroll between two of its pages.
pub(super) struct Scroll {
    /// As it was asked, for the answers.
    pub(super) asked: Arc<SearchRequest>,
    /// As it is searched.
    pub(super) request: SearchRequest,
    /// The moment that `now` stands for on all pages, in milliseconds since 1970.
    pub(super) now_ms: i64,
    /// Of the first page.
    pub(super) total: u64,
    pub(super) max_score: Option<f32>,
    pub(super) shards: Vec<ViewOfShard>,
    /// Shards that have had no part in it from the first page on.
    pub(super) failed: Vec<ShardFailure>,
}

impl Scrolls {
    /// None yet; numbers are counted from `first` on.
    pub(super) fn new(first: u64) -> Self {
        Scrolls { next: Cell::new(first), open: RefCell::default() }
    }

    pub(super) fn enter(&self, until: Time, scroll: Scroll) -> u64 {
        let number = self.next.replace(self.next.get().wrapping_add(1));
        let scroll = Rc::new(tokio::sync::Mutex::new(scroll));
        self.open.borrow_mut().insert(number, Open { until, scroll });
        number
    }

    /// Forgets scrolls that nobody went on with; the nodes let go of their views by themselves.
    pub(super) fn expire(&self, now: Time) {
        self.open.borrow_mut().retain(|_, open| open.until > now);
    }
}
