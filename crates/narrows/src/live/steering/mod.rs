//! `steer`: settings of a live cluster that are raised while that helps and nobody suffers, and put back at the end.
//!
//! | file | holds |
//! | --- | --- |
//! | `hand` | [`Hand`]: looks, asks the policy, and does what it says or only tells it |
//! | `changes` | [`Changes`]: settings and the lease, in the journal first |
//! | `guard` | queries of the user's that say how well users are |
//! | `account` | each step as a line for people or for programs |
//! | `night` | the whole: connecting, the lease, the journal, the end |

mod account;
mod changes;
mod guard;
mod hand;
mod night;

pub(crate) use account::{Account, Entry};
pub(crate) use changes::Changes;
pub(crate) use guard::GuardQuery;
pub(crate) use hand::Hand;
pub(crate) use night::{Steer, steer};
