//! A simulated world: one thread, one queue of events in nanoseconds.
//!
//! Determinism, in rules:
//! 1. Events at the same moment run in the order in which they were made.
//! 2. Woken tasks run in the order in which they were woken.
//! 3. Nothing here asks the machine for its clock, a thread or a random number; what iterates is ordered.
//! 4. Ports and random numbers are each host's own, so that hosts which do not speak to each other do not change each
//!    other's course.
//!
//! So the same seed gives the same trace, to the byte; [`run_traced`] gives it.

mod deadlock;
mod disk;
mod events;
mod executor;
mod flow;
mod host;
mod link;
mod net;
mod pipe;
mod tcp;
mod trace;
mod waiters;

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

pub use deadlock::Deadlock;
pub use disk::VirtualDisk;
pub(crate) use host::Host;
pub(crate) use link::LinkHandle;
pub use net::{Listener, Receiver, Sender};
pub use trace::Trace;

use crate::Env;
use crate::env::Arm;
use events::Events;
use executor::Executor;
use host::HostState;
use net::Listening;

pub(crate) struct World {
    seed: u64,
    events: Events,
    executor: Executor,
    hosts: RefCell<BTreeMap<String, Rc<HostState>>>,
    listening: RefCell<BTreeMap<String, Rc<Listening>>>,
    links: RefCell<Vec<Rc<link::LinkState>>>,
    /// One of each type, for who may know what no host knows.
    shared: RefCell<BTreeMap<TypeId, Rc<dyn Any>>>,
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

/// As [`run`], with the [`Trace`] of every event that happened; a [`Deadlock`] is an error.
pub fn run_traced<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    main: impl FnOnce(Env) -> F,
) -> Result<(T, Trace), Deadlock> {
    let world = Rc::new(World {
        seed,
        events: Events::default(),
        executor: Executor::default(),
        hosts: RefCell::default(),
        listening: RefCell::default(),
        links: RefCell::default(),
        shared: RefCell::default(),
    });
    let env = Env { arm: Arm::Virtual(Host::get(&world, "main")) };
    let task = env.spawn("main", main(env.clone()));
    drop(env);
    let ended = drive(&world, &task);
    let trace = world.trace();
    let output = ended.map(|()| take(task));
    world.clear();
    output.map(|value| (value, trace))
}

fn drive<T: 'static>(world: &Rc<World>, main: &crate::Task<T>) -> Result<(), Deadlock> {
    let mut woken = Vec::new();
    loop {
        world.executor.run_ready(&mut woken);
        if main.is_finished() {
            return Ok(());
        }
        if !world.events.step(world) {
            return Err(world.deadlock());
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
    fn trace(&self) -> Trace {
        Trace::of(self.hosts.borrow().iter().map(|(name, host)| (name.as_str(), &host.trace)))
    }

    /// Takes everything apart, so that no cycle of references outlives the run.
    fn clear(&self) {
        self.executor.clear();
        self.events.clear();
        self.listening.borrow_mut().clear();
        self.links.borrow_mut().clear();
        self.shared.borrow_mut().clear();
        let hosts = std::mem::take(&mut *self.hosts.borrow_mut());
        for host in hosts.values() {
            host.clear();
        }
    }
}

#[cfg(test)]
mod tests;
