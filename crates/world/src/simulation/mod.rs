//! The virtual world's side of [`crate::Env`]: one thread, one queue of events in nanoseconds. The README of this crate
//! has the rules that keep it deterministic.
//!
//! | file | holds, from the ground up |
//! | --- | --- |
//! | `waiters.rs`, `executor.rs` | tasks that wait, tasks that run |
//! | `trace.rs`, `disk.rs` | hashes of what happened; what survives the kill of a host |
//! | `network/` | pipes, links, TCP's window and flows; its header tells the way of a lost segment |
//! | `host.rs`, `events.rs` | the state of a host; the queue of events |
//! | `world.rs`, `deadlock.rs` | a world, and what its tasks wait for when no event is left |
//! | `handle.rs`, `link_handle.rs`, `connection.rs` | what [`crate::Env`], [`crate::Link`] and connections call |

mod connection;
mod deadlock;
mod disk;
mod events;
mod executor;
mod handle;
mod host;
mod link_handle;
mod network;
mod trace;
mod waiters;
mod world;

pub use connection::{Listener, Receiver, Sender};
pub use deadlock::Deadlock;
pub use disk::VirtualDisk;
pub(crate) use handle::Host;
pub(crate) use link_handle::LinkHandle;
pub use trace::Trace;
pub(crate) use world::World;
