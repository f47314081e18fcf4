//! `recover`: the follower begins to follow, recovers every index from the leader, and is watched until it is complete.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use record::Row;

use crate::error::{Error, Result};
use crate::plan::{DeclaredStep, FOLLOWER, Needs, Writers};
use crate::runner::{Experiment, Runner, Turn, Wanted, WatchedRecovery};

#[derive(Default)]
pub(crate) struct RecoverFollower;

impl RecoverFollower {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        writers: Writers::Later,
        changes_settings: true,
        ..DeclaredStep::new("recover", Needs::TwoClusters)
    };
}

#[async_trait(?Send)]
impl Experiment for RecoverFollower {
    /// Writers begin once the follower has listed the files of every shard: what it copies is then what the leader held
    /// before, and can be compared.
    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        run.set_up(turn.variant).await?;
        let began_epoch_ms = run.begin_recovery(turn).await?;
        follow_all(run, turn).await?;
        let wanted = Wanted::Primaries { shards: run.plan.shards() };
        let watched = WatchedRecovery::of(turn, FOLLOWER, wanted);
        let watched = WatchedRecovery { writers: turn.writers, ..watched };
        let end = run.watch_recovery(watched).await?;
        run.end_recovery(turn)?;
        Ok(run.row(turn, end.seconds_since(began_epoch_ms), &end))
    }
}

/// Has the follower follow every index, and where somebody writes in the background take no operations after the
/// recovery: what was copied is compared with what the leader held before.
async fn follow_all(run: &Runner<'_>, turn: &Turn<'_>) -> Result<()> {
    let pauses = turn.writers.is_some();
    let follows = run.plan.indices.iter().map(|index| async move {
        run.begin_following(&index.name, None, turn.variant).await?;
        if pauses {
            run.pause_following(&index.name).await?;
        }
        Ok::<_, Error>(())
    });
    try_join_all(follows).await.map(drop)
}
