//! A host: its cores, disk, network card, tasks and chance.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::events::{Alarm, Happening};
use super::executor::{Body, TaskId};
use super::flow::Flow;
use super::pipe::Pipe;
use super::trace::HostTrace;
use super::{VirtualDisk, World};
use crate::env::NetCounters;
use crate::model;
use crate::queue::{CoreQueue, DiskQueue};
use crate::task::Abort;
use crate::{Time, Work};

/// A message that takes a core no longer than this does not wait for long work: the kernel would interrupt that.
const SLICE: Duration = Duration::from_millis(1);
/// Between two tasks of one host.
const LOOPBACK_BYTES_PER_S: u64 = 2_600_000_000;
const LOOPBACK_DELAY: Duration = Duration::from_micros(10);

/// Random numbers that depend on the world's seed and on a name, and on nothing else.
pub(super) fn chance(seed: u64, name: &str) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(xxh3_64_with_seed(name.as_bytes(), seed))
}

pub(super) struct HostState {
    pub(super) name: Arc<str>,
    pub(super) card_out: Rc<Pipe>,
    pub(super) card_in: Rc<Pipe>,
    pub(super) loopback: Rc<Pipe>,
    flows: RefCell<Vec<Weak<Flow>>>,
    model: RefCell<model::Host>,
    /// All that cores do.
    cores: RefCell<CoreQueue>,
    /// Short work that the kernel lets go ahead of long work.
    short: RefCell<CoreQueue>,
    /// Searches that run, which share the cores, and the core time that searches took so far.
    searching: Cell<u32>,
    searched: Cell<Duration>,
    disk_queue: RefCell<DiskQueue>,
    disk: VirtualDisk,
    random: RefCell<Xoshiro256PlusPlus>,
    /// How far its clock is from the world's.
    clock_off_ms: Cell<i64>,
    counters: Rc<NetCounters>,
    pub(super) trace: HostTrace,
    next_port: Cell<u32>,
}

impl HostState {
    fn new(seed: u64, name: &str) -> Self {
        let model = model::Host::default();
        let card = || Pipe::of_host(model.card_bytes_per_s, model.card_delay);
        let (card_out, card_in) = (card(), card());
        HostState {
            name: Arc::from(name),
            card_out,
            card_in,
            loopback: Pipe::of_host(LOOPBACK_BYTES_PER_S, LOOPBACK_DELAY),
            flows: RefCell::default(),
            cores: RefCell::new(CoreQueue::new(model.cores as usize)),
            short: RefCell::new(CoreQueue::new(model.cores as usize)),
            model: RefCell::new(model),
            searching: Cell::default(),
            searched: Cell::default(),
            disk_queue: RefCell::default(),
            disk: VirtualDisk::default(),
            random: RefCell::new(chance(seed, name)),
            clock_off_ms: Cell::default(),
            counters: Rc::default(),
            trace: HostTrace::default(),
            next_port: Cell::new(40_000),
        }
    }

    /// When a core will have sent a message that it begins with now.
    pub(super) fn send_cost(&self, now: Time, bytes: u64) -> Time {
        let cost = self.model.borrow().costs.send(bytes);
        self.message_work(now, cost)
    }

    /// When a core will have received a message that it begins with now.
    pub(super) fn receive_cost(&self, now: Time, bytes: u64) -> Time {
        let cost = self.model.borrow().costs.receive(bytes);
        self.message_work(now, cost)
    }

    /// How long a received message waits for a thread.
    pub(super) fn dispatch(&self) -> Duration {
        self.model.borrow().costs.dispatch
    }

    fn message_work(&self, now: Time, cost: Duration) -> Time {
        if cost.is_zero() {
            return now;
        }
        let queued = self.cores.borrow_mut().reserve(now, cost);
        if cost > SLICE { queued } else { self.short.borrow_mut().reserve(now, cost) }
    }

    pub(super) fn free_port(&self) -> u32 {
        self.next_port.set(self.next_port.get() + 1);
        self.next_port.get()
    }

    pub(super) fn counters(&self) -> &Rc<NetCounters> {
        &self.counters
    }

    pub(super) fn clear(&self) {
        self.flows.borrow_mut().clear();
    }

    /// The flows from and to this host that are still open.
    pub(super) fn flows(&self) -> Vec<Rc<Flow>> {
        self.flows.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn keep(&self, flow: &Rc<Flow>) {
        let mut flows = self.flows.borrow_mut();
        if flows.len() == flows.capacity() {
            flows.retain(|flow| flow.strong_count() > 0);
        }
        flows.push(Rc::downgrade(flow));
    }
}

/// A handle on a host of a virtual world.
#[derive(Clone)]
pub(crate) struct Host {
    pub(super) world: Weak<World>,
    pub(super) state: Rc<HostState>,
}

/// A search that runs, until it ends or is aborted.
struct Searching<'a>(&'a HostState);

impl<'a> Searching<'a> {
    fn new(state: &'a HostState) -> Self {
        state.searching.set(state.searching.get() + 1);
        Searching(state)
    }
}

impl Drop for Searching<'_> {
    fn drop(&mut self) {
        self.0.searching.set(self.0.searching.get() - 1);
    }
}

/// Unchanged by a factor of one, to the nanosecond.
fn stretched(time: Duration, factor: f64) -> Duration {
    if factor == 1.0 { time } else { time.mul_f64(factor) }
}

struct AbortTask {
    world: Weak<World>,
    id: TaskId,
}

impl Abort for AbortTask {
    fn abort(&self) {
        if let Some(world) = self.world.upgrade() {
            world.executor.abort(self.id);
        }
    }
}

impl Host {
    pub(super) fn get(world: &Rc<World>, name: &str) -> Host {
        let mut hosts = world.hosts.borrow_mut();
        let state = hosts
            .entry(name.to_owned())
            .or_insert_with(|| Rc::new(HostState::new(world.seed, name)))
            .clone();
        Host { world: Rc::downgrade(world), state }
    }

    pub(super) fn world(&self) -> Rc<World> {
        self.world.upgrade().expect("a host lives no longer than its world")
    }

    pub(crate) fn name(&self) -> &str {
        &self.state.name
    }

    pub(crate) fn clock_off_ms(&self) -> i64 {
        self.state.clock_off_ms.get()
    }

    pub(crate) fn move_clock(&self, by_ms: i64) {
        self.state.clock_off_ms.set(self.state.clock_off_ms.get().saturating_add(by_ms));
    }

    pub(crate) fn sibling(&self, name: &str) -> Host {
        Host::get(&self.world(), name)
    }

    pub(crate) fn now(&self) -> Time {
        self.world.upgrade().map_or(Time(0), |world| world.events.now())
    }

    pub(crate) fn sleep_until(&self, when: Time) -> Sleep {
        Sleep { host: self.clone(), when, alarm: None }
    }

    pub(crate) fn spawn(&self, name: &'static str, body: Body) -> Box<dyn Abort> {
        let id = self.world().executor.spawn(name, self.state.name.clone(), body);
        Box::new(AbortTask { world: self.world.clone(), id })
    }

    pub(crate) async fn occupy(&self, work: Work) {
        let now = self.now();
        if let Work::Search { .. } = work {
            return self.search(now, work).await;
        }
        let done = {
            let model = self.state.model.borrow();
            match model.costs.of(work) {
                Some(service) => {
                    let service = stretched(service, model.stretch(1.0));
                    self.state.cores.borrow_mut().reserve(now, service)
                }
                None => self.state.disk_queue.borrow_mut().reserve(now, &model.disk, work),
            }
        };
        self.sleep_until(done).await;
    }

    /// Searches run side by side, as many as their pool lets, and share the cores with each other and with all else
    /// that is ready. How long one takes is settled when it begins: who comes and goes meanwhile evens out.
    async fn search(&self, now: Time, work: Work) {
        let state = &self.state;
        let running = Searching::new(state);
        let done = {
            let model = state.model.borrow();
            let mean = model.costs.of(work).unwrap_or_default();
            let mut random = state.random.borrow_mut();
            let factor = model::gamma_factor(model.costs.search_spread, || random.next_u64());
            let service = stretched(mean, factor);
            let others = state.cores.borrow().occupied(now) as f64;
            let stretch = model.stretch(f64::from(state.searching.get()) + others);
            state.searched.set(state.searched.get() + service);
            now + stretched(service, stretch)
        };
        self.sleep_until(done).await;
        drop(running);
    }

    pub(crate) fn model(&self) -> model::Host {
        self.state.model.borrow().clone()
    }

    /// What is shared by all hosts of the world.
    pub(crate) fn shared<T: Default + 'static>(&self) -> Rc<T> {
        let world = self.world();
        let mut shared = world.shared.borrow_mut();
        let one = shared.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default()));
        Rc::clone(one).downcast().expect("it is kept by its type")
    }

    pub(crate) fn set_model(&self, model: model::Host) {
        for queue in [&self.state.cores, &self.state.short] {
            queue.borrow_mut().resize(model.cores as usize);
        }
        for card in [&self.state.card_out, &self.state.card_in] {
            card.set_rate(Some(model.card_bytes_per_s), model.card_delay);
        }
        *self.state.model.borrow_mut() = model;
    }

    pub(crate) fn cpu_time(&self) -> Duration {
        self.state.cores.borrow().busy(self.now()) + self.state.searched.get()
    }

    pub(crate) fn random_u64(&self) -> u64 {
        self.state.random.borrow_mut().next_u64()
    }

    pub(crate) fn disk(&self) -> VirtualDisk {
        self.state.disk.clone()
    }

    pub(crate) fn counters(&self) -> &Rc<NetCounters> {
        self.state.counters()
    }

    pub(crate) fn pause(&self, name: &str, pauses: bool) {
        self.world().executor.pause_host(name, pauses);
    }

    pub(crate) fn kill(&self, name: &str) -> bool {
        let world = self.world();
        let Some(state) = world.hosts.borrow().get(name).cloned() else { return false };
        let flows = state.flows();
        state.flows.borrow_mut().clear();
        for flow in flows {
            flow.break_off();
        }
        let own = format!("{name}:");
        world.listening.borrow_mut().retain(|address, _| !address.starts_with(&own));
        world.executor.abort_host(name);
        world.executor.pause_host(name, false);
        // Its queues are empty after a restart.
        *state.disk_queue.borrow_mut() = DiskQueue::default();
        let cores = state.model.borrow().cores as usize;
        for queue in [&state.cores, &state.short] {
            *queue.borrow_mut() = CoreQueue::new(cores);
        }
        true
    }
}

pub(crate) struct Sleep {
    host: Host,
    when: Time,
    alarm: Option<Alarm>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(world) = self.host.world.upgrade() else { return Poll::Pending };
        if world.events.now() >= self.when {
            return Poll::Ready(());
        }
        match self.alarm {
            Some(alarm) => world.events.change_alarm(alarm, cx.waker()),
            None => {
                let wake = Happening::Wake(self.host.state.clone(), cx.waker().clone());
                self.alarm = Some(world.events.add(self.when, wake));
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(alarm), Some(world)) = (self.alarm, self.host.world.upgrade()) {
            world.events.cancel(alarm);
        }
    }
}
