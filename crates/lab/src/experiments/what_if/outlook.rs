//! Waiting until a cluster is green, or its copies are where they belong, with a curve of what is outstanding.

use std::time::Duration;

use record::Line;
use serde_json::{Value, json};
use world::Time;

use crate::error::{Error, Result};
use crate::plan::LEADER;
use crate::runner::{Recoveries, Runner, Telemetry, Turn, Wanted};

/// The curve has so many points for each time in which as many copies are left: a week is not looked at as a minute is.
const POINTS: u32 = 16;
/// ... and no more than about so many in all.
const POINTS_MAX: u32 = 400;
/// While copies wait for their node it is looked at so often: what comes then is to be seen from its beginning.
const WHILE_DELAYED: Duration = Duration::from_millis(500);
/// Nodes are asked for their figures so often that this many answer at a point.
const NODES_AT_ONCE: usize = 16;
/// A cluster in which no copy comes up, and none is about to, for so long will not be green.
const PATIENCE: Duration = Duration::from_secs(120);
/// The copies that no node has, among the stages of a sample; and those of them that wait for their node.
const UNASSIGNED: &str = "UNASSIGNED";
const DELAYED: &str = "DELAYED";
/// Copies that are to be moved, and whose move has not begun.
const WAITING: &str = "WAITING";
const DONE: &str = "DONE";

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Every copy is started.
    Green,
    /// These nodes of virtual time hold nothing.
    Empty(Vec<String>),
    /// No copy is moved any more.
    Balanced,
}

/// What is waited for.
pub(super) struct Outlook {
    pub(super) goal: Goal,
    /// Nodes that are to be there.
    pub(super) nodes: usize,
    since_epoch_ms: u64,
    copies: u64,
    bytes: u64,
    points: u32,
    /// When copies came up last, and what was to be done then.
    moved: Option<(Time, (u64, u64, u64))>,
}

/// The health of a cluster, as far as it matters here.
pub(super) struct Health {
    /// All copies are started; where copies are moved, none is any more.
    is_settled: bool,
    initializing: u64,
    unassigned: u64,
    delayed: u64,
}

impl Outlook {
    /// So many copies with so many bytes are to be made from now on.
    pub(super) fn new(since_epoch_ms: u64, (copies, bytes): (u64, u64), nodes: usize) -> Self {
        Outlook { goal: Goal::Green, nodes, since_epoch_ms, copies, bytes, points: 0, moved: None }
    }

    /// Waits until every copy is started; answers with all recoveries since it began.
    pub(super) async fn until_green(
        &mut self,
        run: &Runner<'_>,
        turn: &Turn<'_>,
        telemetry: &Telemetry,
    ) -> Result<Recoveries> {
        self.goal = Goal::Green;
        self.until_done(run, turn, telemetry).await
    }

    /// Waits for the goal; answers with all recoveries since it began.
    pub(super) async fn until_done(
        &mut self,
        run: &Runner<'_>,
        turn: &Turn<'_>,
        telemetry: &Telemetry,
    ) -> Result<Recoveries> {
        let began = run.env.now();
        let mut changed = (began, (0, 0));
        let mut is_delayed = false;
        loop {
            let now = run.env.now();
            let every = if is_delayed { WHILE_DELAYED } else { (now - changed.0) / POINTS };
            let every = run.plan.sample.max(every).max((now - began) / POINTS_MAX);
            let (health, recoveries) = self.look(run, turn, telemetry, every).await?;
            if self.is_done(run, turn, &health, &recoveries).await? {
                return Ok(recoveries);
            }
            is_delayed = health.delayed > 0 && health.initializing == 0;
            let left = (health.initializing, health.unassigned);
            if left != changed.1 {
                changed = (run.env.now(), left);
            }
            self.check_moves(run, turn, &health, &recoveries).await?;
        }
    }

    /// Whether what is waited for is there. Fails where nothing is moved any more, and a node is not empty.
    async fn is_done(
        &self,
        run: &Runner<'_>,
        turn: &Turn<'_>,
        health: &Health,
        recoveries: &Recoveries,
    ) -> Result<bool> {
        let Goal::Empty(nodes) = &self.goal else { return Ok(health.is_settled) };
        let done = recoveries.sample.stages.get(DONE).copied().unwrap_or(0);
        if u64::from(done) < self.copies && !health.is_settled {
            return Ok(false);
        }
        let path = "/_cat/shards?format=json&h=index,shard,prirep,node";
        let rows = run.ask(LEADER, "GET", path, None).await?;
        let is_there = |row: &&Value| {
            let node = row["node"].as_str().and_then(|node| node.split(' ').next());
            node.is_some_and(|node| nodes.iter().any(|drained| drained == node))
        };
        let left: Vec<&Value> = rows.as_array().into_iter().flatten().filter(is_there).collect();
        let Some(first) = left.first().filter(|_| health.is_settled) else {
            return Ok(left.is_empty());
        };
        let shard = first["shard"].as_str().and_then(|number| number.parse::<u32>().ok());
        let body = json!({
            "index": first["index"], "shard": shard.unwrap_or(0), "primary": first["prirep"] == "p",
        });
        let said = run.ask(LEADER, "GET", "/_cluster/allocation/explain", Some(&body)).await?;
        let words = said["move_explanation"].as_str().unwrap_or("no shard says why");
        Err(Error::StaysYellow {
            variant: turn.variant.name.clone(),
            copies: left.len() as u64,
            why: in_its_names(
                run,
                &format!(
                    "of {}[{}]: {words}",
                    first["index"].as_str().unwrap_or("?"),
                    body["shard"]
                ),
            ),
        })
    }

    /// Looks once the cluster is settled, or after a while.
    pub(super) async fn look(
        &mut self,
        run: &Runner<'_>,
        turn: &Turn<'_>,
        telemetry: &Telemetry,
        limit: Duration,
    ) -> Result<(Health, Recoveries)> {
        let health = self.health(run, limit).await?;
        let recoveries = self.sample(run, turn, telemetry, &health).await?;
        Ok((health, recoveries))
    }

    /// The health once the cluster is settled, or after a while.
    async fn health(&self, run: &Runner<'_>, limit: Duration) -> Result<Health> {
        let moves = match self.goal {
            Goal::Green => "",
            Goal::Empty(_) | Goal::Balanced => "&wait_for_no_relocating_shards=true",
        };
        let path = format!(
            "/_cluster/health?wait_for_status=green&wait_for_nodes={}&timeout={}ms{moves}",
            self.nodes,
            limit.as_millis()
        );
        let answer = run.ask(LEADER, "GET", &path, None).await?;
        let count = |name: &str| answer[name].as_u64().unwrap_or(0);
        Ok(Health {
            is_settled: answer["timed_out"] == false,
            initializing: count("initializing_shards"),
            unassigned: count("unassigned_shards"),
            delayed: count("delayed_unassigned_shards"),
        })
    }

    /// A point of the curve.
    async fn sample(
        &mut self,
        run: &Runner<'_>,
        turn: &Turn<'_>,
        telemetry: &Telemetry,
        health: &Health,
    ) -> Result<Recoveries> {
        let answer = run.ask(LEADER, "GET", "/_recovery", None).await?;
        let since_epoch_ms = self.since_epoch_ms;
        let copies = u32::try_from(self.copies).unwrap_or(u32::MAX);
        let mut all = Recoveries::read(&answer, &Wanted::Peers { since_epoch_ms, copies });
        let sample = &mut all.sample;
        // What is to be moved to nodes that join was estimated: in the end it is known.
        if !(self.goal == Goal::Balanced && health.is_settled) {
            sample.total_bytes = sample.total_bytes.max(self.bytes);
            let begun: u32 = sample.stages.values().sum();
            if self.goal != Goal::Green {
                sample.stages.insert(WAITING.to_owned(), copies.saturating_sub(begun));
            }
        }
        for (stage, count) in [(UNASSIGNED, health.unassigned), (DELAYED, health.delayed)] {
            sample.stages.insert(stage.to_owned(), u32::try_from(count).unwrap_or(u32::MAX));
        }
        let t_ms = run.journal.t_ms();
        let (variant, sample) = (turn.variant.name.clone(), all.sample.clone());
        run.journal.line(&Line::Recovery { t_ms, variant, lap: turn.lap, sample })?;
        let each = u32::try_from(self.nodes / NODES_AT_ONCE).unwrap_or(u32::MAX).max(1);
        if self.points.is_multiple_of(each) || health.is_settled {
            run.sample_nodes(&turn.variant.name, turn.lap, telemetry).await?;
        }
        self.points += 1;
        run.watch.progress(all.sample.recovered_bytes, Some(all.sample.total_bytes));
        Ok(all)
    }

    /// Gives up on a cluster in which nothing moves.
    async fn check_moves(
        &mut self,
        run: &Runner<'_>,
        turn: &Turn<'_>,
        health: &Health,
        recoveries: &Recoveries,
    ) -> Result<()> {
        let now = run.env.now();
        let left = (health.initializing, health.unassigned, recoveries.sample.recovered_bytes);
        let moves = self.moved.is_none_or(|(_, before)| before != left) || health.delayed > 0;
        if moves {
            self.moved = Some((now, left));
        }
        let since = self.moved.map_or(now, |(since, _)| since);
        if now - since <= PATIENCE.max(run.plan.sample * 20) || self.points < 20 {
            return Ok(());
        }
        Err(Error::StaysYellow {
            variant: turn.variant.name.clone(),
            copies: health.unassigned + health.initializing,
            why: in_its_names(run, &self.why(run, recoveries).await?),
        })
    }

    /// Why copies have no place, in the cluster's words.
    async fn why(&self, run: &Runner<'_>, recoveries: &Recoveries) -> Result<String> {
        let asked = run.ask(LEADER, "GET", "/_cluster/allocation/explain", None).await;
        let said = asked.unwrap_or(Value::Null);
        let place = said["index"].as_str().map(|index| format!("{index}[{}]", said["shard"]));
        let words = said["allocate_explanation"].as_str().map(str::to_owned);
        Ok(match (place, words, &recoveries.failure) {
            (Some(place), Some(words), _) => format!("of {place}: {words}"),
            (_, _, Some(failure)) => failure.clone(),
            _ => "no shard says why".to_owned(),
        })
    }
}

fn in_its_names(run: &Runner<'_>, words: &str) -> String {
    run.plan.twin.as_ref().map_or_else(|| words.to_owned(), |twin| twin.in_its_names(words))
}
