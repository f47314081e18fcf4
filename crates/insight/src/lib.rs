#![doc = include_str!("../README.md")]

mod accounted;
mod bounds;
pub mod compare;
mod curves;
pub mod diagnosis;
pub mod difference;
pub mod follow;
mod gaps;
mod headline;
mod inferred;
pub mod load;
pub mod published;
mod ranks;
mod shades;
pub mod stats;
mod summary;
mod threads;
mod trace;
mod variant;
mod verdict;
pub mod what_if;
pub mod words;

pub use bounds::{Bounds, Ceiling};
pub use curves::{Curves, LINK_POINTS, NODE_POINTS, NodeCurve, POINTS, Point, curves};
pub use shades::Shade;
pub use summary::Summary;
pub use variant::{Finished, Progress, Variant, VariantFollow, VariantLoad};
pub use verdict::Verdict;
