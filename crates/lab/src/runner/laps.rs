//! Laps and variants: an experiment's four steps, and the loop that takes it through them.

use std::cell::Cell;
use std::time::Duration;

use async_trait::async_trait;
use record::Row;
use record::units::{show_rate, show_seconds};

use super::background::BackgroundWriters;
use super::base::Runner;
use super::changes::Changes;
use super::sampling::Telemetry;
use super::topology::topology;
use crate::error::{Error, Result};
use crate::plan::{DeclaredStep, FOLLOWER, LEADER, Needs, Variant, Writers};

/// One variant in one lap.
pub(crate) struct Turn<'a> {
    pub(crate) variant: &'a Variant,
    pub(crate) lap: u32,
    /// Who writes in the background, where the plan has them: from before it is measured, unless the step declares
    /// [`Writers::Later`].
    pub(crate) writers: Option<&'a BackgroundWriters>,
    /// The changes of settings that are made in this turn, out of the variant's.
    pub(super) changes: Changes<'a>,
    /// How long the link had been busy in each direction when the recovery began.
    pub(super) link_busy: Cell<[Duration; 2]>,
    /// What nodes and the link said while it recovered.
    pub(crate) telemetry: Telemetry,
}

impl<'a> Turn<'a> {
    /// A turn in which nobody writes in the background.
    pub(crate) fn of(variant: &'a Variant, lap: u32) -> Self {
        let (changes, link_busy) = (Changes::of(variant), Cell::default());
        Turn { variant, lap, writers: None, changes, link_busy, telemetry: Telemetry::default() }
    }
}

/// An experiment on clusters. For each variant and lap it prepares the leader, measures, verifies what was copied, and
/// clears away what the next variant must not find.
#[async_trait(?Send)]
pub(crate) trait Experiment {
    /// Refuses clusters that lack what it needs, before anything is done to them.
    fn check_clusters(&self, _run: &Runner<'_>) -> Result<()> {
        Ok(())
    }

    /// Has the leader hold what is to be copied. Called before each variant where a variant leaves the indices other
    /// than it found them; otherwise once for all, without a variant.
    async fn prepare(&mut self, run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
        fill_and_digest(run, variant).await
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row>;

    /// Compares what was copied with what the leader holds; the row says what was found.
    async fn verify(
        &mut self,
        run: &mut Runner<'_>,
        turn: &Turn<'_>,
        step: &DeclaredStep,
        row: &mut Row,
    ) -> Result<()> {
        // A cluster of its own has copied what the leader held before the writers began.
        let writers = turn.writers.filter(|_| step.needs != Needs::TwoClusters);
        run.verify(turn, writers, row).await
    }

    /// Removes what the next variant must not find on a leader that keeps its indices.
    async fn clear_away(&mut self, _run: &mut Runner<'_>) -> Result<()> {
        Ok(())
    }
}

/// An experiment, and its step as plans know it.
pub(crate) type OfStep = (&'static DeclaredStep, Box<dyn Experiment>);

/// Indexes what is to be copied, and notes what the leader holds then.
pub(crate) async fn fill_and_digest(run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
    run.fill_leader(variant).await?;
    run.hold(variant).await
}

impl Runner<'_> {
    /// Works through the plan. Rows are in the record as soon as they are known; what is returned are all of
    /// them. A variant whose copy is not right is an error, after its row was written.
    pub(crate) async fn run(&mut self, experiment: Option<OfStep>) -> Result<Vec<Row>> {
        let Some((step, mut experiment)) = experiment else {
            self.fill_leader(None).await?;
            return Ok(Vec::new());
        };
        experiment.check_clusters(self)?;
        let (plan, anew) = (self.plan, self.fills_anew());
        if !anew {
            if let Some(first) = plan.variants.first() {
                self.set_models_first(first)?;
            }
            experiment.prepare(self, None).await?;
        }
        let (mut rows, mut left_out) = (Vec::new(), None);
        for lap in 1..=plan.laps {
            // Variants of a lap are compared on the same hosts; the next lap has others of the same kind.
            if let Some(controls) = self.clusters.virtual_controls().filter(|_| lap > 1) {
                controls.renew_hosts();
            }
            for variant in &plan.variants {
                if self.loads_sizes() && !rows.is_empty() {
                    self.clusters.stop().await;
                    self.clusters.start(&topology(plan)).await?;
                }
                self.set_models_first(variant)?;
                if anew {
                    experiment.prepare(self, Some(variant)).await?;
                }
                match self.turn(step, &mut *experiment, Turn::of(variant, lap)).await {
                    Ok(row) => rows.push(row),
                    Err(error @ Error::NoSetting { .. }) => {
                        // The settings were refused, so there is no copy to delete.
                        if anew {
                            self.delete_indices(LEADER).await?;
                        }
                        self.note(Some(variant), &format!("left out: {error}"))?;
                        left_out = Some(error);
                        continue;
                    }
                    Err(error) => return Err(error),
                }
                self.clear_away(&mut *experiment).await?;
            }
        }
        match left_out {
            Some(error) if rows.is_empty() => Err(error),
            _ => Ok(rows),
        }
    }

    /// One variant and lap: measures, verifies, and writes the row.
    async fn turn(
        &mut self,
        step: &DeclaredStep,
        experiment: &mut dyn Experiment,
        turn: Turn<'_>,
    ) -> Result<Row> {
        let writers = self.background_writers().await?;
        let turn = &Turn { writers: writers.as_ref(), ..turn };
        if let Some(writers) = writers.as_ref().filter(|_| step.writers == Writers::Throughout) {
            writers.begin();
        }
        let measured = experiment.measure(self, turn).await;
        // However it ended, the writers are stopped.
        let ended = match &writers {
            Some(writers) => self.end_writers(turn.variant, writers).await,
            None => Ok(()),
        };
        let mut row = measured?;
        ended?;
        let verifies = step.copies && self.plan.verifies();
        if verifies {
            experiment.verify(self, turn, step, &mut row).await?;
        }
        self.journal.row(&row).inspect_err(|_| {
            // The disk may be full: what was measured is said all the same.
            let (took, rate) = (show_seconds(row.seconds), show_rate(row.bytes_per_s));
            self.watch.note(&format!("{} took {took}, {rate}; it is not recorded", row.variant));
        })?;
        self.watch.row(&row);
        if verifies && !row.verified {
            let variant = turn.variant.name.clone();
            return Err(match &row.following {
                Some(following) if following.violations > 0 => Error::RulesBroken {
                    variant,
                    violations: following.violations,
                    first: following.violations_shown.first().cloned().unwrap_or_default(),
                },
                _ => Error::NotTheSame { variant },
            });
        }
        Ok(row)
    }

    /// Removes what the next variant must not find.
    async fn clear_away(&mut self, experiment: &mut dyn Experiment) -> Result<()> {
        if self.plan.follower.is_some() && !self.plan.joined {
            self.delete_indices(FOLLOWER).await?;
        }
        match self.fills_anew() {
            true => self.delete_indices(LEADER).await,
            false => experiment.clear_away(self).await,
        }
    }
}
