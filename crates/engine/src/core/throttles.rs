//! The rate limits of recoveries on this node.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use policy::rate_limiter::RateLimiter;
use tokio::sync::Notify;
use world::{Env, Time};

use crate::settings::Settings;

/// Which limiter a recovery is subject to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Throttle {
    /// `indices.recovery.max_bytes_per_sec`.
    Peer,
    /// `ccr.indices.recovery.max_bytes_per_sec`.
    Ccr,
}

/// The limiters of a node.
pub(crate) struct Throttles {
    peer: RefCell<RateLimiter>,
    ccr: RefCell<RateLimiter>,
    /// A rate is another one.
    changed: Notify,
    /// How long recoveries have waited for both, summed over chunks: `throttle_time` of the node's statistics.
    pub(crate) waited: Cell<Duration>,
}

/// What a wait takes of a rate: given back where the recovery is cancelled meanwhile.
struct Taken<'a> {
    env: &'a Env,
    limiter: &'a RefCell<RateLimiter>,
    bytes: u64,
    is_over: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.limiter.borrow_mut().give_back(self.env.now(), self.bytes);
        }
    }
}

impl Throttles {
    pub(super) fn new(settings: &Settings) -> Self {
        Throttles {
            peer: RefCell::new(RateLimiter::new(settings.recovery_max_bytes_per_sec())),
            ccr: RefCell::new(RateLimiter::new(settings.ccr_max_bytes_per_sec())),
            changed: Notify::new(),
            waited: Cell::default(),
        }
    }

    pub(super) fn follow(&self, now: Time, settings: &Settings) {
        let peer = self.peer.borrow_mut().set_rate(now, settings.recovery_max_bytes_per_sec());
        let ccr = self.ccr.borrow_mut().set_rate(now, settings.ccr_max_bytes_per_sec());
        if peer || ccr {
            self.changed.notify_waiters();
        }
    }

    /// Waits as a recovery must before it moves `bytes`; answers how long. A rate that changes meanwhile holds for
    /// what is left of the wait.
    pub(super) async fn wait(&self, env: &Env, throttle: Throttle, bytes: u64) -> Duration {
        let limiter = self.of(throttle);
        let began = env.now();
        let mut ends = began + limiter.borrow_mut().pause(began, bytes);
        let mut taken = Taken { env, limiter, bytes, is_over: ends <= began };
        while ends > env.now() {
            let Some(rate) = limiter.borrow().rate() else { break };
            let changed = self.changed.notified();
            if env.timeout(ends - env.now(), changed).await.is_ok() {
                ends = env.now() + limiter.borrow().left(ends - env.now(), rate);
            }
        }
        taken.is_over = true;
        let waited = env.now() - began;
        self.waited.set(self.waited.get() + waited);
        waited
    }

    fn of(&self, throttle: Throttle) -> &RefCell<RateLimiter> {
        match throttle {
            Throttle::Peer => &self.peer,
            Throttle::Ccr => &self.ccr,
        }
    }
}
