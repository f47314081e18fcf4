//! Experiments: one file each, with what plans know of its step and the four things that are done for each variant:
//! prepare, measure, verify, clear away.
//!
//! To add one, write its file, declare it with a `mod` line, and put it into the table below.

mod buckets;
mod drain;
mod follow;
mod load;
mod peers;
mod recover;
mod replica;
mod restore;
mod track;
mod what_if;

use crate::plan::{DeclaredSteps, Resolved};
use crate::runner::OfStep;

pub(crate) use buckets::{Stage, StreamBuckets};

/// The steps that need cross-cluster replication.
pub(crate) const RECOVER: &str = recover::RecoverFollower::STEP.name;
pub(crate) const FOLLOW: &str = follow::Follow::STEP.name;

/// The step that needs snapshots.
pub(crate) const RESTORE: &str = restore::RestoreSnapshot::STEP.name;

pub(crate) const TRACK: &str = track::RunTrack::STEP.name;

/// The experiment of a plan on clusters, if it measures: that of its track, or of its step.
pub(crate) fn of_plan(plan: &Resolved) -> Option<OfStep> {
    match &plan.track {
        Some(track) => Some((&track::RunTrack::STEP, Box::new(track::RunTrack::of(track)))),
        None => on_clusters(plan.measured_step()?.name),
    }
}

/// The table of experiments: those on clusters, and those that start servers of their own.
macro_rules! experiments {
    (clusters: $($on_clusters:path),+; servers: $($on_servers:path),+;) => {
        /// The step of every experiment: what plans are resolved with.
        pub const STEPS: &DeclaredSteps = &[$(&<$on_clusters>::STEP,)+ $(&<$on_servers>::STEP),+];

        /// The experiment on clusters that measures in a step, if one does.
        fn on_clusters(step: &str) -> Option<OfStep> {
            $(if step == <$on_clusters>::STEP.name {
                return Some((&<$on_clusters>::STEP, Box::new(<$on_clusters>::default())));
            })+
            None
        }
    };
}

experiments! {
    clusters:
        recover::RecoverFollower,
        peers::RecoverPeers,
        drain::DrainNodes,
        replica::AddReplica,
        restore::RestoreSnapshot,
        load::SendLoad,
        what_if::WhatIf,
        follow::Follow;
    servers:
        buckets::StreamBuckets;
}
