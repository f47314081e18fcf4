//! Searches over a cluster: query, then fetch.
//!
//! | file | holds |
//! | --- | --- |
//! | `service.rs` | what a node keeps for searches, and counts of them |
//! | `coordinator.rs` | the node that was asked: every shard once, one copy each; the ordered merge |
//! | `asked_shards.rs` | the shards, and the copies of each that may be asked |
//! | `choice.rs` | which copy is asked first; probes |
//! | `replica_selection.rs` | the policy that chooses it, by the settings; what `_nodes/stats` shows of it |
//! | `oracle.rs` | the choice of who knows everything, in the virtual world |
//! | `in_flight.rs` | requests to copies, counted until they end |
//! | `preference.rs` | `preference` |
//! | `shard.rs` | the node that has the copy: the query, and the fetch from the same view |
//! | `contexts.rs` | views that are held between the two, and between the pages of a scroll |
//! | `open_scrolls.rs` | the node that was asked for a scroll: where it goes on with each shard |
//! | `scrolls.rs` | the pages of a scroll |
//! | `thread_pool.rs` | how many searches run at once, and how many wait |

mod asked_shards;
mod choice;
mod contexts;
mod coordinator;
mod in_flight;
mod open_scrolls;
mod oracle;
mod preference;
mod replica_selection;
mod scrolls;
mod service;
mod shard;

mod thread_pool;

pub use crate::transport::{Hit, SearchOutcome, ShardFailure};
pub use coordinator::{SearchJob, search};
pub use preference::Preference;
pub(crate) use replica_selection::adaptive_selection_json;
pub(crate) use scrolls::{clear_here, page_here};
pub use scrolls::{clear_scroll, next_page, scroll};
pub use service::SearchService;
pub(crate) use shard::{IDLE_AFTER, expire, fetch, keep_for_fetches, probe, query};
