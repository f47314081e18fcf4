//! Writers that go on while something is measured, and ledgers of what they were answered.
//!
//! | file | holds |
//! | --- | --- |
//! | `ledgers` | what was answered, for each index |
//! | `documents` | which documents a writer writes, in which requests |
//! | `rollover` | the request that rolls an alias over |
//! | `driver` | [`Driver`]: writers at a rate or all at once, and rollovers |

mod documents;
mod driver;
mod ledgers;
mod rollover;

pub(crate) use driver::{Driver, PATIENCE, RunRate};
pub(crate) use ledgers::{Detail, IndexLedger, WriteLedgers};
pub(crate) use rollover::Rollover;
