//! What a copy did since it was opened.

use std::cell::Cell;

use world::{Env, Time};

use crate::requests::{ShardWork, Timed};

/// What a copy did since it was opened; counted where it does it.
#[derive(Default)]
pub(super) struct WorkDone {
    counted: Cell<ShardWork>,
}

impl WorkDone {
    pub(super) fn counted(&self) -> ShardWork {
        self.counted.get()
    }

    /// Counts something that began at `began` and has just ended.
    pub(super) fn count(&self, env: &Env, of: fn(&mut ShardWork) -> &mut Timed, began: Time) {
        self.add(of, Timed { count: 1, time: env.now() - began });
    }

    /// Adds to what was counted.
    pub(super) fn add(&self, to: fn(&mut ShardWork) -> &mut Timed, more: Timed) {
        let mut counted = self.counted.get();
        *to(&mut counted) += more;
        self.counted.set(counted);
    }
}
