//! How far a follower is behind: the operations that were acknowledged to the driver, less those that the follower says
//! it has.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use record::{CatchUp, FollowFigures, FollowSample, NodeUse};
use serde_json::Value;
use world::Time;

use super::restarts::Restarts;
use super::searching::Searches;
use crate::plan::Variant;
use crate::runner::Telemetry;
use crate::writers::{Driver, IndexLedger};

/// Parts of the run, for each of which the record says what nodes used.
const PARTS: usize = 4;
/// How many samples are taken during the pause of a restart, and in the same time while the follower catches up.
const PAUSED_SAMPLES: u32 = 10;
const CATCHING_UP_SAMPLES: u32 = 60;
/// A follower has caught up after a restart when it is behind by less than this part of the pause, or than the least.
const CAUGHT_UP: u32 = 10;
const CAUGHT_UP_LEAST: Duration = Duration::from_secs(1);

/// A variant while it runs.
pub(super) struct Following {
    pub(super) variant: Variant,
    pub(super) lap: u32,
    pub(super) driver: Rc<Driver>,
    pub(super) telemetry: Telemetry,
    pub(super) began: Time,
    /// Whether the follower was asked to follow.
    pub(super) follows: bool,
    /// Operations that all copies of the follower have, by index and shard, as it last said; none for a shard that has
    /// not followed yet.
    has: BTreeMap<String, Vec<Option<u64>>>,
    /// Bytes of files that the follower copied, as it last said.
    pub(super) copied_bytes: Option<u64>,
    pub(super) figures: FollowFigures,
    /// What happened last, in words: a wait for the follower is named after it.
    pub(super) happened: String,
    /// Restarts at random, and how many of these there were.
    pub(super) restarts: Option<Restarts>,
    pub(super) restarts_begun: u64,
    /// The last restart, until the follower has caught up after it.
    pub(super) restarted: Option<Waiting>,
    /// Rollovers that are noted in the record.
    pub(super) rollovers_noted: usize,
    pub(super) searches: Option<Searches>,
    /// The most that a node used, at each sample.
    pub(super) used: Vec<NodeUse>,
}

impl Following {
    pub(super) fn new(variant: &Variant, lap: u32, driver: Rc<Driver>, began: Time) -> Following {
        Following {
            variant: variant.clone(),
            lap,
            driver,
            telemetry: Telemetry::default(),
            began,
            follows: false,
            has: BTreeMap::new(),
            copied_bytes: None,
            figures: FollowFigures::default(),
            happened: String::new(),
            restarts: None,
            restarts_begun: 0,
            restarted: None,
            rollovers_noted: 0,
            searches: None,
            used: Vec::new(),
        }
    }

    /// Ends the searches, if there are any, and enters what they found.
    pub(super) async fn end_searches(&mut self) {
        let Some(searches) = self.searches.take() else { return };
        let (found, wrong) = searches.end().await;
        let figures = &mut self.figures;
        let sum = figures.searches.get_or_insert_default();
        sum.held += found.held;
        sum.incomplete += found.incomplete;
        sum.wrong += found.wrong;
        sum.given_up += found.given_up;
        figures.violations += found.wrong;
        figures.violations_shown.extend(wrong);
    }

    /// Enters the most that a node used in each part of the time.
    pub(super) fn note_use(&mut self) {
        let part = self.used.len().div_ceil(PARTS).max(1);
        let median = |part: &[NodeUse], of: fn(&NodeUse) -> u64| {
            let mut values: Vec<u64> = part.iter().map(of).collect();
            *values.select_nth_unstable(part.len() / 2).1
        };
        let used = |part: &[NodeUse]| NodeUse {
            resident_bytes: median(part, |one| one.resident_bytes),
            anonymous_bytes: median(part, |one| one.anonymous_bytes),
            open_files: median(part, |one| one.open_files),
        };
        self.figures.used = self.used.chunks(part).map(used).collect();
    }

    fn of(&self, ledger: &IndexLedger) -> Vec<u64> {
        let has = self.has.get(&ledger.index).into_iter().flatten();
        has.map(|has| has.unwrap_or(0)).collect()
    }

    /// Whether every shard follows, or did.
    pub(super) fn is_whole(&self) -> bool {
        let follows = |ledger: &Rc<IndexLedger>| {
            self.has.get(&ledger.index).is_some_and(|has| has.iter().all(Option::is_some))
        };
        self.driver.ledgers.open().iter().all(follows)
    }

    /// Operations that the follower has, over all indices.
    pub(super) fn operations(&self) -> u64 {
        self.has.values().flatten().flatten().sum()
    }

    /// How many operations the follower lacks, and for how many seconds the oldest of them has been there.
    pub(super) fn lag(&self, now: Time) -> (u64, f64) {
        let mut all = (0, 0f64);
        for ledger in self.driver.ledgers.open() {
            let (operations, since) = ledger.lag(&self.of(&ledger));
            all.0 += operations;
            all.1 = all.1.max(since.map_or(0.0, |since| (now - since).as_secs_f64()));
        }
        all
    }

    /// The indices that count for the lag, as a path takes them.
    pub(super) fn open_indices(&self) -> String {
        let open = self.driver.ledgers.open();
        let names: Vec<&str> = open.iter().map(|ledger| ledger.index.as_str()).collect();
        names.join(",")
    }

    /// Reads an answer of `_ccr/stats`. Shards that it leaves out are as they were.
    pub(super) fn read(&mut self, stats: &Value, sample: &mut FollowSample) {
        let ledgers = self.driver.ledgers.open();
        for index in stats["indices"].as_array().into_iter().flatten() {
            let name = index["index"].as_str().unwrap_or_default();
            let ledger = ledgers.iter().find(|ledger| ledger.index == name);
            let Some(shards) = ledger.map(|ledger| ledger.shards) else { continue };
            let has = self.has.entry(name.to_owned()).or_insert(vec![None; shards as usize]);
            for shard in index["shards"].as_array().into_iter().flatten() {
                let number = |name: &str| shard[name].as_u64().unwrap_or(0);
                if let Some(has) = has.get_mut(number("shard_id") as usize) {
                    // No operation at all is -1, and so is a shard that has not begun.
                    let checkpoint = shard["follower_global_checkpoint"].as_i64().unwrap_or(-1);
                    if checkpoint >= 0 {
                        *has = Some((checkpoint + 1) as u64);
                    }
                }
                sample.outstanding_reads += number("outstanding_read_requests");
                sample.outstanding_writes += number("outstanding_write_requests");
                sample.buffer_bytes += number("write_buffer_size_in_bytes");
            }
        }
    }

    /// How long until the next sample, where `pace` is the time between two of them.
    pub(super) fn pace(&self, pace: Duration, least: Duration) -> Duration {
        let Some(restarts) = &self.restarts else { return pace };
        let finer = match (&self.restarted, restarts.is_down()) {
            (Some(_), _) => restarts.pause / CATCHING_UP_SAMPLES,
            (None, true) => restarts.pause / PAUSED_SAMPLES,
            (None, false) => return pace,
        };
        finer.max(least).min(pace)
    }

    /// Notes with a sample that the follower has caught up after a restart, if it has.
    pub(super) fn look_after_restart(&mut self, now: Time, sample: &FollowSample) {
        let Some(restarts) = &self.restarts else { return };
        let Some(waiting) = &mut self.restarted else { return };
        // The follower followed before the restart. An index that is new since then may come as files: that counts.
        waiting.look(now, sample, true);
        let enough = (restarts.pause / CAUGHT_UP).max(CAUGHT_UP_LEAST).as_secs_f64();
        if sample.answered && sample.lag_s < enough {
            self.figures.restarts.push(waiting.ended(now, sample));
            self.restarted = None;
        }
    }
}

/// How a follower catches up after something happened.
pub(super) struct Waiting {
    after: String,
    began: Time,
    start: Option<FollowSample>,
    /// The last look at which a shard did not follow yet; the begin where all did.
    copies_until: Time,
    /// Operations of follower and leader when every shard followed for the first time. Earlier operations came as
    /// files, which say nothing about the pace of following.
    follows_from: Option<(u64, u64)>,
}

impl Waiting {
    pub(super) fn new(after: &str, began: Time) -> Waiting {
        let after = after.to_owned();
        Waiting { after, began, start: None, copies_until: began, follows_from: None }
    }

    pub(super) fn look(&mut self, now: Time, sample: &FollowSample, is_whole: bool) {
        self.start.get_or_insert_with(|| sample.clone());
        if is_whole {
            self.follows_from.get_or_insert((sample.follower_operations, sample.leader_operations));
        } else if self.follows_from.is_none() {
            self.copies_until = now;
        }
    }

    /// How it went, if it ends with this sample.
    pub(super) fn ended(&self, now: Time, sample: &FollowSample) -> CatchUp {
        let now_there = (sample.follower_operations, sample.leader_operations);
        let (has, indexed) = self.follows_from.unwrap_or(now_there);
        let start = self.start.as_ref().unwrap_or(sample);
        CatchUp {
            after: self.after.clone(),
            lag_operations: start.lag_operations,
            lag_s: start.lag_s,
            seconds: (now - self.began).as_secs_f64(),
            copying_s: (self.copies_until - self.began).as_secs_f64(),
            operations: sample.follower_operations.saturating_sub(has),
            indexed: sample.leader_operations.saturating_sub(indexed),
        }
    }
}
