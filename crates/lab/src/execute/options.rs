//! The options of a run: what differs from its plan, where its record goes, and who watches.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use crate::runner::{Quiet, Watch};

/// Waits until somebody wants the run to end; an error if nobody can say so.
pub type Interrupt = Rc<dyn Fn() -> LocalBoxFuture<'static, std::io::Result<()>>>;

/// How a plan is executed. Without changes it is as its file says.
#[derive(Clone)]
pub struct Options {
    /// Size of the corpus; 1 is the plan's own.
    pub scale: f64,
    /// Repetitions of every variant, instead of the plan's.
    pub laps: Option<u32>,
    /// Only the variants of these names; all where there are none.
    pub variants: Vec<String>,
    /// Round-trip time of the link, instead of the plan's.
    pub rtt: Option<Duration>,
    /// Rate of the link, instead of the plan's.
    pub rate_bytes_per_s: Option<u64>,
    /// Seed of everything random, instead of the plan's.
    pub seed: Option<u64>,
    /// The directory in which the record's directory is made.
    pub runs: PathBuf,
    /// The watcher, which is told what happens.
    pub watch: Rc<dyn Watch>,
    /// Ends a run before its time. In virtual time there is no event loop: another thread wakes the task that waits.
    pub interrupt: Interrupt,
}

impl Options {
    /// The plan as it is, watched by nobody, with its record below `runs`.
    pub fn new(runs: impl Into<PathBuf>) -> Options {
        Options {
            scale: 1.0,
            laps: None,
            variants: Vec::new(),
            rtt: None,
            rate_bytes_per_s: None,
            seed: None,
            runs: runs.into(),
            watch: Rc::new(Quiet),
            interrupt: Rc::new(|| Box::pin(std::future::pending())),
        }
    }
}
