//! What a runner tells while it goes on. Whoever shows it decides how.

use std::rc::Rc;

use record::Row;
use world::Env;

/// Listens to a run.
pub trait Watch {
    /// A phase begins. The total is what it will count up to, in a unit (`documents`, `bytes`).
    fn begin(&self, _phase: &str, _variant: Option<&str>, _total: Option<u64>, _unit: &str) {}
    /// How far it is.
    fn progress(&self, _done: u64, _total: Option<u64>) {}
    /// It has ended.
    fn end(&self) {}
    /// A variant is finished.
    fn row(&self, _row: &Row) {}
    /// Something worth telling.
    fn note(&self, _text: &str) {}
    /// What the clock of the virtual world shows, in seconds: rates are of its time. Not called in real time.
    fn clock(&self, _now_s: f64) {}
    /// The run is over; a phase that was begun may not have ended.
    fn clear(&self) {}
}

/// Hands on what a run in virtual time tells, each time with the time of its world.
pub(crate) struct VirtualTime {
    env: Env,
    inner: Rc<dyn Watch>,
}

impl VirtualTime {
    pub(crate) fn new(env: &Env, inner: Rc<dyn Watch>) -> Self {
        VirtualTime { env: env.clone(), inner }
    }

    fn told(&self) -> &dyn Watch {
        self.inner.clock(self.env.now().0 as f64 / 1e9);
        &*self.inner
    }
}

impl Watch for VirtualTime {
    fn begin(&self, phase: &str, variant: Option<&str>, total: Option<u64>, unit: &str) {
        self.told().begin(phase, variant, total, unit);
    }
    fn progress(&self, done: u64, total: Option<u64>) {
        self.told().progress(done, total);
    }
    fn end(&self) {
        self.told().end();
    }
    fn row(&self, row: &Row) {
        self.inner.row(row);
    }
    fn note(&self, text: &str) {
        self.inner.note(text);
    }
    fn clear(&self) {
        self.inner.clear();
    }
}

/// Shows nothing.
pub struct Quiet;

impl Watch for Quiet {}
