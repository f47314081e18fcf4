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
//! | `slow_disk` | [`SlowDisk`]: a disk that can be slowed, whose device the kernel counts |
//! | `disk_server`, `fuse` | [`serve_disk`]: what waits for such a disk; the protocol in which the kernel asks for it |
//! | `ports`, `small_disk`, `temporary` | free ports; a disk that can be filled; a directory that goes with its last user |

mod disk_server;
mod fuse;
mod list;
mod order;
mod ports;
mod process;
mod process_fault;
mod process_nodes;
mod slow_disk;
mod small_disk;
mod temporary;
mod warnings;

pub(crate) use list::{Nodes, RunningNode, StartedNode};
pub(crate) use ports::{free_ports, is_free};
pub(crate) use process::{NodeProcess, start_where_it_was};
pub(crate) use slow_disk::SlowDisks;
pub(crate) use small_disk::SmallDisks;

pub use disk_server::serve_disk;
pub use order::{Order, STOP};
pub use process::{ADDRESS_TAKEN, NodeReady, NodeStart, end_process_on_panic};
pub use process_fault::ProcessFault;
pub use slow_disk::SlowDisk;
pub use temporary::{TemporaryDir, TemporaryUse};
