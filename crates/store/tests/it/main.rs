//! Tests of shard copies: what they promise, on real files and in the virtual world; and searches on them.

mod client_versions;
mod common;
mod copies;
mod crash;
mod damage;
mod earlier;
mod mapping;
mod record_log;
mod recovery;
mod routing;
mod search;
mod synthetic_batches;
