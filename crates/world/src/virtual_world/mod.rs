//! A simulated world: one thread, one queue of events in nanoseconds.
//!
//! Determinism, in rules:
//! 1. Events at the same moment run in the order in which they were made.
//! 2. Woken tasks run in the order in which they were woken.
//! 3. Nothing here asks the machine for its clock, a thread or a random number; what iterates is ordered.
//!
//! So the same seed gives the same trace, to the byte; [`run_traced`] gives its hash.

mod disk;
mod events;
mod executor;
mod flow;
mod host;
mod link;
mod net;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

pub use disk::VirtualDisk;
pub(crate) use host::Host;
pub(crate) use link::LinkHandle;
pub use net::{Listener, Receiver, Sender};

use crate::Env;
use crate::env::Arm;
use events::Events;
use executor::Executor;
use host::HostState;
use net::Listening;

/// Nothing is left to run, and the main task has not ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is left to run after {seconds:.3} s of virtual time; waiting: {waiting}")]
pub struct Deadlock {
    /// Virtual seconds when it happened.
    pub seconds: u64,
    /// Tasks that wait, as `task @ host`, with their number.
    pub waiting: String,
}

pub(crate) struct World {
    seed: u64,
    events: Events,
    executor: Executor,
    hosts: RefCell<BTreeMap<String, Rc<HostState>>>,
    listening: RefCell<BTreeMap<String, Rc<Listening>>>,
    links: RefCell<Vec<Rc<link::LinkState>>>,
    next_port: Cell<u32>,
}

/// Runs `main` on a fresh world until it ends.
///
/// # Panics
/// If it can never end: the message says what every task waits for.
pub fn run<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    main: impl FnOnce(Env) -> F,
) -> T {
    run_traced(seed, main).map(|(value, _)| value).unwrap_or_else(|deadlock| panic!("{deadlock}"))
}

/// As [`run`], with a hash over every event that happened; a [`Deadlock`] is an error.
pub fn run_traced<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    main: impl FnOnce(Env) -> F,
) -> Result<(T, u64), Deadlock> {
    let world = Rc::new(World {
        seed,
        events: Events::default(),
        executor: Executor::default(),
        hosts: RefCell::default(),
        listening: RefCell::default(),
        links: RefCell::default(),
        next_port: Cell::new(40_000),
    });
    let env = Env { arm: Arm::Virtual(Host::get(&world, "main")) };
    let task = env.spawn("main", main(env.clone()));
    drop(env);
    let ended = drive(&world, &task);
    let trace = world.events.trace();
    let output = ended.map(|()| take(task));
    world.clear();
    output.map(|value| (value, trace))
}

fn drive<T: 'static>(world: &Rc<World>, main: &crate::Task<T>) -> Result<(), Deadlock> {
    loop {
        world.executor.run_ready();
        if main.is_finished() {
            return Ok(());
        }
        if !world.events.step(world) {
            let seconds = world.events.now().0 / 1_000_000_000;
            return Err(Deadlock { seconds, waiting: world.executor.waiting() });
        }
    }
}

fn take<T: 'static>(task: crate::Task<T>) -> T {
    let mut task = std::pin::pin!(task);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match task.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Ok(value)) => value,
        _ => panic!("the main task was cancelled: its own host was killed"),
    }
}

impl World {
    /// Takes everything apart, so that no cycle of references outlives the run.
    fn clear(&self) {
        self.executor.clear();
        self.events.clear();
        self.listening.borrow_mut().clear();
        self.links.borrow_mut().clear();
        let hosts = std::mem::take(&mut *self.hosts.borrow_mut());
        for host in hosts.values() {
            host.clear();
        }
    }
}

#[cfg(test)]
mod tests;
