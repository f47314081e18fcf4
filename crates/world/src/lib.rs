#![doc = include_str!("../README.md")]

mod counters;
mod env;
mod faults;
mod link;
mod machine;
mod message;
pub mod model;
mod net;
mod queue;
pub mod real_world;
mod simulation;
mod task;
mod tcp_window;
mod time;
pub mod virtual_world;
mod work;

pub use counters::NetBytes;
pub use env::{Elapsed, Env};
pub use link::Link;
pub use message::{Frame, MAX_HEAD_BYTES, MAX_TAIL_BYTES, Message};
pub use model::{Direction, LinkConfig, LinkStats, LinkTimes};
pub use net::{Connection, Listener, Receiver, Sender};
pub use queue::{CoreQueue, DiskCounts, DiskQueue, RateQueue};
pub use simulation::{Deadlock, Trace, VirtualDisk};
pub use task::{Cancelled, LocalFuture, Panicked, Task, TaskWaiter};
pub use time::Time;
pub use work::{Codec, Work};
