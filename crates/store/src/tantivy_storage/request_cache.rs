//! The shard request cache: answers to searches with `request_cache=true`, until a refresh makes a new view: the
//! months of pmc are 2.3, `statuses` 32 times as fast (2026-12-01, docs/benchmarks/search_side_by_side.md).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use tantivy::{Searcher, SearcherGeneration};

use super::shared::Handles;
use query::{SearchRequest, ShardHits};

/// Bytes of answers and requests that a copy keeps; beyond, the oldest go.
const MAX_BYTES: usize = 4 << 20;

#[derive(Default)]
pub(super) struct RequestCache {
    cached: RefCell<CachedAnswers>,
    hits: Cell<u64>,
    misses: Cell<u64>,
}

#[derive(Default)]
struct CachedAnswers {
    /// What all answers are of: the view, and the mapping by which it was read.
    view: Option<(SearcherGeneration, Weak<Handles>)>,
    /// With the bytes that each counts for.
    answers: BTreeMap<Arc<[u8]>, (ShardHits, usize)>,
    oldest: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

/// The cache key of a request; none where it is not to be cached, or its answer depends on the moment.
pub(super) fn key(request: &SearchRequest) -> Option<Arc<[u8]>> {
    if !request.cached {
        return None;
    }
    let key = postcard::to_stdvec(request).ok()?;
    // Dates that count from now. A word that only contains it costs a search.
    let is_of_now = key.windows(3).any(|three| three.eq_ignore_ascii_case(b"now"));
    (!is_of_now).then(|| key.into())
}

impl RequestCache {
    /// The cached answer to a request of this view.
    pub(super) fn get(
        &self,
        handles: &Arc<Handles>,
        searcher: &Searcher,
        key: &[u8],
    ) -> Option<ShardHits> {
        let cached = self.cached.borrow();
        let found = match cached.is_of(handles, searcher) {
            true => cached.answers.get(key).map(|(hits, _)| hits.clone()),
            false => None,
        };
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.set(counter.get() + 1);
        found
    }

    pub(super) fn keep(
        &self,
        handles: &Arc<Handles>,
        searcher: &Searcher,
        key: Arc<[u8]>,
        hits: &ShardHits,
    ) {
        // An answer takes about as many bytes here as in the message that carries it.
        let Ok(answer) = postcard::to_stdvec(hits) else { return };
        let bytes = key.len() + answer.len();
        let mut cached = self.cached.borrow_mut();
        if !cached.is_of(handles, searcher) {
            let view = Some((searcher.generation().clone(), Arc::downgrade(handles)));
            *cached = CachedAnswers { view, ..CachedAnswers::default() };
        }
        if bytes > MAX_BYTES || cached.answers.contains_key(&key) {
            return;
        }
        cached.bytes += bytes;
        cached.oldest.push_back(key.clone());
        cached.answers.insert(key, (hits.clone(), bytes));
        while cached.bytes > MAX_BYTES
            && let Some(oldest) = cached.oldest.pop_front()
        {
            let freed = cached.answers.remove(&oldest).map_or(0, |(_, bytes)| bytes);
            cached.bytes -= freed;
        }
    }

    pub(super) fn clear(&self) {
        self.cached.replace(CachedAnswers::default());
    }

    /// How often an answer was there, and how often it was not.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.hits.get(), self.misses.get())
    }
}

impl CachedAnswers {
    fn is_of(&self, handles: &Arc<Handles>, searcher: &Searcher) -> bool {
        self.view.as_ref().is_some_and(|(generation, by)| {
            generation == searcher.generation() && std::ptr::eq(by.as_ptr(), Arc::as_ptr(handles))
        })
    }
}
