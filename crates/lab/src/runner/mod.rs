//! What experiments on clusters share: laps and variants, settings, indices, telemetry, writers in the background,
//! faults, and the comparison of copies.
//!
//! | file | holds |
//! | --- | --- |
//! | `watch` | what a run tells while it goes on: [`Watch`] |
//! | `journal` | the record as a run writes it |
//! | `topology` | the clusters and the link that a plan asks for |
//! | `base` | [`Runner`]: the plan, the clusters and the record of a run |
//! | `settings` | a variant's settings and models |
//! | `indices` | creating, filling and deleting the leader's indices |
//! | `sampling` | telemetry of nodes and of the link |
//! | `recovery_rows`, `recoveries` | what a cluster says of its recoveries, and its sums |
//! | `changes` | settings and hosts that are changed while a recovery goes on |
//! | `recovery` | following recoveries until all are done |
//! | `faults` | faults of nodes and of the link |
//! | `following` | what a follower is asked, through whichever API it has |
//! | `scan`, `digests` | what copies hold, and whether it is the same |
//! | `background` | writers in the background of a measurement |
//! | `laps` | [`Experiment`], and the loop over laps and variants that takes it through its steps |

mod background;
mod base;
mod changes;
mod digests;
mod faults;
mod following;
mod indices;
mod journal;
mod laps;
mod recoveries;
mod recovery;
mod recovery_rows;
mod sampling;
mod scan;
mod settings;
mod topology;
mod watch;

pub(crate) use base::Runner;
pub use journal::Journal;
pub(crate) use laps::{Experiment, OfStep, Turn, fill_and_digest};
pub(crate) use recoveries::{Recoveries, Wanted};
pub(crate) use recovery::WatchedRecovery;
pub(crate) use sampling::Telemetry;
pub(crate) use topology::topology;
pub(crate) use watch::VirtualTime;
pub use watch::{Quiet, Watch};
