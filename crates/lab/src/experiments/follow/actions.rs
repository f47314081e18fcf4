//! The actions of a plan that follows, and the samples that are taken while they are done.

use std::time::Duration;

use record::CatchUp;
use record::units::{counted, show_count, show_seconds};
use serde_json::{Value, json};
use world::Time;

use super::lag::{Following, Waiting};
use super::restarts::{Due, Restarts};
use super::samples::{ask_for_lag, record_sample, sample_following, what_fails};
use super::searching::Searches;
use crate::error::{Error, Result};
use crate::plan::{
    Action, ByWorld, FOLLOWER, Fault, Index, LEADER, Pattern, RandomRestarts, Searching, Variant,
};
use crate::runner::Runner;
use crate::writers::RunRate;

/// How often a run of documents is written.
const RUN_EVERY: Duration = Duration::from_secs(20);
/// Most samples of a wait for documents: such a wait may take days.
const SAMPLES: f64 = 2000.0;
/// A wait for documents fails once nothing was acknowledged for so long.
const WRITING_PATIENCE: Duration = Duration::from_secs(900);

/// A follower that is waited for is looked at again after this part of the time that it has taken so far: a catch-up is
/// said to take longer than it does by no more, or by the least that lies between two looks.
const LOOK_PART: u32 = 20;
const LOOK_MIN: Duration = Duration::from_millis(10);

fn until_next_look(waited: Duration) -> Duration {
    (waited / LOOK_PART).max(LOOK_MIN)
}

/// The time between two samples while `wanted` documents are written, of which `written` took `passed_s`: the whole
/// wait is to have about [`SAMPLES`].
fn pace_of(passed_s: f64, written: u64, wanted: u64) -> Duration {
    if written == 0 {
        return Duration::ZERO;
    }
    let whole_s = passed_s * wanted as f64 / written as f64;
    Duration::from_secs_f64((whole_s / SAMPLES).min(WRITING_PATIENCE.as_secs_f64() / 3.0))
}

pub(super) async fn do_all(run: &mut Runner<'_>, following: &mut Following) -> Result<()> {
    let plan = run.plan;
    let is_virtual = run.clusters.is_virtual();
    for action in &plan.actions {
        match action {
            Action::IndexInBackground(rate) => {
                following.driver.stop().await;
                let full = rate.full.filter(|_| is_virtual);
                following.driver.begin(*rate, full.map(|runs| RunRate { runs, every: RUN_EVERY }));
                let rate = full.map_or(rate.documents_per_s, |full| full.documents_per_s);
                let rate = counted(show_count(rate), "document", "documents");
                following.happened = format!("{rate} a second began");
            }
            Action::StopIndexing => {
                following.driver.stop().await;
                following.happened = "indexing ended".to_owned();
            }
            Action::AutoFollow(pattern) => {
                begin_to_auto_follow(run, following, pattern).await?;
                create_all(run, &following.variant).await?;
            }
            Action::RestartAtRandom(rule) => begin_restarts(run, following, rule),
            Action::SearchInBackground(rule) => begin_searches(run, following, *rule).await?,
            Action::StopRestarts => Box::pin(stop_restarts(run, following)).await?,
            Action::WaitForDocuments(written) => {
                wait_for_documents(run, following, written.of(is_virtual)).await?;
            }
            Action::Follow => begin_to_follow(run, following).await?,
            Action::Wait(lasts) => {
                observe(run, following, lasts.of(is_virtual)).await?;
            }
            Action::WaitForLag { under, within } => {
                let within = within.of(is_virtual);
                let caught_up = wait_for_lag(run, following, *under, within).await?;
                following.figures.catch_ups.push(caught_up);
            }
            Action::Fault { fault, lasts } => {
                Box::pin(have_fault(run, following, fault, *lasts)).await?;
            }
        }
    }
    Box::pin(stop_restarts(run, following)).await
}

async fn begin_to_follow(run: &mut Runner<'_>, following: &mut Following) -> Result<()> {
    for index in &run.plan.indices {
        let settings = follower_settings(run, &[index], &following.variant);
        run.begin_following(&index.name, Some(settings), &following.variant).await?;
    }
    following.follows = true;
    following.happened = "the follower began".to_owned();
    Ok(())
}

async fn begin_to_auto_follow(
    run: &mut Runner<'_>,
    following: &mut Following,
    pattern: &Pattern,
) -> Result<()> {
    let indices: Vec<&Index> = run.plan.indices.iter().collect();
    let mut body = json!({
        "remote_cluster": LEADER,
        "settings": follower_settings(run, &indices, &following.variant),
        "leader_index_patterns": pattern.patterns,
        "leader_index_exclusion_patterns": pattern.exclude,
    });
    for (name, value) in following.variant.follow_parameters() {
        body[name] = json!(value);
    }
    let path = format!("/_ccr/auto_follow/{}", pattern.name);
    run.ask(FOLLOWER, "PUT", &path, Some(&body)).await?;
    following.follows = true;
    following.happened = "the follower began".to_owned();
    Ok(())
}

/// As many replicas as on the leader, as far as there are nodes for them.
fn follower_settings(run: &Runner<'_>, indices: &[&Index], variant: &Variant) -> Value {
    let nodes = run.clusters.nodes(FOLLOWER).len().max(1);
    let wanted = indices.iter().map(|index| index.replicas_of(variant)).max().unwrap_or(0);
    json!({ "index.number_of_replicas": wanted.min(nodes as u32 - 1) })
}

async fn have_fault(
    run: &mut Runner<'_>,
    following: &mut Following,
    fault: &Fault,
    lasts: Option<ByWorld<Duration>>,
) -> Result<()> {
    let Fault { node, kind, .. } = fault;
    Box::pin(run.set_fault(&following.variant, fault, true)).await?;
    let Some(lasts) = lasts else {
        following.happened = format!("{node} was {kind}");
        return Ok(());
    };
    let lasts = lasts.of(run.clusters.is_virtual());
    let observed = observe(run, following, lasts).await;
    Box::pin(run.set_fault(&following.variant, fault, false)).await?;
    following.happened = format!("{node} was {kind} for {}", show_seconds(lasts.as_secs_f64()));
    observed
}

/// Samples for so long.
async fn observe(run: &mut Runner<'_>, following: &mut Following, lasts: Duration) -> Result<()> {
    let until = run.env.now() + lasts;
    while run.env.now() < until {
        look(run, following, run.plan.sample, Some(until)).await?;
    }
    Ok(())
}

/// Samples until the follower lacks fewer operations than `under`, and looks more often than it samples while it has
/// not waited for long.
pub(super) async fn wait_for_lag(
    run: &mut Runner<'_>,
    following: &mut Following,
    under: u64,
    within: Duration,
) -> Result<CatchUp> {
    let began = run.env.now();
    let mut waiting = Waiting::new(&following.happened, began);
    let mut due = began;
    loop {
        Box::pin(restart_if_due(run, following)).await?;
        let mut sample = ask_for_lag(run, following).await?;
        // It was so at this moment, and not once every node was asked, too.
        let now = run.env.now();
        waiting.look(now, &sample, following.is_whole());
        let has_caught_up = sample.answered && sample.lag_operations < under;
        sample.caught_up = has_caught_up;
        if has_caught_up || now >= due {
            record_sample(run, following, &sample).await?;
            due = (due + run.plan.sample).max(run.env.now());
        }
        if has_caught_up {
            return Ok(waiting.ended(now, &sample));
        }
        if now - began > within {
            return Err(Error::Lags {
                variant: following.variant.name.clone(),
                seconds: within.as_secs(),
                lag: sample.lag_operations,
                under,
                why: what_fails(run, following).await,
            });
        }
        let next = run.env.now() + until_next_look(now - began);
        run.env.sleep_until(next.min(due)).await;
    }
}

/// Samples until so many documents were written in the background.
async fn wait_for_documents(
    run: &mut Runner<'_>,
    following: &mut Following,
    documents: u64,
) -> Result<()> {
    let began = run.env.now();
    let mut grew = (following.driver.written_in_background(), began);
    while following.driver.written_in_background() < documents {
        let written = following.driver.written_in_background();
        let now = run.env.now();
        if written > grew.0 {
            grew = (written, now);
        } else if now - grew.1 > WRITING_PATIENCE {
            let variant = following.variant.name.clone();
            let seconds = WRITING_PATIENCE.as_secs();
            return Err(Error::NobodyWrites { variant, seconds, written, wanted: documents });
        }
        let pace = pace_of((now - began).as_secs_f64(), written, documents);
        look(run, following, pace.max(run.plan.sample), None).await?;
    }
    let passed = (run.env.now() - began).as_secs_f64();
    let written = counted(show_count(documents), "document was", "documents were");
    following.happened = format!("{written} written in {}", show_seconds(passed));
    Ok(())
}

/// Restarts what is due, samples, and lets time pass until the next sample, or until something is due.
async fn look(
    run: &mut Runner<'_>,
    following: &mut Following,
    pace: Duration,
    until: Option<Time>,
) -> Result<()> {
    let began = run.env.now();
    Box::pin(restart_if_due(run, following)).await?;
    sample_following(run, following).await?;
    let pace = following.pace(pace, run.plan.sample);
    let next = (began + pace).max(run.env.now());
    let due = following.restarts.as_ref().map(|restarts| restarts.due);
    let next = [due, until].into_iter().flatten().fold(next, Time::min);
    run.env.sleep_until(next).await;
    Ok(())
}

async fn begin_searches(
    run: &Runner<'_>,
    following: &mut Following,
    rule: Searching,
) -> Result<()> {
    following.end_searches().await;
    let copies = |index: &Index| index.replicas_of(&following.variant) + 1;
    let copies = run.plan.indices.iter().map(copies).collect();
    following.searches = Some(Searches::begin(run, rule, &following.driver, copies)?);
    Ok(())
}

fn begin_restarts(run: &mut Runner<'_>, following: &mut Following, rule: &RandomRestarts) {
    let nodes = match rule.cluster.as_str() {
        LEADER => run.plan.leader.nodes,
        _ => run.plan.follower.map_or(0, |follower| follower.nodes),
    };
    let number = following.restarts_begun;
    following.restarts_begun += 1;
    let (seed, now) = ((run.plan.seed, number), run.env.now());
    let restarts = Restarts::new(rule, nodes, run.clusters.is_virtual(), seed, now);
    following.restarts = Some(restarts);
}

async fn restart_if_due(run: &mut Runner<'_>, following: &mut Following) -> Result<()> {
    let Some(restarts) = &mut following.restarts else { return Ok(()) };
    let Some(due) = restarts.next(run.env.now()) else { return Ok(()) };
    let pause = restarts.pause;
    match due {
        Due::Ends(fault) => {
            // Whoever has not caught up by now does so after the next restart.
            following.restarted = None;
            run.set_fault(&following.variant, &fault, true).await
        }
        Due::Starts(fault) => end_pause(run, following, &fault, pause).await,
    }
}

async fn end_pause(
    run: &mut Runner<'_>,
    following: &mut Following,
    fault: &Fault,
    pause: Duration,
) -> Result<()> {
    run.set_fault(&following.variant, fault, false).await?;
    let Fault { node, kind, .. } = fault;
    following.figures.restarts_ended += 1;
    following.happened = format!("{node} was {kind} for {}", show_seconds(pause.as_secs_f64()));
    following.restarted = Some(Waiting::new(&following.happened, run.env.now()));
    Ok(())
}

async fn stop_restarts(run: &mut Runner<'_>, following: &mut Following) -> Result<()> {
    let Some(restarts) = following.restarts.take() else { return Ok(()) };
    let pause = restarts.pause;
    if let Some(fault) = restarts.stop() {
        end_pause(run, following, &fault, pause).await?;
    }
    following.restarted = None;
    Ok(())
}

pub(super) async fn create_all(run: &Runner<'_>, variant: &Variant) -> Result<()> {
    for index in &run.plan.indices {
        run.create(index, Some(variant)).await?;
    }
    Ok(())
}
