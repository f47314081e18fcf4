//! Verdicts on searches on trial, in virtual time: copies on several nodes, of which one answers late.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed, and what lifts it. Pure |
//! | `stage` | a cluster under conditions, and who searches it |

mod case;
mod stage;

use std::time::Duration;

use super::one_cause::{Drawn, OneCause};
use super::trial::Judgement;
pub(crate) use case::Case;
use case::{Action, Conditions};
use stage::{Stage, on_stage};

/// Nodes know each other's answers after this time.
const BEGIN: Duration = Duration::from_secs(2);
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

    /// As strong as its severity, however much is searched.
    fn injected(&self, _: f64) -> Conditions {
        Case::injected(self)
    }

    fn lifted_by(&self) -> &'static [Action] {
        Case::lifted_by(self)
    }

    fn act(&self, conditions: &mut Conditions, action: Action) {
        conditions.act(action);
    }

    /// Searches a second that are answered.
    async fn rate(&self, conditions: &Conditions) -> anyhow::Result<f64> {
        let act = async move |stage: &Stage<'_>| {
            stage.env.sleep(BEGIN).await;
            let before = stage.answered()?;
            stage.env.sleep(MEASURED).await;
            Ok((stage.answered()? - before) as f64 / MEASURED.as_secs_f64())
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
