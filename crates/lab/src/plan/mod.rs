//! Plans: what to run, in TOML.
//!
//! A [`Plan`] is text and plain data, each value with its place in the text. [`Plan::resolve`]
//! makes it into a [`Resolved`]: units read, bounds checked, settings merged for each variant,
//! published rows looked up. Every error shows file, line and column, and what would be right.
//!
//! | file | holds |
//! | --- | --- |
//! | `document` | the file's tables: the types that they are read into, and what each key holds |
//! | `file`, `bundled` | a plan as it was read, and those that come with narrows |
//! | `keys/` | how a file is checked against them; the steps with their options; `docs/plans.md` |
//! | `resolve/` | from plain data to values: one file for each section of a plan |
//! | `resolved` and the files beside it | the values: one file for each noun |
//! | `bounds` | what a plan's laps and link may be, and the command line's |
//! | `declared` | what an experiment declares of its step |
//! | `published` | published figures, and the look-up of a row |
//! | `unclosed` | what a plan's text opens and does not close |
//! | `kinds` | whether a figure of ours is predicted, and what follows from what |

mod action;
mod background;
pub mod bounds;
mod bucket;
mod bundled;
mod by_world;
mod corpus;
mod declared;
mod document;
mod expand;
mod fault;
mod file;
mod index;
mod keys;
mod kinds;
mod load;
mod models;
mod parameter;
mod published;
mod resolve;
mod resolved;
mod rollover;
mod scalar;
mod setting_change;
mod step;
mod topology;
mod twin;
mod unclosed;
mod variant;

pub use action::{Action, Pattern, RandomRestarts, Searching};
pub use background::{Background, Runs};
pub use bucket::BucketUse;
#[cfg(test)]
pub(crate) use bundled::all_resolved;
pub use bundled::{Bundled, bundled};
pub use by_world::ByWorld;
pub use corpus::CorpusUse;
pub use declared::{DeclaredStep, DeclaredSteps, Needs, Writers};
pub use fault::Fault;
pub(crate) use fault::LINK;
pub use file::Plan;
pub use index::{Full, Index};
pub use keys::markdown as keys_markdown;
pub use load::{FullLoad, LoadUse};
pub use models::{models, models_in_use};
pub use parameter::{Parameter, ParameterScope};
pub use published::Published;
pub use resolve::{down_bounds, replicas_bounds, target_bed};
pub use resolved::Resolved;
pub use rollover::RolloverRule;
pub use setting_change::{HostChange, SettingChange};
pub use step::{Measured, Step};
pub use topology::{Cluster, FOLLOWER, LEADER, Link};
pub(crate) use twin::{DELAY, shards_and_first, shards_in_words};
pub use twin::{MANAGER, Question, Twin, TwinIndex, TwinNode, TwinShard, Uncertain, ZONE};
pub use variant::Variant;
pub(crate) use variant::{OF_BUCKET, OF_FOLLOWER, OF_REPOSITORY};
