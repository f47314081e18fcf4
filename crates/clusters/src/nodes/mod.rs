//! Nodes that are started here.
//!
//! | file | holds |
//! | --- | --- |
//! | `list` | [`Nodes`]: which there are, which of them run, and which is asked next |
//! | `order` | what a node of the embedded engine is told on its standard input |
//! | `process_fault` | [`ProcessFault`]: pausing and slowing a process while the fault lasts |
//! | `process` | a node as a child process |
//! | `warnings` | which lines of a process's standard error are printed |
//! | `process_nodes` | the faults of nodes that are processes |
//! | `ports`, `small_disk`, `temporary` | free ports; a disk that can be filled; a directory that goes with its last user |

mod list;
mod order;
mod ports;
mod process;
mod process_fault;
mod process_nodes;
mod small_disk;
mod temporary;
mod warnings;

pub(crate) use list::{Nodes, RunningNode, StartedNode};
pub(crate) use ports::free_ports;
pub(crate) use process::NodeProcess;
pub(crate) use small_disk::SmallDisks;
pub(crate) use temporary::TemporaryDir;

pub use order::{Order, STOP};
pub use process::{ADDRESS_TAKEN, NodeReady, NodeStart, end_process_on_panic};
pub use process_fault::ProcessFault;
pub use temporary::TemporaryUse;
