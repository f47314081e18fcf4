//! Changes that were sent to hosts, and what is known of them. Here nothing is changed: it is counted what a client is
//! told to send.

use std::cell::Cell;

use world::Time;

/// Changes that were sent to a host and not answered by it, whoever answered them afterwards.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unanswered {
    count: u32,
    /// When the last of them was sent.
    pub(crate) sent: Option<Time>,
}

/// The changes that a client sends.
#[derive(Default)]
pub(super) struct SentChanges {
    unanswered: Cell<Unanswered>,
    /// Called before each is sent to a host, also to one more host.
    pub before_each: Option<Box<dyn Fn()>>,
}

impl SentChanges {
    /// A request is about to be sent to a host.
    pub fn begin(&self, method: &str, at: Time) -> Sent<'_> {
        let is_change = method == "PUT";
        if let Some(call) = self.before_each.as_ref().filter(|_| is_change) {
            call();
        }
        Sent { unanswered: &self.unanswered, at, is_change, is_known: Cell::new(!is_change) }
    }

    pub fn unanswered(&self) -> Unanswered {
        self.unanswered.get()
    }
}

/// A request that was sent to one host. Dropped before it is known what came of it, a change may be made yet.
pub(super) struct Sent<'a> {
    unanswered: &'a Cell<Unanswered>,
    at: Time,
    is_change: bool,
    is_known: Cell<bool>,
}

impl Sent<'_> {
    /// It is known what came of it.
    pub fn mark_known(&self) {
        self.is_known.set(true);
    }

    /// The host was sent it over a connection that broke, and again.
    pub fn was_sent_twice(&self) {
        if self.is_change {
            self.count_unanswered();
        }
    }

    fn count_unanswered(&self) {
        let Unanswered { count, sent } = self.unanswered.get();
        self.unanswered.set(Unanswered { count: count + 1, sent: sent.max(Some(self.at)) });
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if !self.is_known.get() {
            self.count_unanswered();
        }
    }
}
