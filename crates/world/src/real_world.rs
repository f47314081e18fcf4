//! The real world: nodes run over the sockets, files and threads of this machine.

use std::future::Future;
use std::rc::Rc;
use std::time::Instant;

use crate::Env;
use crate::machine::Host;

/// Runs a node's code on this thread until its future ends. `seed` decides what is random in it.
///
/// Tasks that are still running then are ended.
///
/// # Panics
/// If the operating system gives no event loop (no file handles left).
pub fn run<T, F: Future<Output = T>>(seed: u64, main: impl FnOnce(Env) -> F) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("an event loop needs a few file handles; raise the limit of open files");
    let local = tokio::task::LocalSet::new();
    let host = Rc::new(Host::new(Instant::now(), seed, "main"));
    local.block_on(&runtime, main(Env::real(host)))
}
