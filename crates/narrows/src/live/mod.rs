//! What the commands for live clusters share: reaching one, looking at it, probing it, calibrating it, and recording
//! what is seen.

mod bucket;
mod calibrating;
mod cluster_folder;
mod connect;
#[cfg(test)]
mod fake_node;
mod history;
mod left;
mod looking;
mod password;
mod probing;
mod recording;
mod steering;
mod watching;

pub(crate) use bucket::{asked, client_options, look_at_bucket, look_for, say_if_insecure};
pub(crate) use calibrating::{Calibrated, Calibrating, calibrate_there};
pub(crate) use cluster_folder::{ClusterFolder, FolderReader};
pub(crate) use connect::{
    ConnectArgs, checked_options, client, connect, greet, options, refuse_several_clusters,
    second_client, title, usage, written,
};
pub(crate) use history::History;
pub(crate) use left::{
    at_the_end, broken_off, is_hopeless, patiently, settle, tell_left, tell_wait,
};
pub(crate) use looking::{Looking, looked_again, rest_after};
pub(crate) use password::user_and_password;
pub(crate) use probing::{Probing, probe, probe_unrecorded};
pub(crate) use recording::Recording;
pub(crate) use steering::{Account, Changes, Entry, GuardQuery, Hand, Steer, steer};
pub(crate) use watching::{Seen, Watching};
