//! Verdicts on followers on trial, in virtual time: an index that follows another cluster's and is held, or is well.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed, and what lifts it. Pure |
//! | `stage` | two clusters under conditions, of which one follows the other |

mod case;
mod stage;

use std::time::Duration;

use super::one_cause::{Drawn, OneCause};
use super::trial::Judgement;
pub(crate) use case::Case;
use case::{Action, Conditions};
use stage::{Stage, on_stage};

/// The first reads and writes are under way after this time.
const BEGIN: Duration = Duration::from_millis(1500);
/// How long a rate is measured from then on.
const MEASURED: Duration = Duration::from_secs(4);

impl OneCause for Case {
    type Conditions = Conditions;
    type Action = Action;
    const ACTIONS: &'static [Action] = &Action::ALL;

    fn drawn(&self) -> Drawn {
        let (name, classes) = (self.name(), self.classes());
        Drawn { target: "virtual", seed: self.seed, name, severity: self.severity, classes }
    }

    fn surroundings(&self) -> &Conditions {
        &self.surroundings
    }

    fn injected(&self, rate: f64) -> Conditions {
        Case::injected(self, rate)
    }

    fn lifted_by(&self) -> &'static [Action] {
        Case::lifted_by(self)
    }

    fn act(&self, conditions: &mut Conditions, action: Action) {
        Case::act(self, conditions, action);
    }

    /// Operations a second that the follower writes.
    async fn rate(&self, conditions: &Conditions) -> anyhow::Result<f64> {
        let act = async move |stage: &Stage<'_>| {
            stage.env.sleep(BEGIN).await;
            let before = stage.written().await?;
            stage.env.sleep(MEASURED).await;
            let written = stage.written().await?.saturating_sub(before);
            Ok(written as f64 / MEASURED.as_secs_f64())
        };
        on_stage(self.seed, conditions, act).await
    }

    async fn judged(&self, conditions: &Conditions) -> anyhow::Result<Judgement> {
        let right = self.classes();
        let act = async move |stage: &Stage<'_>| {
            stage.env.sleep(BEGIN).await;
            stage.judged(&right).await
        };
        on_stage(self.seed, conditions, act).await
    }
}
