//! Waiting until a cluster is green, or its copies are where they belong, with a curve of what is outstanding.

use std::collections::BTreeMap;
use std::time::Duration;

use record::stage::{DELAYED, DONE, UNASSIGNED, WAITING};
use record::{Line, TwinQuestion};
use serde_json::{Value, json};
use world::Time;

use crate::error::{Error, Result};
use crate::plan::{LEADER, Twin, shards_and_first};
use crate::runner::{Recoveries, Runner, Turn, Wanted};

/// Points of the curve for each span in which the number of copies that are left stays: long spans are sampled less.
const POINTS: u32 = 16;
/// ... and no more than about so many in all.
const POINTS_MAX: u32 = 400;
/// The pause between looks while copies wait for their node, so that the end of the wait is seen in time.
const WHILE_DELAYED: Duration = Duration::from_millis(500);
/// Nodes that are asked for their figures at each point of the curve.
const NODES_AT_ONCE: usize = 16;
/// A cluster in which no copy comes up, and none is about to, for so long will not be green.
const PATIENCE: Duration = Duration::from_secs(120);
/// ... and of one whose copies have a place, for so long: a chunk takes minutes where its rate is next to nothing.
/// After so long, `indices.recovery.internal_action_timeout`, its copy fails.
const PATIENCE_WITH_A_CHUNK: Duration = Duration::from_secs(900);
const RATE: &str = "indices.recovery.max_bytes_per_sec";

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Every copy is started.
    Green,
    /// Every copy is started that finds a place.
    Placed,
    /// These nodes of virtual time hold nothing.
    Empty(Vec<String>),
    /// No copy is moved any more.
    Balanced,
}

pub(super) struct Outlook<'t> {
    pub(super) turn: &'t Turn<'t>,
    pub(super) goal: Goal,
    /// Nodes that are to be there.
    pub(super) nodes: usize,
    /// Whether it was reached but for copies that find no place.
    pub(super) stays_yellow: bool,
    since_epoch_ms: u64,
    copies: u64,
    bytes: u64,
    points: u32,
    gone: Gone,
    /// When copies came up last, and what was to be done then.
    moved: Option<(Time, (u64, u64, u64))>,
}

/// Bytes of recoveries that `_recovery` does not tell any more, as their node restarted or they were given up: they
/// were copied all the same.
#[derive(Default)]
struct Gone {
    files: u64,
    operations: u64,
    /// What `_recovery` said of both at the last look, by recovery.
    last: BTreeMap<u64, (u64, u64)>,
}

impl Gone {
    /// Adds them to what it says `now`, the sums of which are in `all`.
    fn add_to(&mut self, all: &mut Recoveries, now: BTreeMap<u64, (u64, u64)>) {
        for (recovery, (files, operations)) in std::mem::replace(&mut self.last, now) {
            let told = self.last.get(&recovery).copied().unwrap_or_default();
            self.files += files.saturating_sub(told.0);
            self.operations += operations.saturating_sub(told.1);
        }
        all.sample.recovered_bytes += self.files;
        all.sample.total_bytes += self.files;
        all.operations_bytes += self.operations;
    }
}

/// The health of a cluster, as far as it matters here.
pub(super) struct Health {
    /// All copies are started; where copies are moved, none is any more.
    is_settled: bool,
    initializing: u64,
    relocating: u64,
    unassigned: u64,
    delayed: u64,
}

/// How often it is looked.
struct Pace {
    began: Time,
    /// When the number of copies that are left changed last, and that number: those that recover, those without a node.
    changed: (Time, (u64, u64)),
    is_delayed: bool,
}

impl Pace {
    fn new(now: Time) -> Pace {
        Pace { began: now, changed: (now, (0, 0)), is_delayed: false }
    }

    fn every(&self, now: Time, sample: Duration) -> Duration {
        let every = if self.is_delayed { WHILE_DELAYED } else { (now - self.changed.0) / POINTS };
        sample.max(every).max((now - self.began) / POINTS_MAX)
    }

    fn saw(&mut self, now: Time, health: &Health) {
        self.is_delayed = health.delayed > 0 && health.initializing == 0;
        let left = (health.initializing, health.unassigned);
        if left != self.changed.1 {
            self.changed = (now, left);
        }
    }
}

impl<'t> Outlook<'t> {
    /// So many copies with so many bytes are to be made from now on.
    pub(super) fn new(
        turn: &'t Turn<'t>,
        since_epoch_ms: u64,
        (copies, bytes): (u64, u64),
        nodes: usize,
    ) -> Self {
        Outlook {
            turn,
            goal: Goal::Placed,
            nodes,
            stays_yellow: false,
            since_epoch_ms,
            copies,
            bytes,
            points: 0,
            gone: Gone::default(),
            moved: None,
        }
    }

    /// Waits until every copy is started; answers with all recoveries since it began.
    pub(super) async fn until_green(&mut self, run: &Runner<'_>) -> Result<Recoveries> {
        self.goal = Goal::Green;
        self.until_done(run).await
    }

    /// Waits for the goal, or until all that finds a place is there; answers with all recoveries since it began.
    pub(super) async fn until_done(&mut self, run: &Runner<'_>) -> Result<Recoveries> {
        let mut pace = Pace::new(run.env.now());
        loop {
            let every = pace.every(run.env.now(), run.plan.sample);
            let (health, recoveries) = self.look(run, every).await?;
            if self.is_done(run, &health, &recoveries).await? {
                return Ok(recoveries);
            }
            pace.saw(run.env.now(), &health);
            if !self.moves(run, &health, &recoveries).await? {
                self.stays_yellow = true;
                return Ok(recoveries);
            }
        }
    }

    /// Looks while a node is away that comes back at a moment, and its copies are made elsewhere: until they are.
    pub(super) async fn while_away(&mut self, run: &Runner<'_>, back: Time) -> Result<()> {
        let mut pace = Pace::new(run.env.now());
        while run.env.now() < back {
            let now = run.env.now();
            let next = (now + pace.every(now, run.plan.sample)).min(back);
            // It is not settled without the node, and is not waited for.
            let (health, _) = self.look(run, Duration::from_millis(1)).await?;
            if health.initializing + health.unassigned == 0 {
                break;
            }
            pace.saw(run.env.now(), &health);
            run.env.sleep_until(next).await;
        }
        Ok(())
    }

    /// Whether what is waited for is there. Fails where nothing is moved any more, and a node is not empty.
    ///
    /// A node is empty whether or not the cluster is green: copies that had no place before may still have none.
    async fn is_done(
        &self,
        run: &Runner<'_>,
        health: &Health,
        recoveries: &Recoveries,
    ) -> Result<bool> {
        let Goal::Empty(nodes) = &self.goal else { return Ok(health.is_settled) };
        let done = recoveries.sample.stages.get(DONE).copied().unwrap_or(0);
        if health.relocating > 0 && u64::from(done) < self.copies {
            return Ok(false);
        }
        let left = copies_on(run, nodes).await?;
        match left.first().filter(|_| health.is_settled) {
            Some(first) => {
                self.fails(stays(run, left.len() as u64, &why_not_moved(run, first).await))
            }
            None => Ok(left.is_empty()),
        }
    }

    /// Looks once the cluster is settled, or after a while.
    pub(super) async fn look(
        &mut self,
        run: &Runner<'_>,
        limit: Duration,
    ) -> Result<(Health, Recoveries)> {
        let health = self.health(run, limit).await?;
        let recoveries = self.sample(run, &health).await?;
        Ok((health, recoveries))
    }

    /// The health once the cluster is settled, or after a while.
    async fn health(&self, run: &Runner<'_>, limit: Duration) -> Result<Health> {
        let moves = match self.goal {
            Goal::Green | Goal::Placed => "",
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
            relocating: count("relocating_shards"),
            unassigned: count("unassigned_shards"),
            delayed: count("delayed_unassigned_shards"),
        })
    }

    /// A point of the curve.
    async fn sample(&mut self, run: &Runner<'_>, health: &Health) -> Result<Recoveries> {
        let answer = run.ask_recoveries(LEADER, "/_recovery").await?;
        let since_epoch_ms = self.since_epoch_ms;
        let copies = u32::try_from(self.copies).unwrap_or(u32::MAX);
        let wanted = Wanted::Peers { since_epoch_ms, copies };
        let mut all = Recoveries::of(&answer, &wanted);
        self.gone.add_to(&mut all, Recoveries::bytes_of_each(&answer, &wanted));
        let sample = &mut all.sample;
        // What is to be moved to nodes that join was estimated: in the end it is known.
        if !(self.goal == Goal::Balanced && health.is_settled) {
            sample.total_bytes = sample.total_bytes.max(self.bytes);
            let begun: u32 = sample.stages.values().sum();
            if matches!(self.goal, Goal::Empty(_) | Goal::Balanced) {
                let homeless = u32::try_from(health.unassigned).unwrap_or(u32::MAX);
                let waiting = copies.saturating_sub(begun).saturating_sub(homeless);
                sample.stages.insert(WAITING.to_owned(), waiting);
            }
        }
        for (stage, count) in [(UNASSIGNED, health.unassigned), (DELAYED, health.delayed)] {
            sample.stages.insert(stage.to_owned(), u32::try_from(count).unwrap_or(u32::MAX));
        }
        let t_ms = run.journal.t_ms();
        let Turn { variant, lap, ref telemetry, .. } = *self.turn;
        let (name, sample) = (variant.name.clone(), all.sample.clone());
        run.journal.line(&Line::Recovery { t_ms, variant: name, lap, sample })?;
        let each = u32::try_from(self.nodes / NODES_AT_ONCE).unwrap_or(u32::MAX).max(1);
        if self.points.is_multiple_of(each) || health.is_settled {
            run.sample_nodes(&variant.name, lap, telemetry).await?;
        }
        self.points += 1;
        run.watch.progress(all.sample.recovered_bytes, Some(all.sample.total_bytes));
        Ok(all)
    }

    /// Whether anything moves, or may still do so; a note says why where some copies find no place. Fails where copies
    /// are too slow, or where what is waited for wants all of them.
    async fn moves(
        &mut self,
        run: &Runner<'_>,
        health: &Health,
        recoveries: &Recoveries,
    ) -> Result<bool> {
        let now = run.env.now();
        let left = (health.initializing, health.unassigned, recoveries.moved());
        let moves = self.moved.is_none_or(|(_, before)| before != left) || health.delayed > 0;
        if moves {
            self.moved = Some((now, left));
        }
        let since = self.moved.map_or(now, |(since, _)| since);
        let made = health.initializing + health.relocating;
        let patience = if made > 0 { PATIENCE_WITH_A_CHUNK } else { PATIENCE };
        if now - since <= patience.max(run.plan.sample * 20) || self.points < 20 {
            return Ok(true);
        }
        if made > 0 {
            let value = self.turn.variant.settings.get(RATE).map_or("unset", String::as_str);
            // A higher rate brings nothing to copies that another cause keeps from every node.
            let others = match health.unassigned {
                0 => String::new(),
                count => {
                    let why = in_its_names(run, &self.why(run, recoveries).await?);
                    let have = if count == 1 { "other has" } else { "others have" };
                    format!("; {count} {have} no node: {why}")
                }
            };
            return Err(Error::TooSlow {
                variant: self.turn.variant.name.clone(),
                copies: made,
                seconds: (now - since).as_secs(),
                setting: RATE,
                value: value.to_owned(),
                others,
            });
        }
        if let Goal::Empty(nodes) = &self.goal {
            let left = copies_on(run, nodes).await?;
            if let Some(first) = left.first() {
                return self.fails(stays(run, left.len() as u64, &why_not_moved(run, first).await));
            }
        }
        let mut sentence = stays(run, health.unassigned, &self.why(run, recoveries).await?);
        let lost = run.plan.twin.as_ref().map(Twin::lost_shards).unwrap_or_default();
        if !lost.is_empty() {
            let lost = shards_and_first(&lost);
            sentence += &format!("; no copy is left of {lost}: red for good without a snapshot");
        }
        if health.unassigned == 0 || matches!(self.goal, Goal::Empty(_)) {
            return self.fails(sentence);
        }
        if self.goal == Goal::Green {
            let then = "a node that restarts is waited for until all is green: take away the replicas that find no \
                        place, or what keeps them from every node, and ask again";
            return self.fails(format!("{sentence}; {then}"));
        }
        if self.turn.lap == 1 {
            run.note(Some(self.turn.variant), &sentence)?;
        }
        Ok(false)
    }

    fn fails(&self, sentence: String) -> Result<bool> {
        Err(Error::Stays { variant: self.turn.variant.name.clone(), sentence })
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

/// The copies on these nodes, as `_cat/shards` has them.
async fn copies_on(run: &Runner<'_>, nodes: &[String]) -> Result<Vec<Value>> {
    let path = "/_cat/shards?format=json&h=index,shard,prirep,node";
    let mut rows = run.ask(LEADER, "GET", path, None).await?;
    let is_there = |row: &Value| {
        // A copy that moves is on "a -> 10.0.0.2 id b".
        let node = row["node"].as_str().and_then(|node| node.split(' ').next());
        node.is_some_and(|node| nodes.iter().any(|drained| drained == node))
    };
    let mut left = rows.as_array_mut().map(std::mem::take).unwrap_or_default();
    left.retain(is_there);
    Ok(left)
}

/// Why a copy stays on its node, in the cluster's words.
async fn why_not_moved(run: &Runner<'_>, copy: &Value) -> String {
    let shard = copy["shard"].as_str().and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
    let index = copy["index"].as_str().unwrap_or("?");
    let body = json!({ "index": index, "shard": shard, "primary": copy["prirep"] == "p" });
    let asked = run.ask(LEADER, "GET", "/_cluster/allocation/explain", Some(&body)).await;
    let said = asked.unwrap_or(Value::Null);
    let words = said["move_explanation"].as_str().unwrap_or("no shard says why");
    format!("of {index}[{shard}]: {words}")
}

/// That so many copies find no place, and why, in the cluster's words.
fn stays(run: &Runner<'_>, copies: u64, why: &str) -> String {
    let find = if copies == 1 { "copy finds" } else { "copies find" };
    format!("{copies} {find} no place, and {}: {}", TwinQuestion::STAYS, in_its_names(run, why))
}

/// The cluster's words in the names of the nodes that the twin stands for.
fn in_its_names(run: &Runner<'_>, why: &str) -> String {
    run.plan.twin.as_ref().map_or_else(|| why.to_owned(), |twin| twin.in_its_names(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_copied_to_a_node_that_restarted_was_copied() {
        let mut gone = Gone::default();
        let mut looked = |now: &[(u64, (u64, u64))], total: u64| {
            let mut all = Recoveries::default();
            let sample = &mut all.sample;
            sample.recovered_bytes = now.iter().map(|(_, (files, _))| files).sum();
            sample.total_bytes = total;
            all.operations_bytes = now.iter().map(|(_, (_, operations))| operations).sum();
            gone.add_to(&mut all, now.iter().copied().collect());
            (all.sample.recovered_bytes, all.sample.total_bytes, all.operations_bytes)
        };
        assert_eq!(looked(&[(1, (50, 5)), (2, (20, 4))], 100), (70, 100, 9));
        assert_eq!(looked(&[(2, (20, 4))], 30), (70, 80, 9), "50 of them are forgotten");
        assert_eq!(looked(&[(2, (30, 6))], 30), (80, 80, 11));
        let hides = "as much has come by another one as was forgotten of one";
        assert_eq!(looked(&[(3, (30, 6))], 30), (110, 110, 17), "{hides}");
    }
}
