//! The trace of a run: hashes of the events of each host, and of all hosts.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::Time;

/// A hash of all events of a run. It covers each host by itself: neither the order of events in the world's queue nor
/// hosts that exchange no messages with it change a host's hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Over all hosts.
    pub hash: u64,
    /// Of each host: over the time, kind and bytes of each of its events, in order.
    pub hosts: BTreeMap<String, u64>,
    /// Timers that went off, pieces of messages that came by, messages that were sent and received.
    pub events: u64,
}

impl Trace {
    pub(super) fn of<'a>(hosts: impl Iterator<Item = (&'a str, &'a HostTrace)>) -> Trace {
        let mut trace = Trace::default();
        for (name, host) in hosts {
            trace.events += host.events.get();
            trace.hosts.insert(name.to_owned(), host.hash.get());
            let with_name = name.bytes().fold(trace.hash, |hash, byte| mix(hash, u64::from(byte)));
            trace.hash = mix(with_name, host.hash.get());
        }
        trace
    }
}

/// The kinds of events that a trace knows.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Wake = 1,
    Piece,
    Delivered,
    Prepared,
    Received,
    Dispatched,
    WindowCheck,
}

/// The trace of one host so far.
#[derive(Default)]
pub(super) struct HostTrace {
    hash: Cell<u64>,
    events: Cell<u64>,
}

impl HostTrace {
    pub(super) fn record(&self, now: Time, kind: Kind, bytes: u64) {
        self.events.set(self.events.get() + 1);
        let event = now.0 ^ ((kind as u64) << 60) ^ bytes.rotate_left(32);
        self.hash.set(mix(self.hash.get(), event));
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}
