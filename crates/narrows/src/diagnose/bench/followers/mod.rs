//! Verdicts on followers on trial: an index that follows another cluster's and is held, or is well.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed, and what lifts it. Pure |
//! | `stage` | two clusters under conditions, of which one follows the other |

mod case;
mod stage;

use std::time::Duration;

use super::one_cause::{InWorld, OneCause, Staged, World, rate_of};
use super::trial::Judgement;
pub(crate) use case::Case;
use case::Conditions;
use stage::{Stage, on_stage};

/// The first reads and writes are under way after this time.
const BEGIN: Duration = Duration::from_millis(1500);
/// How long a rate is measured from then on.
const MEASURED: Duration = Duration::from_secs(4);

impl<'a> InWorld<'a, Case> {
    /// The case of a follower of a seed, as a world can show it; none of most seeds.
    pub(super) fn of(world: World<'a>, seed: u64) -> Option<Self> {
        let case = match world {
            World::Virtual => Case::of(seed),
            World::Real(_) => Case::on_processes(seed),
        };
        Some(InWorld { world, case: case? })
    }
}

impl Staged for InWorld<'_, Case> {
    type Case = Case;

    fn case(&self) -> &Case {
        &self.case
    }

    fn target(&self) -> &'static str {
        self.world.target()
    }

    /// Operations a second that the follower writes.
    async fn rate(&self, conditions: &Conditions) -> anyhow::Result<f64> {
        let act = async move |stage: &Stage<'_>| {
            rate_of(&stage.env, BEGIN, MEASURED, async || stage.written().await).await
        };
        on_stage(self.world, self.case.seed, conditions, act).await
    }

    async fn judged(&self, conditions: &Conditions) -> anyhow::Result<Judgement> {
        let right = self.case.drawn().classes;
        let act = async move |stage: &Stage<'_>| {
            stage.env.sleep(BEGIN).await;
            stage.judged(&right).await
        };
        on_stage(self.world, self.case.seed, conditions, act).await
    }
}
