//! A hand on the settings of a live cluster that recovers: which one to raise, whether that helped, and when to give
//! way.
//!
//! | file | holds |
//! | --- | --- |
//! | `look` | [`Look`]: what the cluster shows at one moment, as plain data |
//! | `bounds` | which settings are ever touched, how their values are read and written, and how far they may rise |
//! | `meter` | rates between moments, with their errors |
//! | `guard` | whether the cluster's users suffer |
//! | `decision` | [`Decision`]: what to do, with the reason and the figures |
//! | `trial` | how long a raise is measured, and what becomes of it |
//! | `memory` | what trials and users taught: which raises are not tried again, or not yet |
//! | `steerer` | [`Steering`]: the state machine |
//!
//! One setting is changed at a time, upwards alone, and never above its bound. The rate before is compared with the
//! rate once what was in flight has passed: what helps is kept, what does not is taken back, and where nothing more
//! helps the hand rests. When users suffer it gives way, the last change first, down to what it found and never below.
//!
//! Sources: climbing one coordinate at a time by measured gain, as transfer services choose parallel streams (Yildirim,
//! Arslan, Kim, Kosar, "Application-level optimization of big data transfers through pipelining, parallelism and
//! concurrency", IEEE Transactions on Cloud Computing 4 (1), 2016); keeping a change only where a difference of two
//! means exceeds its own error (Welch, Biometrika 34, 1947); giving way by the latency of users compared with their own
//! baseline, as [`crate::foreground`] does.

mod bounds;
mod decision;
mod guard;
mod look;
mod memory;
mod meter;
mod steerer;
#[cfg(test)]
mod tests;
mod trial;

pub use bounds::{Bounds, STEERED, WrongBound};
pub use decision::{Back, Decision, Outcome, Proposal};
pub use guard::Marks;
pub use look::{Foreground, Holds, Lever, Look, Role, Verdict};
pub use steerer::Steering;
