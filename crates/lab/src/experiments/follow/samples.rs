//! Samples of the lag.

use std::time::Duration;

use record::{FollowSample, Line};

use super::lag::Following;
use crate::error::Result;
use crate::plan::FOLLOWER;
use crate::runner::{Recoveries, Runner, Wanted};

/// A node that stands still does not answer: a sample waits no longer than this.
const SAMPLE_PATIENCE: Duration = Duration::from_millis(1500);

/// One sample of the lag, of every node, and of the link.
pub(super) async fn sample_following(run: &Runner<'_>, following: &mut Following) -> Result<()> {
    let sample = ask_for_lag(run, following).await?;
    record_sample(run, following, &sample).await
}

/// How far behind the follower is, and whether it has caught up after a restart.
pub(super) async fn ask_for_lag(
    run: &Runner<'_>,
    following: &mut Following,
) -> Result<FollowSample> {
    if let Some(error) = following.driver.failure() {
        return Err(error);
    }
    let mut sample = FollowSample::default();
    if following.follows {
        let indices = following.open_indices();
        let asking = run.env.timeout(limit(run), run.following_stats(&indices));
        // A follower may not answer: faults are what is measured here.
        let (stats, copied) = tokio::join!(asking, copied_bytes(run, following, &indices));
        if let Ok(Ok(stats)) = stats {
            following.read(&stats, &mut sample);
            sample.answered = true;
        }
        following.copied_bytes = following.copied_bytes.max(copied);
    }
    sample.recovered_bytes = following.copied_bytes;
    sample.leader_operations = following.driver.ledgers.operations();
    (sample.indexing_requests, sample.indexing_ms) = following.driver.answered();
    sample.follower_operations = following.operations();
    (sample.lag_operations, sample.lag_s) = following.lag(run.env.now());
    following.look_after_restart(run.env.now(), &sample);
    Ok(sample)
}

/// Bytes of files that the follower has copied; none where it does not say, and once every shard follows.
async fn copied_bytes(run: &Runner<'_>, following: &Following, indices: &str) -> Option<u64> {
    if following.is_whole() {
        return None;
    }
    let path = format!("/{indices}/_recovery");
    let asking = run.env.timeout(limit(run), run.ask_recoveries(FOLLOWER, &path));
    let rows = asking.await.ok()?.ok()?;
    let all = Recoveries::of(&rows, &Wanted::Primaries { shards: 0 });
    Some(all.sample.recovered_bytes)
}

/// Puts a sample of the lag into the record, and takes one of every node and of the link.
pub(super) async fn record_sample(
    run: &Runner<'_>,
    following: &mut Following,
    sample: &FollowSample,
) -> Result<()> {
    note_rollovers(run, following)?;
    let figures = &mut following.figures;
    figures.lag_operations_max = figures.lag_operations_max.max(sample.lag_operations);
    figures.lag_s_max = figures.lag_s_max.max(sample.lag_s);
    let (variant, lap) = (following.variant.name.clone(), following.lap);
    let t_ms = run.journal.t_ms();
    run.journal.line(&Line::Following { t_ms, variant, lap, sample: sample.clone() })?;
    let nodes = run.sample_nodes(&following.variant.name, lap, &following.telemetry);
    if let Ok(sampled) = run.env.timeout(limit(run), nodes).await {
        following.used.extend(sampled?);
    }
    run.watch.progress(sample.follower_operations, Some(sample.leader_operations));
    Ok(())
}

/// How long an answer is waited for.
fn limit(run: &Runner<'_>) -> Duration {
    SAMPLE_PATIENCE.min(run.plan.sample.max(SAMPLE_PATIENCE / 3))
}

/// Notes each new write index since the last sample.
fn note_rollovers(run: &Runner<'_>, following: &mut Following) -> Result<()> {
    let ledgers = &following.driver.ledgers;
    let new = ledgers.all().into_iter().skip(ledgers.targets.len() + following.rollovers_noted);
    for ledger in new {
        following.rollovers_noted += 1;
        run.note(Some(&following.variant), &format!("{} takes the writes", ledger.index))?;
    }
    Ok(())
}

/// The failure that the follower reports, in its words.
pub(super) async fn what_fails(run: &Runner<'_>, following: &Following) -> String {
    let why = run.following_failure(&following.open_indices()).await;
    why.unwrap_or_else(|| "the follower does not say why".to_owned())
}
