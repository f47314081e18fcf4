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
//! | `contexts.rs` | views that are held between the two, and from search to search |
//! | `answer_budget.rs` | how much one answer may hold |
//! | `views.rs` | searches of views that are held |
//! | `open_scrolls.rs` | the node that was asked for a scroll: where it goes on with each shard |
//! | `scrolls.rs` | the pages of a scroll |
//! | `point_in_time.rs`, `points_in_time.rs` | searches that see what there was at one moment, and all others |
//! | `thread_pool.rs` | how many searches run at once, and how many wait |

mod answer_budget;
mod asked_shards;
mod choice;
mod contexts;
mod coordinator;
mod in_flight;
mod open_scrolls;
mod oracle;
mod point_in_time;
mod points_in_time;
mod preference;
mod replica_selection;
mod scrolls;
mod service;
mod shard;
mod thread_pool;
mod views;

pub use crate::transport::{Hit, SearchOutcome, ShardFailure};
pub use answer_budget::{ANSWER_BYTES_MAX, AnswerBudget};
pub use coordinator::SearchJob;
pub use point_in_time::PointInTime;
pub use points_in_time::{Opened, close_point_in_time, open_point_in_time, points_in_time, search};
pub use preference::Preference;
pub(crate) use replica_selection::adaptive_selection_json;
pub(crate) use scrolls::{clear_here, page_here};
pub use scrolls::{clear_scroll, next_page, scroll};
pub use service::SearchService;
pub(crate) use shard::{IDLE_AFTER, expire, fetch, keep_for_fetches, probe, query};
