//! A handle on a host: what [`crate::Env`] does in the virtual world, but for its connections.

use std::any::TypeId;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use rand_core::Rng;

use super::disk::VirtualDisk;
use super::events::Alarm;
use super::executor::TaskId;
use super::host::HostState;
use super::world::World;
use crate::counters::NetCounters;
use crate::queue::{CoreQueue, DiskCounts, DiskQueue};
use crate::task::{Abort, Body};
use crate::{Time, Work, model};

/// The use of all cores is reckoned no more often than this, as the field does.
const CPU_TOLD_EVERY: Duration = Duration::from_secs(1);

/// A handle on a host of a virtual world.
#[derive(Clone)]
pub(crate) struct Host {
    pub(super) world: Weak<World>,
    pub(super) state: Rc<HostState>,
}

/// Counts a search as running until it ends or is aborted.
struct RunningSearch<'a>(&'a HostState);

impl<'a> RunningSearch<'a> {
    fn new(state: &'a HostState) -> Self {
        state.searches.set(state.searches.get() + 1);
        RunningSearch(state)
    }
}

impl Drop for RunningSearch<'_> {
    fn drop(&mut self) {
        self.0.searches.set(self.0.searches.get() - 1);
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
    pub(crate) fn get(world: &Rc<World>, name: &str) -> Host {
        Host { world: Rc::downgrade(world), state: world.host(name) }
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

    /// Searches run concurrently, as many as their pool allows, and share the cores with each other and with all other
    /// work that is ready. How long a search takes is decided when it begins: work that comes and goes meanwhile evens
    /// out.
    async fn search(&self, now: Time, work: Work) {
        let state = &self.state;
        let running = RunningSearch::new(state);
        let done = {
            let model = state.model.borrow();
            let mean = model.costs.of(work).unwrap_or_default();
            let mut random = state.random.borrow_mut();
            let factor =
                record::random::gamma_factor(model.costs.search_spread, || random.next_u64());
            let service = stretched(mean, factor);
            let others = state.cores.borrow().occupied(now) as f64;
            let stretch = model.stretch(f64::from(state.searches.get()) + others);
            state.search_cpu.set(state.search_cpu.get() + service);
            now + stretched(service, stretch)
        };
        self.sleep_until(done).await;
        drop(running);
    }

    pub(crate) fn model(&self) -> model::Host {
        self.state.model.borrow().clone()
    }

    /// The one `T` that all hosts of the world share.
    pub(crate) fn shared<T: Default + 'static>(&self) -> Rc<T> {
        let world = self.world();
        let mut shared = world.shared.borrow_mut();
        let one = shared.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default()));
        Rc::clone(one).downcast().expect("values are stored by their type")
    }

    pub(crate) fn plant(&self, fault: &'static str) {
        self.world().planted.borrow_mut().insert(fault);
    }

    pub(crate) fn is_planted(&self, fault: &str) -> bool {
        self.world().planted.borrow().contains(fault)
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

    /// Another process has a core for so long, and short messages do not go ahead of it.
    pub(crate) async fn crowd(&self, time: Duration) {
        let (state, now) = (&self.state, self.now());
        let done = state.cores.borrow_mut().reserve(now, time);
        state.others_cpu.set(state.others_cpu.get() + time);
        state.others_until.set(state.others_until.get().max(done));
        self.sleep_until(done).await;
    }

    pub(crate) fn cpu_time(&self) -> Duration {
        let (cores, others) = (self.state.cores.borrow(), self.state.others_cpu.get());
        // Whose jobs were served is not kept: where there are others', its own count as soon as they wait.
        let own = match others.is_zero() {
            true => cores.busy(self.now()),
            false => cores.given().saturating_sub(others),
        };
        own + self.state.search_cpu.get()
    }

    /// None where no other process takes the cores, and in the first second.
    pub(crate) fn machine_cpu_percent(&self) -> Option<u64> {
        let (state, now) = (&self.state, self.now());
        if state.others_cpu.get().is_zero() {
            return None;
        }
        let cores = state.cores.borrow();
        let done = cores.busy(now) + state.search_cpu.get();
        let percent = match state.cpu_told.get() {
            Some((since, _, told)) if now - since < CPU_TOLD_EVERY => return told,
            Some((since, before, _)) => {
                let all = (now - since).as_secs_f64() * cores.len() as f64;
                let share = done.saturating_sub(before).as_secs_f64() / all;
                Some((share.min(1.0) * 100.0).round() as u64)
            }
            None => None,
        };
        state.cpu_told.set(Some((now, done, percent)));
        percent
    }

    pub(crate) fn disk_counts(&self) -> DiskCounts {
        self.state.disk_queue.borrow().counts(self.now())
    }

    pub(crate) fn random_u64(&self) -> u64 {
        self.state.random.borrow_mut().next_u64()
    }

    pub(crate) fn disk(&self) -> VirtualDisk {
        self.state.disk.clone()
    }

    pub(crate) fn counters(&self) -> &Rc<NetCounters> {
        &self.state.counters
    }

    pub(crate) fn pause(&self, name: &str, pauses: bool) {
        self.world().executor.pause_host(name, pauses);
    }

    pub(crate) fn kill(&self, name: &str) -> bool {
        let world = self.world();
        let Some(state) = world.hosts.borrow().get(name).cloned() else { return false };
        for flow in world.take_flows(name) {
            flow.break_off(world.events.now());
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
        state.others_cpu.set(Duration::ZERO);
        state.others_until.set(Time(0));
        state.cpu_told.set(None);
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
                let (host, waker) = (self.host.state.clone(), cx.waker().clone());
                self.alarm = Some(world.events.add_alarm(self.when, host, waker));
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
