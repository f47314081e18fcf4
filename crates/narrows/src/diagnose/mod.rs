//! Injected causes, and the verdicts on them.
//!
//! | file | holds |
//! | --- | --- |
//! | `bed` | two nodes on two sites of one cluster, and documents that do not compress |
//! | `bench` | cases, shown one by one or drawn from seeds, and scores of the verdicts on them |

mod bed;
pub(crate) mod bench;

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
