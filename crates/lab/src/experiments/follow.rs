//! `follow`: the driver writes, the follower follows, and the plan's actions are done one after another. Meanwhile the
//! lag is measured: by what the driver was answered, not by what the leader says of itself.

mod actions;
mod checking;
mod lag;
mod restarts;
mod samples;
mod searching;

use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use record::{FollowFigures, Row};
use world::Direction;

use crate::error::Result;
use crate::plan::{Action, DeclaredStep, Index, LEADER, Needs, Resolved, Variant};
use crate::runner::{Experiment, Runner, Turn};
use crate::writers::{Detail, Driver, Rollover};
use actions::{create_all, do_all, wait_for_lag};
use checking::check;
use lag::Following;

/// How long a follower may take to reach the end once nobody writes any more.
const END_PATIENCE: Duration = Duration::from_secs(1800);

/// The state of a variant from its preparation to its verification.
#[derive(Default)]
pub(crate) struct Follow {
    driver: Option<Rc<Driver>>,
    measured: Option<Measured>,
}

/// What following came to: the follower's state, and the seconds and the bytes through the link that it took.
struct Measured {
    following: Following,
    seconds: f64,
    bytes: u64,
}

impl Follow {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        has_actions: true,
        spoils_indices: |_| true,
        check: check_actions,
        ..DeclaredStep::new("follow", Needs::TwoClusters)
    };
}

/// Says what of a plan that follows cannot be so together.
fn check_actions(plan: &Resolved) -> Result<(), String> {
    let actions = &plan.actions;
    let at = |is: fn(&Action) -> bool| actions.iter().position(is);
    let patterns = actions.iter().filter(|action| matches!(action, Action::AutoFollow(_))).count();
    let follows = at(Action::follows);
    let waits_for_lag = at(|action| matches!(action, Action::WaitForLag { .. }));
    let writes = at(|action| matches!(action, Action::IndexInBackground(_)));
    let waits = at(|action| matches!(action, Action::WaitForDocuments(_)));
    let searches = actions.iter().any(|action| matches!(action, Action::SearchInBackground(_)));
    let writes_numbers =
        |action: &Action| matches!(action, Action::IndexInBackground(rate) if rate.full.is_some());
    let by_name = actions.contains(&Action::Follow);
    let wrong = match () {
        () if plan.indices.iter().any(|index| index.full.is_some()) => {
            "a plan that follows writes every document, so that each can be looked for at the end; take full \
             out of [[index]]"
        }
        () if waits_for_lag.is_some_and(|at| follows.is_none_or(|follows| at < follows)) => {
            "nobody lags before the step \"follow\"; put wait_for_lag after it"
        }
        () if patterns == 1 && by_name => {
            "a plan follows its indices by their names or by a pattern: \"follow\" or auto_follow, not both"
        }
        () if patterns == 1 && plan.indexes() => {
            "auto_follow follows what is made after it, and \"index\" comes before: take \"index\" out, and write with \
             index_in_background"
        }
        () if patterns == 1 && follows != Some(0) => {
            "auto_follow follows what is made after it; put it first after \"start\""
        }
        () if patterns > 1 => {
            "the step \"auto_follow\" stands here twice; give it several patterns"
        }
        () if waits.is_some() && (writes.is_none() || writes > waits) => {
            "wait_for_documents waits for what is written in the background; put index_in_background before it"
        }
        () if searches && plan.indices.iter().any(|index| index.rollover.is_some()) => {
            "search_in_background holds answers against the writes of one index, and a write without an answer may be in any \
             index of a rollover; take rollover or search_in_background out"
        }
        () if searches && actions.iter().any(writes_numbers) => {
            "search_in_background counts documents, and full of index_in_background writes documents that exist only as a \
             number; take either out"
        }
        () => return Ok(()),
    };
    Err(wrong.to_owned())
}

#[async_trait(?Send)]
impl Experiment for Follow {
    /// Creates the indices, unless a pattern is to find them later, and has the driver write the corpus.
    async fn prepare(&mut self, run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
        let variant = variant.expect("it spoils the indices, so each variant has its own");
        if !matches!(run.plan.actions.first(), Some(Action::AutoFollow(_))) {
            create_all(run, variant).await?;
        }
        let driver = run.driver(Detail::EachWrite).await?;
        driver.keep_rolling(rollovers(run, variant));
        if run.plan.indexes() {
            fill(run, &variant.name, &driver).await?;
        }
        self.driver = Some(driver);
        Ok(())
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        let Turn { variant, lap, .. } = *turn;
        let driver = self.driver.take().expect("it was prepared");
        run.set_up(variant).await?;
        run.journal.phase("follow", true, Some(&variant.name), lap)?;
        run.watch.begin("follow", Some(&variant.name), None, "operations");
        let before_bytes = carried(run);
        let mut following = Following::new(variant, lap, driver, run.env.now());
        let done = do_all(run, &mut following).await;
        following.driver.stop().await;
        following.end_searches().await;
        done?;
        following.driver.ledgers.refuse_all_rejected()?;
        following.note_use();
        let seconds = (run.env.now() - following.began).as_secs_f64();
        let bytes = carried(run).saturating_sub(before_bytes);
        run.watch.end();
        run.journal.phase("follow", false, Some(&variant.name), lap)?;
        let measured = self.measured.insert(Measured { following, seconds, bytes });
        Ok(row(run, turn, measured))
    }

    /// Waits until the follower has everything, and compares every copy with what the driver was answered.
    async fn verify(
        &mut self,
        run: &mut Runner<'_>,
        turn: &Turn<'_>,
        _: &DeclaredStep,
        to: &mut Row,
    ) -> Result<()> {
        let Turn { variant, lap, .. } = *turn;
        let measured = self.measured.as_mut().expect("it was measured");
        let following = &mut measured.following;
        run.journal.phase("verify", true, Some(&variant.name), lap)?;
        run.watch.begin("verify", Some(&variant.name), None, "");
        wait_for_lag(run, following, 1, END_PATIENCE).await?;
        let found = check(run, &following.driver.ledgers).await?;
        following.figures.copies = found.copies;
        following.figures.violations += found.violations.len() as u64;
        following.figures.violations_shown.extend(found.shown());
        run.watch.end();
        run.journal.phase("verify", false, Some(&variant.name), lap)?;
        let verified = following.figures.violations == 0;
        *to = Row { verified, ..row(run, turn, measured) };
        Ok(())
    }
}

/// Bytes that the link has carried towards the follower.
fn carried(run: &Runner<'_>) -> u64 {
    run.clusters.link().map_or(0, |link| link.stats(Direction::Back).bytes)
}

/// The row of a variant as far as it is known.
fn row(run: &Runner<'_>, turn: &Turn<'_>, measured: &Measured) -> Row {
    let Measured { following, seconds, bytes } = measured;
    let ledgers = &following.driver.ledgers;
    let (acknowledged, rejected, unanswered) = ledgers.counts();
    let figures = FollowFigures {
        acknowledged,
        rejected,
        unanswered,
        operations: following.operations(),
        indices: ledgers.all().len() as u64,
        rollovers: ledgers.rollovers(),
        rolled_operations: ledgers.rolled_operations(),
        ..following.figures.clone()
    };
    let row = Row::measured(&turn.variant.name, turn.lap, *seconds, *bytes);
    let link = run.plan.link.filter(|_| run.clusters.link().is_some());
    Row {
        link_share: link.map(|link| row.bytes_per_s / link.rate_bytes_per_s as f64),
        documents: figures.acknowledged,
        following: Some(figures),
        ..row
    }
}

/// Has the driver write the corpus, and waits for that.
async fn fill(run: &Runner<'_>, variant: &str, driver: &Rc<Driver>) -> Result<()> {
    run.journal.phase("index", true, Some(variant), 1)?;
    let total = run.plan.indices.iter().map(|i| i.documents.end - i.documents.start).sum();
    run.watch.begin("index", Some(variant), Some(total), "documents");
    driver.fill();
    while driver.is_writing() {
        run.env.sleep(run.plan.sample).await;
        run.watch.progress(driver.ledgers.operations(), Some(total));
    }
    driver.stop().await;
    if let Some(error) = driver.failure() {
        return Err(error);
    }
    driver.ledgers.refuse_all_rejected()?;
    for ledger in driver.ledgers.all() {
        // What is recovered later is what is committed now.
        run.ask(LEADER, "POST", &format!("/{}/_flush", ledger.index), None).await?;
    }
    run.watch.end();
    run.journal.phase("index", false, Some(variant), 1)
}

/// The aliases that the driver rolls over.
fn rollovers(run: &Runner<'_>, variant: &Variant) -> Vec<Rollover> {
    let rollover = |(target, index): (usize, &Index)| {
        let rule = index.rollover.as_ref()?.of(run.clusters.is_virtual());
        Some(Rollover { target, rule, index: run.creation_body(index, Some(variant)) })
    };
    run.plan.indices.iter().enumerate().filter_map(rollover).collect()
}
