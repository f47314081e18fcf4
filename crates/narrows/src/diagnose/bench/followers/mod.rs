//! Verdicts on followers on trial: an index that follows another cluster's and is held, or is well.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed, and what lifts it. Pure |
//! | `stage` | two clusters under conditions, of which one follows the other |

mod case;
mod stage;

use std::time::Duration;

use super::one_cause::{OneCause, Staged, World, rate_of};
use super::trial::Judgement;
pub(crate) use case::Case;
use case::Conditions;
use stage::{Stage, on_stage};

/// The first reads and writes are under way after this time.
const BEGIN: Duration = Duration::from_millis(1500);
/// How long a rate is measured from then on.
const MEASURED: Duration = Duration::from_secs(4);

impl Staged for Case {
    /// Operations a second that the follower writes.
    async fn rate(&self, world: World<'_>, conditions: &Conditions) -> anyhow::Result<f64> {
        let act = async move |stage: &Stage<'_>| {
            rate_of(&stage.env, BEGIN, MEASURED, async || stage.written().await).await
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

#[cfg(test)]
mod tests {
    use super::super::at_once;
    use super::super::one_cause::trial;
    use super::super::trial::Outcome;
    use super::case::Kind;
    use super::*;

    /// Of each severity one case of few sockets, and one of sockets that are enough.
    #[test]
    fn few_sockets_to_a_proxy_are_named_where_they_hold_a_follower_and_nowhere_else() {
        let of_kind = |kind: Kind| {
            let all = (0..330).filter_map(Case::of).filter(move |case| case.kind == kind);
            all.filter(|case| case.seed % 2 == 0)
        };
        let mut tried = 0;
        for case in of_kind(Kind::FewSockets).chain(of_kind(Kind::SocketsEnough)) {
            let seed = case.seed;
            let outcome = at_once(trial(World::Virtual, &case)).unwrap();
            let Outcome::Admitted(scored) = &outcome else { panic!("seed {seed}: {outcome:?}") };
            assert_eq!(scored.verdicts, scored.classes, "seed {seed}: {}", scored.sentence);
            tried += 1;
        }
        assert_eq!(tried, 6);
    }
}
