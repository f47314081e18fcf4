//! The command line as people use it, clusters of processes, and clusters that someone else started.

#[path = "../../../clusters/tests/it/common/mod.rs"]
mod clusters_common;
mod common;

mod background_indexing;
mod bad_days;
mod bench;
mod buckets;
mod calibrate_live;
mod command_line;
mod compare;
mod dcp;
mod doctor;
mod documents;
mod embedded_target;
mod errors;
mod following;
mod hostile;
mod live;
mod live_target;
mod manners;
mod mentioned;
mod opensearch_missing;
mod probe;
mod processes;
mod reference;
mod steer;
mod stored;
mod tracks;
mod version;
mod web;
mod what_if;
mod what_if_refused;
mod what_if_waits;
