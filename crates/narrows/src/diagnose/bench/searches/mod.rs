//! Verdicts on searches on trial: copies on several nodes, of which one answers late.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed, and what lifts it. Pure |
//! | `stage` | a cluster under conditions, and who searches it |

mod case;
mod stage;

use std::time::Duration;

use super::one_cause::{OneCause, Staged, World, rate_of};
use super::trial::Judgement;
pub(crate) use case::Case;
use case::Conditions;
use stage::{Stage, on_stage};

/// Nodes know each other's answers after this time.
const BEGIN: Duration = Duration::from_secs(2);
/// How long a rate is measured from then on.
const MEASURED: Duration = Duration::from_secs(4);

impl Staged for Case {
    /// Searches a second that are answered.
    async fn rate(&self, world: World<'_>, conditions: &Conditions) -> anyhow::Result<f64> {
        let act = async move |stage: &Stage<'_>| {
            rate_of(&stage.env, BEGIN, MEASURED, async || stage.answered()).await
        };
        on_stage(world, self.seed, conditions, act).await
    }

    async fn judged(&self, world: World<'_>, conditions: &Conditions) -> anyhow::Result<Judgement> {
        let right = self.classes();
        let act = async move |stage: &Stage<'_>| {
            stage.env.sleep(BEGIN).await;
            stage.judged(&right).await
        };
        on_stage(world, self.seed, conditions, act).await
    }
}
