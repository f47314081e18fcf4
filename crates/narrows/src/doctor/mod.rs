//! What this machine has and lacks, command by command.
//!
//! | file | holds |
//! | --- | --- |
//! | `finding` | one thing that was looked for; all that a group of commands needs |
//! | `looks` | the looks themselves |

mod finding;
mod looks;

use std::path::Path;

pub(crate) use finding::{Finding, Group, State};

/// Everything that was found. The first group is the first run; `runs` is where its record would be.
pub(crate) fn examine(runs: &Path, with_tests: bool) -> Vec<Group> {
    let mut groups =
        vec![looks::first_run(runs), looks::opensearch(), looks::faults(), looks::tls()];
    groups.extend(with_tests.then(looks::tests));
    groups
}
