//! What every task waits for when nothing is left to happen.
//!
//! A task that waits for something of the world has left its waker there, so each waker is looked for in all that can
//! be waited for. Nothing is kept for this while the world runs.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;

use super::World;
use super::flow::Flow;

/// Kinds of waiting that are shown; the rest are counted.
const SHOWN: usize = 40;

/// Nothing is left to run, and the main task has not ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is left to run after {seconds:.3} s of virtual time; waiting: {waiting}")]
pub struct Deadlock {
    /// Virtual seconds when it happened.
    pub seconds: u64,
    /// Tasks that wait, as `task @ host: what for`, with their number; what the world knows first, then the most
    /// frequent, and no more than some forty kinds.
    pub waiting: String,
}

impl World {
    pub(super) fn deadlock(&self) -> Deadlock {
        let known = self.waited_for();
        let mut counts: BTreeMap<(bool, String), u64> = BTreeMap::new();
        self.executor.each(|name, host, waker| {
            let reason = waker.and_then(|waker| known.get(&waker.data().addr()));
            let said = reason.map_or("something of its own", String::as_str);
            let what = format!("{name} @ {host}: {said}");
            *counts.entry((reason.is_none(), what)).or_default() += 1;
        });
        // What the world knows says more, and comes first; then what many wait for.
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

    /// What is waited for, by the waker that waits.
    fn waited_for(&self) -> BTreeMap<usize, String> {
        let mut known = BTreeMap::new();
        let mut note = |waker: &Waker, reason: &str| {
            known.insert(waker.data().addr(), reason.to_owned());
        };
        for host in self.hosts.borrow().values() {
            let flows: Vec<Rc<Flow>> = host.flows();
            for flow in flows {
                let cut = if flow.is_cut() { ", over a link that is cut" } else { "" };
                let from = format!("a message from {}{cut}", flow.ends.from);
                flow.came.each(|waker| note(waker, &from));
                let to = format!("room to send to {}{cut}", flow.ends.to);
                flow.room.each(|waker| note(waker, &to));
            }
        }
        for (address, listening) in self.listening.borrow().iter() {
            let reason = format!("accept at {address}");
            listening.came.each(|waker| note(waker, &reason));
        }
        for (number, link) in self.links.borrow().iter().enumerate() {
            let reason = format!("link {number} to heal");
            link.healed.each(|waker| note(waker, &reason));
        }
        known
    }
}
