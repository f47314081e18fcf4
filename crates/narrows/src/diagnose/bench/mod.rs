//! Verdicts on trial: cases drawn from seeds, each judged by what `explain` does with a live cluster.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed; the deck of kinds. Pure |
//! | `cause` | what holds recoveries back, by name |
//! | `conditions` | [`conditions::Conditions`]: nodes, link, settings; what a cause and what lifts it change. Pure |
//! | `stage` | two nodes in virtual time under conditions |
//! | `trial` | whether a case is one, its verdict, and what the advice brings |

mod case;
mod cause;
mod conditions;
mod stage;
mod trial;

use std::collections::BTreeMap;

use report::benched::Bench;

pub(crate) use case::Case;
use trial::{Outcome, trial};

use crate::seeds::side_by_side;
use crate::terminal::say;

/// The site that has the primaries, and the one that recovers replicas. Each is one node.
/// Every case of some seeds in virtual time, as many at once as there are cores. `probes` says whether the verdict is
/// also asked for with probes.
pub(crate) fn in_virtual_time(seeds: Vec<u64>, probes: bool) -> anyhow::Result<Bench> {
    let journals = tempfile::tempdir()?;
    let one = |seed: u64| trial(&Case::of(seed), probes.then_some(journals.path()));
    let (mut done, count) = (0, seeds.len());
    let outcomes = side_by_side(&seeds, &one, |seed, outcome| {
        done += 1;
        let came = match outcome {
            Outcome::Admitted(scored) => scored.sentence.clone(),
            Outcome::Refused(why) => format!("no case: {why}"),
        };
        let case = Case::of(seed);
        let (name, severity) = (case.name(), case.severity);
        say!("{done} of {count}, seed {seed}, {name}, severity {severity}: {came}");
    })?;
    let mut bench = Bench { target: "virtual".to_owned(), cases: vec![], refused: BTreeMap::new() };
    for outcome in outcomes {
        match outcome {
            Outcome::Admitted(scored) => bench.cases.push(*scored),
            Outcome::Refused(why) => *bench.refused.entry(why.to_owned()).or_default() += 1,
        }
    }
    Ok(bench)
}
