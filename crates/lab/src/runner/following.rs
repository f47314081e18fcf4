//! One variant of a plan that follows: the driver writes, the follower follows, and what the plan says happens, one thing
//! after another. Meanwhile the lag is measured: by what the driver was told, not by what the leader says of itself.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use clusters::Target;
use record::units::show_seconds;
use record::{CatchUp, FollowFigures, FollowSample, Line, Row};
use serde_json::{Value, json};
use world::{Direction, Time};

use super::sampling::Before;
use super::writing::{Book, Driver};
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::{Action, Fault, Lasts, Step, Variant};

/// A node that stands still does not answer: samples are not waited for longer.
const SAMPLE_PATIENCE: Duration = Duration::from_millis(1500);
/// How long a follower may take to reach the end once nobody writes any more.
const END_PATIENCE: Duration = Duration::from_secs(1800);

/// A variant while it runs.
struct Following<'a> {
    variant: &'a Variant,
    lap: u32,
    driver: Rc<Driver>,
    before: Before,
    began: Time,
    /// Whether the follower was asked to follow.
    follows: bool,
    /// Operations that all copies of the follower have, by index and shard, as it said last; none of a shard that has
    /// not followed yet.
    has: BTreeMap<String, Vec<Option<u64>>>,
    figures: FollowFigures,
    /// What happened last, for what comes after.
    happened: String,
}

impl Following<'_> {
    fn of(&self, book: &Book) -> Vec<u64> {
        let has = self.has.get(&book.index).into_iter().flatten();
        has.map(|has| has.unwrap_or(0)).collect()
    }

    /// Whether every shard follows, or did.
    fn is_whole(&self) -> bool {
        let follows = |book: &Book| {
            self.has.get(&book.index).is_some_and(|has| has.iter().all(Option::is_some))
        };
        self.driver.books.iter().all(follows)
    }

    /// Operations that the follower has, over all indices.
    fn operations(&self) -> u64 {
        self.has.values().flatten().flatten().sum()
    }

    /// How many operations the follower lacks, and for how many seconds the oldest of them has been there.
    fn lag(&self, now: Time) -> (u64, f64) {
        let mut all = (0, 0f64);
        for book in &self.driver.books {
            let (operations, since) = book.lag(&self.of(book));
            all.0 += operations;
            all.1 = all.1.max(since.map_or(0.0, |since| (now - since).as_secs_f64()));
        }
        all
    }

    /// Reads an answer of `_ccr/stats`. Shards that it leaves out are as they were.
    fn read(&mut self, stats: &Value, sample: &mut FollowSample) {
        for index in stats["indices"].as_array().into_iter().flatten() {
            let name = index["index"].as_str().unwrap_or_default();
            let book = self.driver.books.iter().find(|book| book.index == name);
            let Some(shards) = book.map(|book| book.shards) else { continue };
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
}

impl<T: Target> Runner<'_, T> {
    pub(super) async fn follow(&mut self, variant: &Variant, lap: u32) -> Result<Row, Error> {
        let name = variant.name.as_str();
        for index in &self.plan.indices {
            self.create(index, Some(variant)).await?;
        }
        let nodes = self.target.nodes(LEADER).into_iter().map(|node| node.http).collect();
        let driver = Driver::new(&self.env, self.plan, self.corpus(), nodes);
        if self.plan.steps.contains(&Step::Index) {
            self.fill(name, &driver).await?;
        }
        self.set_up(variant).await?;
        self.journal.phase("follow", true, Some(name), lap)?;
        self.watch.begin("follow", Some(name), None, "operations");
        let carried = |runner: &Self| {
            runner.target.link().map_or(0, |link| link.stats(Direction::Back).bytes)
        };
        let before_bytes = carried(self);
        let mut following = Following {
            variant,
            lap,
            driver,
            before: Before::default(),
            began: self.env.now(),
            follows: false,
            has: BTreeMap::new(),
            figures: FollowFigures::default(),
            happened: String::new(),
        };
        let done = Box::pin(self.do_all(&mut following)).await;
        following.driver.stop().await;
        done?;
        let seconds = (self.env.now() - following.began).as_secs_f64();
        let bytes = carried(self).saturating_sub(before_bytes);
        self.watch.end();
        self.journal.phase("follow", false, Some(name), lap)?;
        let verifies = self.plan.steps.contains(&Step::Verify);
        if verifies {
            self.journal.phase("verify", true, Some(name), lap)?;
            self.watch.begin("verify", Some(name), None, "");
            self.wait_for_lag(&mut following, 1, END_PATIENCE).await?;
            let found = self.check(&following.driver).await?;
            following.figures.copies = found.copies;
            following.figures.violations = found.violations.len() as u64;
            following.figures.violations_shown = found.shown();
            self.watch.end();
            self.journal.phase("verify", false, Some(name), lap)?;
        }
        let (acknowledged, rejected, unanswered) = following.driver.counts();
        let operations = following.operations();
        let figures =
            FollowFigures { acknowledged, rejected, unanswered, operations, ..following.figures };
        Ok(self.follow_row(variant, lap, (seconds, bytes), verifies, figures))
    }

    fn follow_row(
        &self,
        variant: &Variant,
        lap: u32,
        (seconds, bytes): (f64, u64),
        verifies: bool,
        figures: FollowFigures,
    ) -> Row {
        let row = Row::measured(&variant.name, lap, seconds, bytes);
        let link = self.plan.link;
        Row {
            link_share: link.map(|link| row.bytes_per_s / link.rate_bytes_per_s as f64),
            verified: verifies && figures.violations == 0,
            documents: figures.acknowledged,
            following: Some(figures),
            ..row
        }
    }

    /// Has the driver write the corpus, and waits for that.
    async fn fill(&self, variant: &str, driver: &Rc<Driver>) -> Result<(), Error> {
        self.journal.phase("index", true, Some(variant), 1)?;
        let total = self.plan.indices.iter().map(|i| i.documents.end - i.documents.start).sum();
        self.watch.begin("index", Some(variant), Some(total), "documents");
        driver.fill();
        while driver.is_writing() {
            self.env.sleep(self.plan.sample).await;
            self.watch.progress(driver.operations(), Some(total));
        }
        driver.stop().await;
        if let Some(error) = driver.failure() {
            return Err(error);
        }
        for book in &driver.books {
            // What is recovered later is what is committed now.
            self.ask(LEADER, "POST", &format!("/{}/_flush", book.index), None).await?;
        }
        self.watch.end();
        self.journal.phase("index", false, Some(variant), 1)
    }

    async fn do_all(&mut self, following: &mut Following<'_>) -> Result<(), Error> {
        let plan = self.plan;
        let is_virtual = self.target.is_virtual();
        for action in &plan.actions {
            match action {
                Action::IndexInBackground(rate) => {
                    following.driver.stop().await;
                    following.driver.begin(*rate);
                    following.happened =
                        format!("{} documents a second began", rate.documents_per_s);
                }
                Action::StopIndexing => {
                    following.driver.stop().await;
                    following.happened = "indexing ended".to_owned();
                }
                Action::Follow => self.begin_to_follow(following).await?,
                Action::Wait(lasts) => {
                    self.observe(following, lasts.of(is_virtual)).await?;
                }
                Action::WaitForLag { under, within } => {
                    let within = within.of(is_virtual);
                    let caught_up = self.wait_for_lag(following, *under, within).await?;
                    following.figures.catch_ups.push(caught_up);
                }
                Action::Fault { fault, lasts } => {
                    Box::pin(self.have_fault(following, fault, *lasts)).await?;
                }
            }
        }
        Ok(())
    }

    async fn begin_to_follow(&mut self, following: &mut Following<'_>) -> Result<(), Error> {
        for index in &self.plan.indices {
            let body = json!({ "remote_cluster": LEADER, "leader_index": index.name });
            let path = format!("/{}/_ccr/follow?wait_for_active_shards=0", index.name);
            self.ask(FOLLOWER, "PUT", &path, Some(&body)).await?;
        }
        following.follows = true;
        following.happened = "the follower began".to_owned();
        Ok(())
    }

    async fn have_fault(
        &mut self,
        following: &mut Following<'_>,
        fault: &Fault,
        lasts: Option<Lasts>,
    ) -> Result<(), Error> {
        let Fault { node, kind, .. } = fault;
        Box::pin(self.befall(following.variant, fault, true)).await?;
        let Some(lasts) = lasts else {
            following.happened = format!("{node} was {kind}");
            return Ok(());
        };
        let lasts = lasts.of(self.target.is_virtual());
        let observed = self.observe(following, lasts).await;
        Box::pin(self.befall(following.variant, fault, false)).await?;
        following.happened = format!("{node} was {kind} for {}", show_seconds(lasts.as_secs_f64()));
        observed
    }

    /// Samples for so long.
    async fn observe(&self, following: &mut Following<'_>, lasts: Duration) -> Result<(), Error> {
        let until = self.env.now() + lasts;
        let mut next = self.env.now();
        while self.env.now() < until {
            self.sample_following(following).await?;
            next = (next + self.plan.sample).max(self.env.now());
            self.env.sleep_until(next.min(until)).await;
        }
        Ok(())
    }

    /// Samples until the follower lacks fewer operations than `under`.
    async fn wait_for_lag(
        &self,
        following: &mut Following<'_>,
        under: u64,
        within: Duration,
    ) -> Result<CatchUp, Error> {
        let began = self.env.now();
        let mut next = began;
        let mut first: Option<FollowSample> = None;
        // What comes as files is no following: the pace is that from when every shard follows.
        let mut follows_from: Option<(u64, u64)> = None;
        loop {
            let sample = self.sample_following(following).await?;
            let start = first.get_or_insert(sample.clone());
            if following.is_whole() {
                follows_from.get_or_insert((sample.follower_operations, sample.leader_operations));
            }
            let now = self.env.now();
            if sample.answered && sample.lag_operations < under {
                let now_there = (sample.follower_operations, sample.leader_operations);
                let (has, indexed) = follows_from.unwrap_or(now_there);
                return Ok(CatchUp {
                    after: following.happened.clone(),
                    lag_operations: start.lag_operations,
                    lag_s: start.lag_s,
                    seconds: (now - began).as_secs_f64(),
                    operations: sample.follower_operations.saturating_sub(has),
                    indexed: sample.leader_operations.saturating_sub(indexed),
                });
            }
            if now - began > within {
                return Err(Error::Lags {
                    variant: following.variant.name.clone(),
                    seconds: within.as_secs(),
                    lag: sample.lag_operations,
                    under,
                    why: self.what_fails().await,
                });
            }
            next = (next + self.plan.sample).max(now);
            self.env.sleep_until(next).await;
        }
    }

    /// One sample of the lag, of every node, and of the link.
    async fn sample_following(&self, following: &mut Following<'_>) -> Result<FollowSample, Error> {
        if let Some(error) = following.driver.failure() {
            return Err(error);
        }
        let mut sample = FollowSample::default();
        let limit = SAMPLE_PATIENCE.min(self.plan.sample.max(SAMPLE_PATIENCE / 3));
        if following.follows {
            let path = format!("/{}/_ccr/stats", self.plan.index_names());
            let asking = self.ask(FOLLOWER, "GET", &path, None);
            // A follower that does not answer is what faults are about.
            if let Ok(Ok(stats)) = self.env.timeout(limit, asking).await {
                following.read(&stats, &mut sample);
                sample.answered = true;
            }
        }
        sample.leader_operations = following.driver.operations();
        sample.follower_operations = following.operations();
        (sample.lag_operations, sample.lag_s) = following.lag(self.env.now());
        let figures = &mut following.figures;
        figures.lag_operations_max = figures.lag_operations_max.max(sample.lag_operations);
        figures.lag_s_max = figures.lag_s_max.max(sample.lag_s);
        let (variant, lap) = (following.variant.name.clone(), following.lap);
        let t_ms = self.journal.t_ms();
        self.journal.line(&Line::Following { t_ms, variant, lap, sample: sample.clone() })?;
        let nodes = self.sample_nodes(&following.variant.name, lap, &following.before);
        if let Ok(sampled) = self.env.timeout(limit, nodes).await {
            sampled?;
        }
        self.watch.progress(sample.follower_operations, Some(sample.leader_operations));
        Ok(sample)
    }

    /// What the follower says that goes wrong.
    async fn what_fails(&self) -> String {
        let path = format!("/{}/_ccr/stats", self.plan.index_names());
        let Ok(stats) = self.ask(FOLLOWER, "GET", &path, None).await else {
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
}
