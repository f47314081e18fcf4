//! `add_replica`: every index gets a copy on the second site, which recovers it from the first.

use std::time::Duration;

use async_trait::async_trait;
use record::Row;

use crate::error::Result;
use crate::plan::{DeclaredStep, LEADER, Needs};
use crate::runner::{Experiment, Runner, Turn, Wanted, WatchedRecovery};

/// How long a node may take to remove a copy that it holds no longer. OpenSearch asks the other nodes first.
const REMOVAL: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct AddReplica;

impl AddReplica {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        changes_settings: true,
        ..DeclaredStep::new("add_replica", Needs::SecondSite)
    };
}

#[async_trait(?Send)]
impl Experiment for AddReplica {
    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        run.set_up(turn.variant).await?;
        let began_epoch_ms = run.begin_recovery(turn).await?;
        let more = run.plan.follower.map_or(0, |follower| follower.nodes);
        run.set_replicas(more).await?;
        // The index had no replicas before, so every recovery counts. A live cluster's clock is its own.
        let copies = run.plan.shards() * more;
        let wanted = Wanted::Peers { since_epoch_ms: 0, copies };
        let watched = WatchedRecovery::of(turn, LEADER, wanted);
        let end = run.watch_recovery(watched).await?;
        run.end_recovery(turn)?;
        if end.reused_bytes > 0 {
            let bytes = record::units::show_bytes(end.reused_bytes);
            let text = format!("{bytes} were still there from an earlier copy");
            run.note(Some(turn.variant), &text)?;
        }
        run.wait_for_health(&run.plan.index_names()).await?;
        Ok(run.row(turn, end.seconds_since(began_epoch_ms), &end))
    }

    /// Removes the copy, so that the next variant begins with nothing.
    async fn clear_away(&mut self, run: &mut Runner<'_>) -> Result<()> {
        run.set_replicas(0).await?;
        run.wait_for_health(&run.plan.index_names()).await?;
        run.env.sleep(REMOVAL).await;
        Ok(())
    }
}
