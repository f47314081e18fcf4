//! The real world: nodes run over the sockets, files and threads of this machine.

use std::future::Future;
use std::rc::Rc;
use std::time::Instant;

use crate::env::Arm;
use crate::machine::Host;
use crate::{Env, LocalFuture};

/// Runs a node's code on this thread until its future ends. `seed` decides what is random in it.
///
/// Tasks that are still running then are ended.
///
/// # Panics
/// If the operating system gives no event loop (no file handles left).
pub fn run<T, F: Future<Output = T>>(seed: u64, main: impl FnOnce(Env) -> F) -> T {
    let host = Rc::new(Host::new(Instant::now(), seed, "main"));
    run_to_its_end(Box::pin(main(Env { arm: Arm::Real(host) })))
}

/// Compiled once for each `T`, and not for each of the hundreds of tests.
fn run_to_its_end<T>(main: LocalFuture<'_, T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("an event loop needs a few file handles; raise the limit of open files");
    tokio::task::LocalSet::new().block_on(&runtime, main)
}
