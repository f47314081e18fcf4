//! What a runner tells while it goes on. Whoever shows it decides how.

use record::Row;

/// Listens to a run.
pub trait Watch {
    /// A phase begins. `total` is what it will count up to, in `unit` (`documents`, `bytes`).
    fn begin(&self, phase: &str, variant: Option<&str>, total: Option<u64>, unit: &str);
    /// How far it is.
    fn progress(&self, done: u64, total: Option<u64>);
    /// It has ended.
    fn end(&self);
    /// A variant is finished.
    fn row(&self, row: &Row);
    /// Something worth telling.
    fn note(&self, text: &str);
    /// The run is over; a phase that was begun may not have ended.
    fn clear(&self) {}
}

/// Shows nothing.
pub struct Quiet;

impl Watch for Quiet {
    fn begin(&self, _: &str, _: Option<&str>, _: Option<u64>, _: &str) {}
    fn progress(&self, _: u64, _: Option<u64>) {}
    fn end(&self) {}
    fn row(&self, _: &Row) {}
    fn note(&self, _: &str) {}
}
