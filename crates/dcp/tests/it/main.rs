//! Buckets, servers, streams and moves, in both worlds where the body allows it.

mod bucket;
mod codec;
mod common;
mod crash;
mod drain;
mod faults;
mod idle;
mod look;
mod memory;
mod rebalance;
mod rollback;
mod server;
mod streams;
mod wrong_packets;
mod wrong_servers;
