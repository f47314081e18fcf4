//! A node and its cluster through the REST face, in both worlds.

mod common;

mod auto_follow;
mod closed;
mod compression;
mod damage;
mod determinism;
mod digests;
mod disk_full;
mod disk_watermarks;
mod dynamic_mapping;
mod every_file;
mod following;
mod foreground;
mod fuzz;
mod hostile;
mod index_buffer;
mod leases;
mod lossy_paths;
mod membership;
mod planted_histories;
mod proxied;
mod put_back;
mod recovery;
mod relocation;
mod replica_selection;
mod replication;
mod rest;
mod scale;
mod search;
mod search_faults;
mod sniffing;
mod synthetic_batches;
mod waits;
mod waits_of_nodes;
mod waits_of_recoveries;
