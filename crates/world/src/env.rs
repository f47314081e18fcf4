//! A node's view of its world.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::counters::NetBytes;
use crate::net::{Connection, Listener};
use crate::queue::DiskCounts;
use crate::simulation::VirtualDisk;
use crate::task::{Panicked, Task};
use crate::{Message, Time, Work, machine, model, simulation};

/// A limit of time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {0:?}")]
pub struct Elapsed(pub Duration);

#[derive(Clone)]
pub(crate) enum Arm {
    Real(Rc<machine::Host>),
    Virtual(simulation::Host),
}

/// Time, tasks, network, disk, cores and chance, as one node has them. Cheap to clone; stays on its thread.
#[derive(Clone)]
pub struct Env {
    pub(crate) arm: Arm,
}

impl Env {
    /// Its host, where that is one of the virtual world.
    fn simulated(&self) -> Option<&simulation::Host> {
        match &self.arm {
            Arm::Real(_) => None,
            Arm::Virtual(host) => Some(host),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        match &self.arm {
            Arm::Real(host) => host.now(),
            Arm::Virtual(host) => host.now(),
        }
    }

    /// Milliseconds since 1970. The virtual world begins with the year 2020.
    pub fn epoch_ms(&self) -> u64 {
        match &self.arm {
            Arm::Real(_) => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                since.map_or(0, |since| since.as_millis() as u64)
            }
            Arm::Virtual(host) => {
                let true_ms = 1_577_836_800_000 + self.now().0 / 1_000_000;
                true_ms.saturating_add_signed(host.clock_off_ms())
            }
        }
    }

    /// Moves the clock of this host of the virtual world: [`Env::epoch_ms`] jumps by so much. [`Env::now`], and so
    /// every wait, is not affected. In the real world it does nothing and answers `false`.
    pub fn move_clock(&self, by_ms: i64) -> bool {
        self.simulated().map(|host| host.move_clock(by_ms)).is_some()
    }

    /// Sleeps; exact to the nanosecond in the virtual world and to some 50 microseconds in the real one.
    pub async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            self.sleep_until(self.now() + duration).await;
        }
    }

    /// Sleeps until a moment; not at all if it has passed.
    pub async fn sleep_until(&self, when: Time) {
        match &self.arm {
            Arm::Real(host) => host.sleep_until(when).await,
            Arm::Virtual(host) => host.sleep_until(when).await,
        }
    }

    /// As [`Env::sleep_until`]; for ever where there is no moment.
    pub async fn sleep_until_due(&self, due: Option<Time>) {
        match due {
            Some(when) => self.sleep_until(when).await,
            None => std::future::pending().await,
        }
    }

    /// Waits for `future`, but no longer than `limit`; past that the future is dropped, and [`Elapsed`] says the limit.
    pub async fn timeout<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Elapsed> {
        let future = pin!(future);
        tokio::select! {
            biased;
            value = future => Ok(value),
            () = self.sleep(limit.max(Duration::from_nanos(1))) => Err(Elapsed(limit)),
        }
    }

    /// Starts a task on this host. Its name is shown when a run hangs.
    pub fn spawn<T: 'static>(
        &self,
        name: &'static str,
        future: impl Future<Output = T> + 'static,
    ) -> Task<T> {
        self.spawn_with(name, || future)
    }

    /// As [`Env::spawn`], where the future is large and many of it are started: it is made where it stays, and never
    /// copied.
    pub fn spawn_with<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        name: &'static str,
        make: impl FnOnce() -> F,
    ) -> Task<T> {
        Task::start(make, |body| match &self.arm {
            Arm::Real(_) => machine::spawn(body),
            Arm::Virtual(host) => host.spawn(name, body),
        })
    }

    /// Does work that occupies this host's disk or a core.
    ///
    /// Real world: runs `f`, on another thread where it may take long. Virtual world: runs `f` at once, and
    /// the modelled time passes on the disk's or the cores' queue.
    pub async fn work<T: Send + 'static>(
        &self,
        work: Work,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match &self.arm {
            Arm::Real(host) => host.work(work, f).await,
            Arm::Virtual(host) => {
                let value = f();
                host.occupy(work).await;
                value
            }
        }
    }

    /// What comes of `future`, or its panic, also one of its work on another thread: a library's process goes on, and
    /// whoever waits is told. In the virtual world a panic ends the run, as no seed is to hide one.
    pub async fn caught<T>(&self, future: impl Future<Output = T>) -> Result<T, Panicked> {
        let mut future = pin!(future);
        if self.is_virtual() {
            return Ok(future.await);
        }
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(Panicked::with(&*panic))),
        })
        .await
    }

    /// Makes all work of this host take `factor` times as long from now on, in the real world; 1 is normal speed. The
    /// rest of the time is spent waiting, without a core. In the virtual world use [`Env::set_host_model`].
    pub fn slow_down(&self, factor: f64) {
        if let Arm::Real(host) = &self.arm {
            host.slow_down(factor);
        }
    }

    /// Has this host's work on its disk take as long as on this one from now on, in the real world; none is the
    /// machine's own disk again. In the virtual world use [`Env::set_host_model`].
    pub fn emulate_disk(&self, disk: Option<model::Disk>) {
        if let Arm::Real(host) = &self.arm {
            host.emulate_disk(disk);
        }
    }

    /// Has this host's work on its disk take as long as on this one from now on: the model's in the virtual world, one
    /// that is emulated in the real one.
    pub fn set_disk(&self, disk: model::Disk) {
        match self.virtual_host_model() {
            Some(model) => self.set_host_model(model::Host { disk, ..model }),
            None => self.emulate_disk(Some(disk)),
        }
    }

    /// An address to listen on: loopback in the real world, the host's own name in the virtual one; any port.
    pub fn any_address(&self) -> String {
        match &self.arm {
            Arm::Real(_) => "127.0.0.1:0".to_owned(),
            Arm::Virtual(host) => format!("{}:0", host.name()),
        }
    }

    /// Listens for connections. Port 0 takes a free one; [`Listener::address`] says which. Fails if the address is
    /// taken or not this host's.
    pub async fn listen<M: Message>(&self, address: &str) -> io::Result<Listener<M>> {
        match &self.arm {
            Arm::Real(host) => machine::listen(host, address).await.map(Listener::Real),
            Arm::Virtual(host) => host.listen(address).map(Listener::Virtual),
        }
    }

    /// Connects to a listener. Fails if nobody listens there. Where a link on the way is cut, the virtual world waits
    /// until it is healed.
    pub async fn connect<M: Message>(&self, address: &str) -> io::Result<Connection<M>> {
        match &self.arm {
            Arm::Real(host) => machine::connect(host, address).await.map(Connection::real),
            Arm::Virtual(host) => host.connect(address).await.map(Connection::simulated),
        }
    }

    /// The next random number of this host. The same seed gives the same numbers.
    pub fn random_u64(&self) -> u64 {
        match &self.arm {
            Arm::Real(host) => host.random_u64(),
            Arm::Virtual(host) => host.random_u64(),
        }
    }

    /// Another host of the same world. In the real world it shares this process.
    pub fn host(&self, name: &str) -> Env {
        let arm = match &self.arm {
            Arm::Real(host) => Arm::Real(Rc::new(host.sibling(name))),
            Arm::Virtual(host) => Arm::Virtual(host.sibling(name)),
        };
        Env { arm }
    }

    /// Kills a host of the virtual world as `kill -9` would: its tasks end where they are, its connections
    /// break, and only what was durable stays. In the real world hosts are processes; there it does nothing
    /// and answers `false`.
    pub fn kill_host(&self, name: &str) -> bool {
        self.simulated().is_some_and(|host| host.kill(name))
    }

    /// Pauses a host of the virtual world, as `SIGSTOP` would, or lets it go on. In the real world it does nothing.
    pub fn pause_host(&self, name: &str, pauses: bool) {
        if let Some(host) = self.simulated() {
            host.pause(name, pauses);
        }
    }

    /// Plants a bug in the code of all hosts of a virtual world, to see whether tests find it; the code knows it by
    /// name. In the real world it does nothing.
    pub fn plant(&self, fault: &'static str) {
        if let Some(host) = self.simulated() {
            host.plant(fault);
        }
    }

    /// Whether this bug is planted: never in the real world.
    pub fn is_planted(&self, fault: &str) -> bool {
        self.simulated().is_some_and(|host| host.is_planted(fault))
    }

    /// Whether this is the virtual world.
    pub fn is_virtual(&self) -> bool {
        self.simulated().is_some()
    }

    /// The durable storage of this host in the virtual world; none in the real one.
    pub fn virtual_disk(&self) -> Option<VirtualDisk> {
        self.simulated().map(simulation::Host::disk)
    }

    /// Sets the model of this host's cores, disk and card, in the virtual world. In the real one it does nothing.
    pub fn set_host_model(&self, model: model::Host) {
        if let Some(host) = self.simulated() {
            host.set_model(model);
        }
    }

    /// The model of this host, in the virtual world; none in the real one.
    pub fn virtual_host_model(&self) -> Option<model::Host> {
        self.simulated().map(simulation::Host::model)
    }

    /// The one `T` that all hosts of a virtual world share, for knowledge that no host of the real one could have; none
    /// in the real world.
    pub fn virtual_shared<T: Default + 'static>(&self) -> Option<Rc<T>> {
        self.simulated().map(simulation::Host::shared)
    }

    /// Core seconds used by this host so far: of the process in the real world, modelled in the virtual one.
    pub fn cpu_time(&self) -> Duration {
        match &self.arm {
            Arm::Real(_) => machine::process_cpu_time(),
            Arm::Virtual(host) => host.cpu_time(),
        }
    }

    /// Another process than this host's has one of its cores for so long, and so high a priority that no message goes
    /// ahead of it, in the virtual world. In the real one it does nothing.
    pub async fn crowd(&self, time: Duration) {
        if let Some(host) = self.simulated() {
            host.crowd(time).await;
        }
    }

    /// The use of all cores of this host in the last second or more, whoever has them, in percent. None in the real
    /// world, and where no other process takes them: then [`Env::cpu_time`] is all of it.
    pub fn machine_cpu_percent(&self) -> Option<u64> {
        self.simulated()?.machine_cpu_percent()
    }

    /// What this host's disk did so far; none in the real world, unless a disk is emulated there.
    pub fn disk_counts(&self) -> Option<DiskCounts> {
        match &self.arm {
            Arm::Real(host) => host.disk_counts(),
            Arm::Virtual(host) => Some(host.disk_counts()),
        }
    }

    /// Bytes that this host's connections carried.
    pub fn net_bytes(&self) -> NetBytes {
        let counters = match &self.arm {
            Arm::Real(host) => host.counters(),
            Arm::Virtual(host) => host.counters(),
        };
        counters.bytes()
    }
}
