//! Executing a plan: [`execute`] is the one way to run one. The command line, the table of published figures and tests
//! call it, and a record comes back.
//!
//! | file | holds |
//! | --- | --- |
//! | `options` | what whoever runs a plan may change of it, and who watches |
//! | `place` | where a plan is executed |
//! | `adapt` | a plan as that place can run it |
//! | `left_out` | what a place lacks of a plan |
//! | `live_operations` | what its loads may send to a cluster that was there already |
//! | `twin_question` | what a twin can be asked |
//! | `record_dir` | names of runs, and their directories |
//! | `manifest` | what the record says of the run as a whole |
//! | `on_processes`, `on_live`, `in_virtual_time`, `on_servers` | the world, the clusters and the end, for each place |
//! | `working` | the work on clusters, wherever they are |
//! | `execution`, `on_track` | [`execute`]; [`execute_track`] |

mod adapt;
mod execution;
mod in_virtual_time;
mod left_out;
mod live_operations;
mod manifest;
mod on_live;
mod on_processes;
mod on_servers;
mod on_track;
mod options;
mod place;
mod record_dir;
mod twin_question;
mod working;

pub use adapt::NO_LEADER;
pub use execution::{Executed, execute, execute_resolved};
pub use manifest::variant_info;
pub use on_live::{JOURNALS, journal, live_cluster};
pub use on_track::execute_track;
pub use options::{Interrupt, Options};
pub use place::{LiveHosts, OpenSearchNodes, Place};
pub use record_dir::{fresh, now};
pub use working::{Ended, caught, stopped_unless_told};
