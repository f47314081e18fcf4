//! What a run means: medians and gains, the limit that held each variant and why, and the curves
//! that charts draw.
//!
//! | module | answers |
//! | --- | --- |
//! | [`Summary`] | how long each variant took, its gain, what is published beside it, what is missing |
//! | [`Verdict`] | which limit held a variant, why in numbers, which limit would be next |
//! | [`Bounds`] | what the settings and the link allow at most |
//! | [`Curves`] | bytes, link rate and CPU over time, thinned to what a chart can show |
//! | [`published`] | published figures beside ours, over several runs |
//! | [`diagnosis`] | what holds a live cluster back, told from observations |
//! | [`load`] | figures of loads over laps, changes between variants, whether the driver was the limit |
//! | [`follow`] | how a follower caught up, and what its checker found |
//! | [`stats`] | median, bootstrap intervals; `ranks`: whether two sets of laps differ |
//! | [`words`] | numbers and limits as people read them |
//!
//! The one rule: everything is a pure function of a record or of observations, so that a report of an old run says
//! today what it said then.

mod accounted;
mod bounds;
mod curves;
pub mod diagnosis;
pub mod follow;
mod gaps;
mod headline;
mod inferred;
pub mod load;
pub mod published;
mod ranks;
pub mod stats;
mod summary;
mod threads;
mod trace;
mod variant;
mod verdict;
pub mod words;

pub use bounds::{Bounds, Ceiling};
pub use curves::{CPU_POINTS, Curves, LINK_POINTS, NodeCurve, Point, RECOVERED_POINTS, curves};
pub use summary::Summary;
pub use variant::{Finished, Progress, Variant, VariantFollow, VariantLoad};
pub use verdict::Verdict;
