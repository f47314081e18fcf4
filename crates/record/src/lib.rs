#![doc = include_str!("../README.md")]

pub mod bucket;
mod follow;
pub mod inventory;
pub mod ledger;
mod line;
mod load;
mod manifest;
pub mod names;
pub mod observation;
pub mod random;
pub mod roles;
mod row;
mod run_dir;
mod stream;
pub mod text;
pub mod units;

pub use follow::{CatchUp, FollowFigures, NodeUse, SearchFigures};
pub use line::{FollowSample, Line, LinkSample, NodeSample, Phase, RecoverySample, stage};
pub use load::{DriverUse, LoadFigures, Percentiles, RequestSample, Throughput};
pub use manifest::{
    Kind, LinkInfo, Machine, Manifest, ModelInfo, NodeInfo, PublishedInfo, Status, TwinQuestion,
    VariantInfo,
};
pub use row::{Limit, LimitShare, Row, ShardDigest};
pub use run_dir::{Error, FORMAT, RunDir, Writer, is_run, replace_manifest};
pub use stream::{ConsumerMemory, StreamFigures, ThreadUse};
