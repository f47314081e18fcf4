//! A world: its hosts, links, tasks and events.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};

use super::events::Event;
use super::executor::Executor;
use super::host::HostState;
use super::network::{Events, Flow, LinkState};
use super::trace::{Kind, Trace};
use super::waiters::Waiters;

/// Connections that wait to be accepted at an address.
#[derive(Default)]
pub(super) struct Listening {
    pub(super) waiting: RefCell<VecDeque<Box<dyn Any>>>,
    pub(super) came: Waiters,
}

#[derive(Default)]
pub(crate) struct World {
    pub(super) seed: u64,
    pub(super) events: Rc<Events>,
    pub(super) executor: Executor,
    pub(super) hosts: RefCell<BTreeMap<String, Rc<HostState>>>,
    pub(super) listening: RefCell<BTreeMap<String, Rc<Listening>>>,
    pub(super) links: RefCell<Vec<Rc<LinkState>>>,
    /// The flows from and to each host.
    flows: RefCell<BTreeMap<String, Vec<Weak<Flow>>>>,
    /// The bugs that the code of all hosts is to have. Each write asks for some twenty of them.
    pub(super) planted: RefCell<BTreeSet<&'static str>>,
    /// One value of each type, for what no host of a real world could know.
    pub(super) shared: RefCell<BTreeMap<TypeId, Rc<dyn Any>>>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        World { seed, ..World::default() }
    }

    /// The state of a host; one that is new begins with the default model.
    pub(super) fn host(&self, name: &str) -> Rc<HostState> {
        let mut hosts = self.hosts.borrow_mut();
        let new = || Rc::new(HostState::new(self.seed, name));
        hosts.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// Polls tasks and lets events happen, one after another, until `is_done` says so of what tasks did; answers
    /// whether that came before the last event. Takes no type of its caller's, so that it is compiled in this crate,
    /// with its optimization.
    pub(crate) fn run_until(&self, is_done: &dyn Fn() -> bool) -> bool {
        let _here = self.executor.runs_here();
        loop {
            if self.executor.run_ready() && is_done() {
                return true;
            }
            if !self.step() {
                return false;
            }
        }
    }

    /// Moves time to the next event and lets it happen; answers whether there was one.
    fn step(&self) -> bool {
        let Some(event) = self.events.next() else { return false };
        match event {
            Event::Wake(host, waker) => {
                host.trace.record(self.events.now(), Kind::Wake, 0);
                waker.wake();
            }
            Event::Network(event) => event.happen(&self.events),
        }
        true
    }

    /// Keeps a flow for as long as it is open, for the kill of a host and for what tasks wait for.
    pub(super) fn keep(&self, flow: &Rc<Flow>) {
        let mut all = self.flows.borrow_mut();
        for host in [&flow.from, &flow.to] {
            let flows = all.entry(host.name.to_string()).or_default();
            if flows.len() == flows.capacity() {
                flows.retain(|flow| flow.strong_count() > 0);
            }
            flows.push(Rc::downgrade(flow));
        }
    }

    /// All open flows, host by host.
    pub(super) fn flows(&self) -> Vec<Rc<Flow>> {
        self.flows.borrow().values().flatten().filter_map(Weak::upgrade).collect()
    }

    /// The open flows from and to a host that ends.
    pub(super) fn take_flows(&self, host: &str) -> Vec<Rc<Flow>> {
        let flows = self.flows.borrow_mut().remove(host).unwrap_or_default();
        flows.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn trace(&self) -> Trace {
        Trace::of(self.hosts.borrow().iter().map(|(name, host)| (name.as_str(), &host.trace)))
    }

    /// Takes everything apart, so that no cycle of references outlives the run.
    pub(crate) fn clear(&self) {
        self.executor.clear();
        self.events.clear();
        self.listening.borrow_mut().clear();
        for link in self.links.take() {
            link.out.forget_stalled();
            link.back.forget_stalled();
        }
        self.shared.borrow_mut().clear();
        let hosts = std::mem::take(&mut *self.hosts.borrow_mut());
        drop(hosts);
        self.flows.borrow_mut().clear();
    }
}
