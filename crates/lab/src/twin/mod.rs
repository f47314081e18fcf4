//! Plans of twins: from what a live cluster consists of, or from a file, with what is asked of it.
//!
//! | file | holds |
//! | --- | --- |
//! | `given` | what is said on the command line about machines, and what is assumed otherwise |
//! | `import` | a plan from an inventory: its nodes and machines |
//! | `node_order` | the order in which its allocator goes through nodes |
//! | `indices` | its indices |
//! | `left_out` | what of its copies is not in the plan |
//! | `writes` | documents that are written to them |
//! | `cluster_settings` | its settings |
//! | `voters` | the nodes that elect the cluster manager |
//! | `filters` | filters on nodes and data tiers, as lists of names |
//! | `anonymous` | an inventory whose names are hashed |
//! | `asked` | one thing that is asked, and variants of settings |
//! | `in_words` | what is asked, in words, and of which nodes |
//! | `within` | a time within bounds, and the rows of a plan whose values laps draw |
//! | `text` | a plan as people read and change it |

mod anonymous;
mod asked;
mod cluster_settings;
mod filters;
mod given;
mod import;
mod in_words;
mod indices;
mod left_out;
mod node_order;
#[cfg(test)]
mod tests;
mod text;
mod voters;
mod within;
mod writes;

pub use anonymous::{anonymous, anonymous_name};
pub use asked::{
    Asked, QUESTIONS, as_it_is, ask, copies, has_further_replicas, refusal, set, trials,
};
pub use cluster_settings::models;
pub use given::{Assumption, Given, assumptions, calibration, check_parameter, say};
pub use import::{Import, import};
pub use in_words::{in_words, joins_like, lost, node_names};
pub use text::text;
pub use voters::without_manager;
pub use within::Within;
pub use writes::documents_per_s;

use crate::error::{Error, Result};
use crate::plan::Plan;

/// A plan of a twin as plain data: what [`text`] writes.
pub type TwinPlan = toml::Table;

/// The plan of a twin in a file.
pub fn read(path: &std::path::Path) -> Result<TwinPlan> {
    let plan = Plan::read(path).map_err(|error| match error {
        Error::NoPlan { path } => {
            let path = path.display();
            Error::usage(format!(
                "there is no file {path}; `narrows what-if URL --save {path}` writes a twin"
            ))
        }
        other => other,
    })?;
    let table: toml::Table = plan.text().parse().map_err(|error| Error::Usage {
        why: format!("cannot read {}: {error}", path.display()),
    })?;
    if !table.get("twin").is_some_and(toml::Value::is_table) {
        let path = path.display();
        return Err(Error::usage(format!(
            "{path} is no twin: it has no [twin]; `narrows what-if URL --save twin.toml` writes one"
        )));
    }
    Ok(table)
}
