//! Every setting that the engine knows, by the name it has in the field.
//!
//! | file | holds |
//! | --- | --- |
//! | `table` | the one table: name, kind, default, scope, whether it may change, a line about it |
//! | `kind` | what a value may be; reading one, and its canonical text |
//! | `follow` | the parameters of a follower index |
//! | `words` | the settings that are one word of a few |
//! | `remote` | what is set for one remote cluster, and whether it goes with its mode |
//! | `update` | a change of settings: from JSON, checked against the table, applied to a map |
//! | `render` | a map of settings as JSON, nested or flat, with the defaults |
//! | `watermark` | how full a disk may be |
//! | `values` | typed values, above the defaults |
//! | `snapshot` | what the engine reads of them |
//!
//! The one rule: a map of settings holds canonical text that was checked, and nothing else.

mod follow;
mod kind;
mod remote;
mod render;
mod snapshot;
mod table;
mod update;
mod values;
mod watermark;
mod words;

use std::collections::BTreeMap;

pub use follow::FollowParameters;
pub use kind::{Kind, Typed};
pub use remote::{Proxy, Remote};
pub use render::{cluster_settings, flat, index_defaults, index_settings, nested};
pub use snapshot::{FilterKind, IndexSettings, NodeFilter, Settings};
pub(crate) use table::SHARDS_MAX;
pub use table::{Setting, SettingScope, TABLE, check, find, needless};
pub use update::{
    ClusterUpdate, Update, When, apply, check_together, check_update, parse_cluster_update,
    parse_update,
};
pub use watermark::{Watermark, Watermarks};
pub use words::{
    AllocationEnable, AllocationWeights, AllowRebalance, CheckOnStartup, Compress,
    CompressionScheme, Durability, FollowPace, RebalanceEnable, RemoteMode, Scheduler, Selection,
};

/// Settings that were given, by full name, as canonical text; a list is joined by commas.
pub type SettingsMap = BTreeMap<String, String>;

/// Where all settings stand, for a name to which none is near.
const LISTED: &str = "; \"Settings\" in docs/reference.md lists those that there are";

/// Why a setting was refused.
#[expect(missing_docs, reason = "each message says what is wrong, and what its fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("unknown setting [{name}]{}", if hint.is_empty() { LISTED } else { hint.as_str() })]
    Unknown {
        name: String,
        /// Empty, or the nearest names.
        hint: String,
    },
    #[error("setting [{name}] is not supported by this engine; {instead}")]
    Refused { name: String, instead: &'static str },
    #[error("setting [{name}] cannot be [{value}]: {why}")]
    Value { name: String, value: String, why: String },
    #[error("setting [{name}] cannot change while running: {what}")]
    Static { name: String, what: &'static str },
    #[error("setting [{name}] belongs to {owner}: send it to {endpoint}")]
    Misplaced { name: String, owner: &'static str, endpoint: &'static str },
    #[error("settings cannot be read: {0}")]
    Shape(String),
}
