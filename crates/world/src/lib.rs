//! Where nodes live: time, tasks, network, disks and cores, as one [`Env`] for each node.
//!
//! Two worlds stand behind it. The [`real_world`] runs over sockets, files and threads. The
//! [`virtual_world`] runs the same code on one thread over a queue of events in nanoseconds, where links,
//! disks and cores are queues with rates; the same seed gives the same trace.
//!
//! The one rule: a node knows time, chance and its neighbours through [`Env`] alone. It lives on one
//! thread; what is long goes through [`Env::work`].

mod cut;
mod env;
mod link;
mod message;
pub mod model;
mod net;
mod queue;
pub mod real_world;
mod task;
mod time;
pub mod virtual_world;
mod work;

pub use env::{Elapsed, Env, NetBytes};
pub use link::{Direction, Link, LinkConfig, LinkStats};
pub use message::{Frame, MAX_HEAD_BYTES, MAX_TAIL_BYTES, Message};
pub use net::{Connection, Listener, Receiver, Sender};
pub use queue::{CoreQueue, DiskQueue, RateQueue};
pub use task::{Cancelled, Task};
pub use time::Time;
pub use virtual_world::{Deadlock, Trace, VirtualDisk};
pub use work::{Codec, Work};
