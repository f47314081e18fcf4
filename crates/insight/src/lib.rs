#![doc = include_str!("../README.md")]

mod accounted;
mod advice;
mod bounds;
pub mod compare;
mod curves;
pub mod diagnosis;
pub mod difference;
mod elapsed;
pub mod follow;
mod gaps;
mod headline;
mod inferred;
pub mod load;
pub mod node_use;
mod outside;
pub mod published;
mod ranks;
mod recoveries;
mod shades;
pub mod stats;
mod summary;
mod threads;
mod trace;
mod variant;
mod verdict;
pub mod what_if;
pub mod words;

pub use advice::{Advice, advice};
pub use bounds::{Bounds, Ceiling};
pub use curves::{Curves, LINK_POINTS, NODE_POINTS, NodeCurve, POINTS, Point, curves};
pub use headline::Headline;
pub use shades::Shade;
pub use summary::Summary;
pub use threads::{ThreadShares, thread_shares};
pub use variant::{Finished, Progress, Variant, VariantFollow, VariantLoad};
pub use verdict::Verdict;
