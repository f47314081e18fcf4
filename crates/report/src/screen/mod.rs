//! Live clusters in a terminal: a screen that is drawn again and again, plain lines, and findings as text.
//!
//! | module | makes |
//! | --- | --- |
//! | `view` | what is shown, from a series of looks; nothing here knows where it is shown |
//! | `nodes` | the nodes of that, and what is made of them once |
//! | `draw` | a screen of it |
//! | `recoveries`, `node_table` | the tables of that; `parts`: what all parts are made of |
//! | `scroll` | which part has the whole height, and how far its rows are scrolled |
//! | `trail` | what went through each node lately, as a line of blocks |
//! | `verdict` | the part of the screen that says what holds and what lifts it |
//! | `palette` | its colours |
//! | `plain` | lines of it |
//! | `findings` | a diagnosis in words |

mod draw;
mod findings;
mod node_table;
mod nodes;
mod palette;
mod parts;
mod plain;
mod recoveries;
mod scroll;
mod trail;
mod verdict;
mod view;

pub use draw::draw;
pub use findings::{advice, changes, findings};
pub(crate) use findings::{looks, promised, request, subjects};
pub use nodes::Nodes;
pub(crate) use nodes::node_cells;
pub use plain::plain_lines;
pub use scroll::{Key, Scroll};
pub use trail::Trails;
pub use view::{Found, Place, View, WaitingLine};
pub(crate) use view::{RecoveryCells, WAITING_MAX, recovery_cells};
