#![doc = include_str!("../README.md")]

pub mod buckets;
pub mod calibration;
mod choices;
pub mod conclusions;
pub mod corpus;
mod diagnostic;
mod error;
mod execute;
pub mod experiments;
pub mod load;
pub mod machine;
pub mod plan;
mod runner;
pub mod track;
pub mod twin;
mod writers;

pub use diagnostic::{Diagnostic, Mistakes};
pub use error::{Error, Result, with_causes};
pub use execute::{
    Ended, Executed, Interrupt, JOURNALS, LiveHosts, NO_LEADER, OpenSearchNodes, Options, Place,
    caught, execute, execute_resolved, execute_track, fresh, journal, live_cluster, now,
    stopped_unless_told, variant_info,
};
pub use runner::{Quiet, Watch};
