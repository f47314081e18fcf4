//! One variant of a plan that follows: the driver writes, the follower follows, and what the plan says happens, one thing
//! after another. Meanwhile the lag is measured: by what the driver was told, not by what the leader says of itself.

use std::rc::Rc;
use std::time::Duration;

use record::units::show_seconds;
use record::{CatchUp, FollowFigures, FollowSample, Line, Row};
use serde_json::{Value, json};
use world::{Direction, Time};

use super::books::Entries;
use super::lagging::{Following, Waiting};
use super::restarts::{Due, Restarts};
use super::rolling::Keeper;
use super::writing::{Driver, Pace};
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::{Action, Fault, Index, Lasts, Pattern, RandomRestarts, Step, Variant};

/// A node that stands still does not answer: samples are not waited for longer.
const SAMPLE_PATIENCE: Duration = Duration::from_millis(1500);
/// How long a follower may take to reach the end once nobody writes any more.
const END_PATIENCE: Duration = Duration::from_secs(1800);
/// How often a run of documents is written.
const RUN_EVERY: Duration = Duration::from_secs(20);
/// Most samples of a wait for documents: such a wait may take days.
const SAMPLES: f64 = 2000.0;
/// Without anything acknowledged for so long, documents are not waited for any longer.
const WRITING_PATIENCE: Duration = Duration::from_secs(900);

/// The time between two samples of a wait that has come so far: by how long this much took, as many as [`SAMPLES`].
fn pace_of(passed_s: f64, written: u64, wanted: u64) -> Duration {
    if written == 0 {
        return Duration::ZERO;
    }
    let whole_s = passed_s * wanted as f64 / written as f64;
    Duration::from_secs_f64((whole_s / SAMPLES).min(WRITING_PATIENCE.as_secs_f64() / 3.0))
}

impl Runner<'_> {
    pub(super) async fn follow(&mut self, variant: &Variant, lap: u32) -> Result<Row, Error> {
        let name = variant.name.as_str();
        let waits_for_pattern = matches!(self.plan.actions.first(), Some(Action::AutoFollow(_)));
        if !waits_for_pattern {
            self.create_all(variant).await?;
        }
        let driver = self.driver(Entries::Each).await?;
        driver.keep_rolling(self.keepers(variant));
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
        let mut following = Following::new(variant, lap, driver, self.env.now());
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
            let found = self.check(&following.driver.books).await?;
            following.figures.copies = found.copies;
            following.figures.violations = found.violations.len() as u64;
            following.figures.violations_shown = found.shown();
            self.watch.end();
            self.journal.phase("verify", false, Some(name), lap)?;
        }
        let books = &following.driver.books;
        let (acknowledged, rejected, unanswered) = books.counts();
        let figures = FollowFigures {
            acknowledged,
            rejected,
            unanswered,
            operations: following.operations(),
            indices: books.all().len() as u64,
            rollovers: books.rollovers(),
            ..std::mem::take(&mut following.figures)
        };
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
            self.watch.progress(driver.books.operations(), Some(total));
        }
        driver.stop().await;
        if let Some(error) = driver.failure() {
            return Err(error);
        }
        for book in driver.books.all() {
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
                    let full = rate.full.filter(|_| is_virtual);
                    following.driver.begin(*rate, full.map(|runs| Pace { runs, every: RUN_EVERY }));
                    let rate = full.map_or(rate.documents_per_s, |full| full.documents_per_s);
                    following.happened = format!("{rate} documents a second began");
                }
                Action::StopIndexing => {
                    following.driver.stop().await;
                    following.happened = "indexing ended".to_owned();
                }
                Action::AutoFollow(pattern) => {
                    self.begin_to_auto_follow(following, pattern).await?;
                    self.create_all(following.variant).await?;
                }
                Action::RestartAtRandom(rule) => self.begin_restarts(following, rule),
                Action::StopRestarts => Box::pin(self.stop_restarts(following)).await?,
                Action::WaitForDocuments(written) => {
                    self.wait_for_documents(following, written.of(is_virtual)).await?;
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
        Box::pin(self.stop_restarts(following)).await
    }

    async fn begin_to_follow(&mut self, following: &mut Following<'_>) -> Result<(), Error> {
        for index in &self.plan.indices {
            let settings = self.follower_settings(&[index], following.variant);
            let body = json!({
                "remote_cluster": LEADER, "leader_index": index.name, "settings": settings,
            });
            let path = format!("/{}/_ccr/follow?wait_for_active_shards=0", index.name);
            self.ask(FOLLOWER, "PUT", &path, Some(&body)).await?;
        }
        following.follows = true;
        following.happened = "the follower began".to_owned();
        Ok(())
    }

    async fn begin_to_auto_follow(
        &mut self,
        following: &mut Following<'_>,
        pattern: &Pattern,
    ) -> Result<(), Error> {
        let indices: Vec<&Index> = self.plan.indices.iter().collect();
        let body = json!({
            "remote_cluster": LEADER,
            "settings": self.follower_settings(&indices, following.variant),
            "leader_index_patterns": pattern.patterns,
            "leader_index_exclusion_patterns": pattern.exclude,
        });
        let path = format!("/_ccr/auto_follow/{}", pattern.name);
        self.ask(FOLLOWER, "PUT", &path, Some(&body)).await?;
        following.follows = true;
        following.happened = "the follower began".to_owned();
        Ok(())
    }

    /// As many replicas as on the leader, as far as there are nodes for them.
    fn follower_settings(&self, indices: &[&Index], variant: &Variant) -> Value {
        let nodes = self.plan.follower.as_ref().map_or(1, |follower| follower.nodes);
        let wanted = indices.iter().map(|index| index.replicas_of(variant)).max().unwrap_or(0);
        json!({ "index.number_of_replicas": wanted.min(nodes - 1) })
    }

    async fn create_all(&self, variant: &Variant) -> Result<(), Error> {
        for index in &self.plan.indices {
            self.create(index, Some(variant)).await?;
        }
        Ok(())
    }

    /// Who rolls which index over.
    fn keepers(&self, variant: &Variant) -> Vec<Keeper> {
        let keeper = |(family, index): (usize, &Index)| {
            let rule = index.rollover.as_ref()?.of(self.target.is_virtual()).clone();
            Some(Keeper { family, rule, index: self.made_as(index, Some(variant)) })
        };
        self.plan.indices.iter().enumerate().filter_map(keeper).collect()
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
    async fn observe(
        &mut self,
        following: &mut Following<'_>,
        lasts: Duration,
    ) -> Result<(), Error> {
        let until = self.env.now() + lasts;
        while self.env.now() < until {
            self.look(following, self.plan.sample, Some(until)).await?;
        }
        Ok(())
    }

    /// Samples until the follower lacks fewer operations than `under`.
    async fn wait_for_lag(
        &mut self,
        following: &mut Following<'_>,
        under: u64,
        within: Duration,
    ) -> Result<CatchUp, Error> {
        let began = self.env.now();
        let mut waiting = Waiting::new(&following.happened, began);
        let mut next = began;
        loop {
            Box::pin(self.restart_if_due(following)).await?;
            let sample = self.sample_following(following).await?;
            waiting.look(&sample, following.is_whole());
            let now = self.env.now();
            if sample.answered && sample.lag_operations < under {
                return Ok(waiting.ended(now, &sample));
            }
            if now - began > within {
                return Err(Error::Lags {
                    variant: following.variant.name.clone(),
                    seconds: within.as_secs(),
                    lag: sample.lag_operations,
                    under,
                    why: self.what_fails(following).await,
                });
            }
            next = (next + self.plan.sample).max(now);
            self.env.sleep_until(next).await;
        }
    }

    /// Samples until so many documents were written in the background.
    async fn wait_for_documents(
        &mut self,
        following: &mut Following<'_>,
        documents: u64,
    ) -> Result<(), Error> {
        let began = self.env.now();
        let mut grew = (following.driver.written_in_background(), began);
        while following.driver.written_in_background() < documents {
            let written = following.driver.written_in_background();
            let now = self.env.now();
            if written > grew.0 {
                grew = (written, now);
            } else if now - grew.1 > WRITING_PATIENCE {
                let variant = following.variant.name.clone();
                let seconds = WRITING_PATIENCE.as_secs();
                return Err(Error::NobodyWrites { variant, seconds, written, wanted: documents });
            }
            let pace = pace_of((now - began).as_secs_f64(), written, documents);
            self.look(following, pace.max(self.plan.sample), None).await?;
        }
        let passed = (self.env.now() - began).as_secs_f64();
        following.happened =
            format!("{documents} documents were written in {}", show_seconds(passed));
        Ok(())
    }

    /// Restarts what is due, samples, and lets time pass until the next sample, or until something is due.
    async fn look(
        &mut self,
        following: &mut Following<'_>,
        pace: Duration,
        until: Option<Time>,
    ) -> Result<(), Error> {
        let began = self.env.now();
        Box::pin(self.restart_if_due(following)).await?;
        self.sample_following(following).await?;
        let pace = following.pace(pace, self.plan.sample);
        let next = (began + pace).max(self.env.now());
        let due = following.restarts.as_ref().map(Restarts::due);
        let next = [due, until].into_iter().flatten().fold(next, Time::min);
        self.env.sleep_until(next).await;
        Ok(())
    }

    fn begin_restarts(&mut self, following: &mut Following<'_>, rule: &RandomRestarts) {
        let nodes = match rule.cluster.as_str() {
            LEADER => self.plan.leader.nodes,
            _ => self.plan.follower.map_or(0, |follower| follower.nodes),
        };
        let number = following.restarts_begun;
        following.restarts_begun += 1;
        let (seed, now) = ((self.plan.seed, number), self.env.now());
        let restarts = Restarts::new(rule, nodes, self.target.is_virtual(), seed, now);
        following.restarts = Some(restarts);
    }

    async fn restart_if_due(&mut self, following: &mut Following<'_>) -> Result<(), Error> {
        let Some(restarts) = &mut following.restarts else { return Ok(()) };
        let Some(due) = restarts.next(self.env.now()) else { return Ok(()) };
        let pause = restarts.pause;
        match due {
            Due::Ends(fault) => {
                // Whoever has not caught up by now does so after the next restart.
                following.restarted = None;
                self.befall(following.variant, &fault, true).await
            }
            Due::Starts(fault) => self.end_pause(following, &fault, pause).await,
        }
    }

    async fn end_pause(
        &mut self,
        following: &mut Following<'_>,
        fault: &Fault,
        pause: Duration,
    ) -> Result<(), Error> {
        self.befall(following.variant, fault, false).await?;
        let Fault { node, kind, .. } = fault;
        following.figures.restarts_ended += 1;
        following.happened = format!("{node} was {kind} for {}", show_seconds(pause.as_secs_f64()));
        following.restarted = Some(Waiting::new(&following.happened, self.env.now()));
        Ok(())
    }

    async fn stop_restarts(&mut self, following: &mut Following<'_>) -> Result<(), Error> {
        let Some(restarts) = following.restarts.take() else { return Ok(()) };
        let pause = restarts.pause;
        if let Some(fault) = restarts.stop() {
            self.end_pause(following, &fault, pause).await?;
        }
        following.restarted = None;
        Ok(())
    }

    /// One sample of the lag, of every node, and of the link.
    async fn sample_following(&self, following: &mut Following<'_>) -> Result<FollowSample, Error> {
        if let Some(error) = following.driver.failure() {
            return Err(error);
        }
        let mut sample = FollowSample::default();
        let limit = SAMPLE_PATIENCE.min(self.plan.sample.max(SAMPLE_PATIENCE / 3));
        if following.follows {
            let path = format!("/{}/_ccr/stats", following.open_indices());
            let asking = self.ask(FOLLOWER, "GET", &path, None);
            // A follower that does not answer is what faults are about.
            if let Ok(Ok(stats)) = self.env.timeout(limit, asking).await {
                following.read(&stats, &mut sample);
                sample.answered = true;
            }
        }
        sample.leader_operations = following.driver.books.operations();
        sample.follower_operations = following.operations();
        (sample.lag_operations, sample.lag_s) = following.lag(self.env.now());
        following.look_after_restart(self.env.now(), &sample);
        self.tell_rollovers(following)?;
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

    /// A note for each index that took over since the last look.
    fn tell_rollovers(&self, following: &mut Following<'_>) -> Result<(), Error> {
        let books = &following.driver.books;
        let new = books.all().into_iter().skip(books.families.len() + following.rollovers_told);
        for book in new {
            following.rollovers_told += 1;
            self.note(Some(following.variant), &format!("{} takes the writes", book.index))?;
        }
        Ok(())
    }

    /// What the follower says that goes wrong.
    async fn what_fails(&self, following: &Following<'_>) -> String {
        let path = format!("/{}/_ccr/stats", following.open_indices());
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
