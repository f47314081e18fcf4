//! The rate limits of recoveries on this node.

use std::cell::RefCell;
use std::time::Duration;

use policy::rate_limiter::RateLimiter;

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
}

impl Throttles {
    pub(super) fn new(settings: &Settings) -> Self {
        Throttles {
            peer: RefCell::new(RateLimiter::new(settings.recovery_max_bytes_per_sec())),
            ccr: RefCell::new(RateLimiter::new(settings.ccr_max_bytes_per_sec())),
        }
    }

    pub(super) fn follow(&self, settings: &Settings) {
        self.peer.borrow_mut().set_rate(settings.recovery_max_bytes_per_sec());
        self.ccr.borrow_mut().set_rate(settings.ccr_max_bytes_per_sec());
    }

    pub(super) fn of(&self, throttle: Throttle) -> &RefCell<RateLimiter> {
        match throttle {
            Throttle::Peer => &self.peer,
            Throttle::Ccr => &self.ccr,
        }
    }

    /// How long recoveries have waited for both.
    pub(crate) fn waited_total(&self) -> Duration {
        self.peer.borrow().throttled_total() + self.ccr.borrow().throttled_total()
    }
}
