//! What work costs on this machine: the constants that the virtual world's cores and disk need, measured with
//! the engine's own code on real sockets and files.
//!
//! | file | measures |
//! | --- | --- |
//! | `cpu` | checksums, copies, compression of segment files |
//! | `indexing` | parsing and indexing documents |
//! | `transport` | sending and receiving messages |
//! | `disk` | sequential reads and writes, small reads, syncs |
//! | `target` | copies and missed operations in OpenSearch, for twins of its clusters |
//! | `copies` | the index and its copies that `target`, `compression` and `live` make, and what `_recovery` tells of them |
//! | `compression` | what compressing copies costs there, by a second pair of nodes |
//! | `encryption` | what TLS between nodes costs there, by copies in turn with others |
//! | `live` | the same in a cluster that is there already, without a setting of the cluster |
//! | `two_nodes` | between which of its nodes, and what they run on |
//! | `clock` | core time of a thread and of the process |
//!
//! Core constants are core time, not elapsed time: other programs on the machine disturb them little. Disk
//! constants are elapsed time.

mod calibrate;
pub(crate) mod clock;
mod compression;
mod copies;
mod cpu;
mod disk;
mod encryption;
mod indexing;
mod live;
mod measurement;
mod target;
mod transport;
mod two_nodes;

pub use calibrate::calibrate;
pub use live::{Amount, calibrate_live};
pub use measurement::{Measurement, NotMeasured, TargetCalibration};
pub use target::{TimeOfACopy, calibrate_target, time_of_a_copy, time_of_first_copies};
pub use two_nodes::TwoNodes;
