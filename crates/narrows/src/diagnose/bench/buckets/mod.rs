//! Verdicts on buckets on trial: DCP connections that are held, or well.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed, and what lifts it. Pure |
//! | `stage` | nodes of a bucket under conditions, and who reads it |

mod case;
mod stage;

use std::time::Duration;

use dcp::look::Looker;

use super::one_cause::{OneCause, Staged, World, rate_of};
use super::trial::{INTERVAL, Judgement, LOOK_FOR};
use crate::live::look_for;
pub(crate) use case::Case;
use case::Conditions;
use stage::{Stage, on_stage};

/// What fills at first is full after this time: windows, memory.
const BEGIN: Duration = Duration::from_millis(1500);
/// How long a rate is measured from then on.
const MEASURED: Duration = Duration::from_secs(3);

impl Staged for Case {
    async fn rate(&self, world: World<'_>, conditions: &Conditions) -> anyhow::Result<f64> {
        let act = async move |stage: &Stage| {
            rate_of(&stage.env, BEGIN, MEASURED, async || Ok(stage.came())).await
        };
        on_stage(world, self.seed, conditions, act).await
    }

    async fn judged(&self, world: World<'_>, conditions: &Conditions) -> anyhow::Result<Judgement> {
        let right = self.classes();
        let act = async move |stage: &Stage| {
            stage.env.sleep(BEGIN).await;
            let mut looker = Looker::connect(&stage.env, &stage.options()).await?;
            let history = look_for(&stage.env, &mut looker, LOOK_FOR, INTERVAL).await?;
            Ok(Judgement::of(&history.series(), &right))
        };
        on_stage(world, self.seed, conditions, act).await
    }
}
