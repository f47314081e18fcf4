//! What a run leaves behind: a manifest, samples, events and rows, in one directory.
//!
//! | file | holds |
//! | --- | --- |
//! | `manifest.json` | [`Manifest`]: the plan, resolved settings, machine, versions |
//! | `lines.jsonl` | [`Line`]s in the order of time: phases, samples, events |
//! | `rows.jsonl` | [`Row`]s: one for each finished variant and lap |
//!
//! The one rule: the format is written and read here alone, and every file says its version.
//! The lowest crate, so it also holds [`units`] and [`names`], which every layer needs, and the [`ledger`] of a driver.

mod follow;
pub mod ledger;
mod line;
mod load;
mod manifest;
pub mod names;
pub mod observation;
mod row;
mod run_dir;
mod stream;
pub mod units;

pub use follow::{CatchUp, FollowFigures};
pub use line::{FollowSample, Line, LinkSample, NodeSample, Phase, RecoverySample};
pub use load::{DriverUse, LoadFigures, Percentiles, Throughput};
pub use manifest::{
    LinkInfo, Machine, Manifest, ModelInfo, NodeInfo, PublishedInfo, Status, VariantInfo,
};
pub use row::{Limit, LimitShare, Row, ShardDigest};
pub use run_dir::{Error, RunDir, Writer, replace_manifest};
pub use stream::{ConsumerMemory, StreamFigures, ThreadUse};

/// The version of the format that this build writes. Older ones still open. 2 added observations of live
/// clusters, 3 what following is like.
pub const FORMAT: u32 = 3;
