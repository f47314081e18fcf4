//! Samples of the lag.

use std::time::Duration;

use record::{FollowSample, Line};
use serde_json::Value;

use super::lag::Following;
use crate::error::Error;
use crate::plan::FOLLOWER;
use crate::runner::Runner;

/// A node that stands still does not answer: a sample waits no longer than this.
const SAMPLE_PATIENCE: Duration = Duration::from_millis(1500);

/// One sample of the lag, of every node, and of the link.
pub(super) async fn sample_following(
    run: &Runner<'_>,
    following: &mut Following,
) -> Result<FollowSample, Error> {
    if let Some(error) = following.driver.failure() {
        return Err(error);
    }
    let mut sample = FollowSample::default();
    let limit = SAMPLE_PATIENCE.min(run.plan.sample.max(SAMPLE_PATIENCE / 3));
    if following.follows {
        let path = format!("/{}/_ccr/stats", following.open_indices());
        let asking = run.ask(FOLLOWER, "GET", &path, None);
        // A follower may not answer: faults are what is measured here.
        if let Ok(Ok(stats)) = run.env.timeout(limit, asking).await {
            following.read(&stats, &mut sample);
            sample.answered = true;
        }
    }
    sample.leader_operations = following.driver.ledgers.operations();
    sample.follower_operations = following.operations();
    (sample.lag_operations, sample.lag_s) = following.lag(run.env.now());
    following.look_after_restart(run.env.now(), &sample);
    note_rollovers(run, following)?;
    let figures = &mut following.figures;
    figures.lag_operations_max = figures.lag_operations_max.max(sample.lag_operations);
    figures.lag_s_max = figures.lag_s_max.max(sample.lag_s);
    let (variant, lap) = (following.variant.name.clone(), following.lap);
    let t_ms = run.journal.t_ms();
    run.journal.line(&Line::Following { t_ms, variant, lap, sample: sample.clone() })?;
    let nodes = run.sample_nodes(&following.variant.name, lap, &following.telemetry);
    if let Ok(sampled) = run.env.timeout(limit, nodes).await {
        following.used.extend(sampled?);
    }
    run.watch.progress(sample.follower_operations, Some(sample.leader_operations));
    Ok(sample)
}

/// Notes each new write index since the last sample.
fn note_rollovers(run: &Runner<'_>, following: &mut Following) -> Result<(), Error> {
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
    let path = format!("/{}/_ccr/stats", following.open_indices());
    let Ok(stats) = run.ask(FOLLOWER, "GET", &path, None).await else {
        return "the follower does not answer".to_owned();
    };
    let indices = stats["indices"].as_array().into_iter().flatten();
    let mut shards = indices.flat_map(|index| index["shards"].as_array().into_iter().flatten());
    let reason = |shard: &Value| {
        let read = &shard["read_exceptions"][0]["exception"]["reason"];
        [&shard["fatal_exception"]["reason"], read]
            .into_iter()
            .find_map(Value::as_str)
            .map(str::to_owned)
    };
    shards.find_map(reason).unwrap_or_else(|| "no shard says why".to_owned())
}
