//! The real world's side of [`crate::Env`]: sockets, files and threads of this machine. One event loop for each
//! process, blocking work beside it.

mod emulator;
mod host;
mod lossy;
mod net;
mod timer;
mod work;

pub(crate) use emulator::Emulator;
pub(crate) use host::{Host, process_cpu_time, spawn};
pub use net::{Listener, Receiver, Sender};
pub(crate) use net::{connect, listen};
