//! What every task waits for when no event is left.
//!
//! A task that waits for a connection, a listener or a link has left its waker there, so the task's waker is looked up
//! among the wakers of all of those. Nothing is recorded for this while the world runs.

use std::collections::BTreeMap;
use std::task::Waker;

use super::world::World;

/// Kinds of waiting that are listed; the rest are counted.
const SHOWN: usize = 40;

/// No event is left, and the main task has not ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is left to run after {seconds:.3} s of virtual time; waiting: {waiting}")]
pub struct Deadlock {
    /// Virtual seconds when it happened.
    pub seconds: u64,
    /// Waiting tasks, as `task @ host: what for`, with their number: first those whose reason the world knows, then the
    /// most frequent; no more than some forty kinds.
    pub waiting: String,
}

impl World {
    pub(crate) fn deadlock(&self) -> Deadlock {
        let known = self.waited_for();
        let mut counts: BTreeMap<(bool, String), u64> = BTreeMap::new();
        self.executor.each(|name, host, waker| {
            let reason = waker.and_then(|waker| known.get(&waker.data().addr()));
            let said = reason.map_or("something of its own", String::as_str);
            let what = format!("{name} @ {host}: {said}");
            *counts.entry((reason.is_none(), what)).or_default() += 1;
        });
        let mut counts: Vec<((bool, String), u64)> = counts.into_iter().collect();
        counts.sort_by(|a, b| a.0.0.cmp(&b.0.0).then(b.1.cmp(&a.1)).then_with(|| a.0.cmp(&b.0)));
        let show = |((_, what), count): &((bool, String), u64)| format!("{what} x {count}");
        let mut parts: Vec<String> = counts.iter().take(SHOWN).map(show).collect();
        if counts.len() > SHOWN {
            let tasks: u64 = counts[SHOWN..].iter().map(|(_, count)| count).sum();
            parts.push(format!("and {} more kinds, {tasks} tasks", counts.len() - SHOWN));
        }
        Deadlock { seconds: self.events.now().0 / 1_000_000_000, waiting: parts.join(", ") }
    }

    /// What each waker waits for, by the waker's address.
    fn waited_for(&self) -> BTreeMap<usize, String> {
        let mut known = BTreeMap::new();
        let mut add = |waker: &Waker, reason: &str| {
            known.insert(waker.data().addr(), reason.to_owned());
        };
        for flow in self.flows() {
            let cut = if flow.is_cut() { ", over a link that is cut" } else { "" };
            let from = format!("a message from {}{cut}", flow.ends.from);
            flow.readable.each(|waker| add(waker, &from));
            let to = format!("room to send to {}{cut}", flow.ends.to);
            flow.writable.each(|waker| add(waker, &to));
        }
        for (address, listening) in self.listening.borrow().iter() {
            let reason = format!("accept at {address}");
            listening.came.each(|waker| add(waker, &reason));
        }
        for (number, link) in self.links.borrow().iter().enumerate() {
            let reason = format!("link {number} to heal");
            link.healed.each(|waker| add(waker, &reason));
        }
        known
    }
}
