//! From plain data to values with units, one file for each section of a plan's file.
//!
//! | file | reads |
//! | --- | --- |
//! | `plan` | the whole |
//! | `values` | numbers, units and settings, wherever they stand |
//! | `together` | several results at once, with all that is wrong |
//! | `clusters` | `[leader]`, `[follower]`, `[link]` |
//! | `corpus`, `bucket` | `[corpus]`, `[bucket]` |
//! | `index`, `rollover` | `[[index]]` |
//! | `twin` | `[twin]` |
//! | `operation`, `load`, `fault` | `[[operation]]`, `[load]`, `[[fault]]` |
//! | `change` | `[[change]]` |
//! | `parameters`, `test_bed` | `[virtual]`, `test_bed` |
//! | `variants`, `published` | `[[variant]]`, and the published row of one |
//! | `step_text` | one entry of `steps` with its options |
//! | `steps`, `order`, `following` | `steps`, their order, and the actions of a plan that follows |

mod bucket;
mod change;
mod clusters;
mod corpus;
mod fault;
mod following;
mod index;
mod load;
mod operation;
mod order;
mod parameters;
mod plan;
mod published;
mod rollover;
mod step_text;
mod steps;
mod test_bed;
mod together;
mod twin;
mod values;
mod variants;

pub use test_bed::target_bed;
pub use twin::{down_bounds, replicas_bounds};

#[cfg(test)]
pub(super) use steps::names as step_names;

#[cfg(test)]
mod tests;
