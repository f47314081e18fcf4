//! Pooled connections to peers, and the serving side of them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use policy::failures::ErrorKind;
use tokio::sync::{Notify, oneshot};
use world::{Connection, Env, Listener, Receiver, Sender, Task};

use super::class::Class;
use super::envelope::{Envelope, is_other_version};
use super::message::{Request, Response};
use super::network_partition::NetworkPartition;
use super::round::{Round, at_once};
use super::{Failure, Result};

/// Why a call gave no answer.
#[expect(missing_docs, reason = "each message says what its fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The peer answered that it failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// No connection, or it broke.
    #[error("{address}: {reason}")]
    Broken { address: String, reason: String },
    #[error("{address}: no answer within {limit:?}")]
    Timeout { address: String, limit: Duration },
}

impl CallError {
    /// By which [`policy::failures`] says what is done.
    pub(crate) fn error_kind(&self) -> ErrorKind {
        match self {
            CallError::Broken { .. } | CallError::Timeout { .. } => ErrorKind::Unavailable,
            CallError::Failed(failure) => failure.error_kind(),
        }
    }

    /// Whether another try may help: the node was out of reach or busy.
    pub fn is_transient(&self) -> bool {
        match self {
            CallError::Broken { .. } | CallError::Timeout { .. } => true,
            CallError::Failed(failure) => matches!(failure.status, 429 | 503),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(failure) => failure,
            broken @ CallError::Broken { .. } => {
                Failure::new(503, "node_disconnected_exception", broken.to_string())
            }
            timeout @ CallError::Timeout { .. } => {
                Failure::new(503, "receive_timeout_transport_exception", timeout.to_string())
            }
        }
    }
}

/// Says what an operator should read.
pub(crate) type Warn = Rc<dyn Fn(&str)>;

/// What a call gave.
type Answer = Result<Response, CallError>;

/// Who waits for an answer.
enum Waiter {
    Caller(oneshot::Sender<Answer>),
    OneOfMany(Rc<Round<Answer>>, usize),
}

impl Waiter {
    fn give(self, answer: Answer) {
        match self {
            // Who asked may have gone meanwhile.
            Waiter::Caller(caller) => drop(caller.send(answer)),
            Waiter::OneOfMany(round, at) => round.answered(at, answer),
        }
    }
}

type Waiting = RefCell<BTreeMap<u64, Waiter>>;

struct Channel {
    sender: Sender<Envelope>,
    waiting: Rc<Waiting>,
    open: Rc<Cell<bool>>,
    _reader: Task<()>,
}

impl Channel {
    /// Has the answer to a request given to `waiter`, until what it returns is dropped.
    fn wait(&self, id: u64, waiter: Waiter) -> (u64, Forget) {
        self.waiting.borrow_mut().insert(id, waiter);
        (id, Forget { waiting: self.waiting.clone(), id })
    }
}

/// Connections to other nodes, made when they are first needed.
#[derive(Clone)]
pub struct Pool {
    inner: Rc<Inner>,
}

type Slot = Rc<tokio::sync::Mutex<Option<Rc<Channel>>>>;

struct Inner {
    env: Env,
    partition: NetworkPartition,
    next_id: Cell<u64>,
    channels: RefCell<BTreeMap<String, BTreeMap<Class, Slot>>>,
    closed: Rc<Notify>,
    warn: Warn,
}

impl Pool {
    /// A pool without connections.
    pub fn new(env: Env) -> Self {
        Pool::that_warns(env, Rc::new(|_: &str| ()))
    }

    /// As [`Pool::new`]; what is wrong with peers is said to the operator.
    pub(crate) fn that_warns(env: Env, warn: Warn) -> Self {
        let (partition, channels) = (NetworkPartition::default(), RefCell::default());
        let (next_id, closed) = (Cell::new(0), Rc::default());
        Pool { inner: Rc::new(Inner { env, partition, next_id, channels, closed, warn }) }
    }

    /// By what it warns.
    pub(crate) fn warn(&self) -> Warn {
        self.inner.warn.clone()
    }

    /// Waits until another node closes a connection, or has done so since this was asked last.
    pub(crate) async fn closed_by_other(&self) {
        self.inner.closed.notified().await;
    }

    /// Whether messages pass between this node and all others.
    pub(crate) fn partition(&self) -> &NetworkPartition {
        &self.inner.partition
    }

    /// Asks and waits for the answer, no longer than `limit`.
    pub async fn call(
        &self,
        address: &str,
        class: Class,
        request: Request,
        limit: Duration,
    ) -> Result<Response, CallError> {
        // Its future has a thousand bytes: handed over with the limit, it would be copied twice.
        let call = pin!(self.call_without_limit(address, class, request));
        match self.inner.env.timeout(limit, call).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Timeout { address: address.to_owned(), limit }),
        }
    }

    /// Asks all of these the same, and waits for the answers, no longer than `limit`. Answers are in the order of the
    /// addresses.
    pub(crate) async fn call_each(
        &self,
        addresses: &[String],
        request: &Request,
        limit: Duration,
    ) -> Vec<Answer> {
        let round = Round::of(addresses.len());
        let (mut asked, mut connecting) = (Vec::new(), Vec::new());
        for (at, address) in addresses.iter().enumerate() {
            match self.ask_at_once(address, request, (&round, at)) {
                Some(forget) => asked.push(forget),
                None => {
                    let (pool, round) = (self.clone(), round.clone());
                    let (address, request) = (address.clone(), request.clone());
                    connecting.push(self.inner.env.spawn("asks one of many", async move {
                        let answer =
                            pool.call_without_limit(&address, Class::Control, request).await;
                        round.answered(at, answer);
                    }));
                }
            }
        }
        // What is missing then is told below.
        let _ = self.inner.env.timeout(limit, round.completed()).await;
        drop((asked, connecting));
        let answers = round.take();
        let late = |address: &String| CallError::Timeout { address: address.clone(), limit };
        let with_address = answers.into_iter().zip(addresses);
        with_address.map(|(answer, address)| answer.unwrap_or_else(|| Err(late(address)))).collect()
    }

    /// Asks over a connection that is open and has room; none where there is no such connection.
    fn ask_at_once(
        &self,
        address: &str,
        request: &Request,
        (round, at): (&Rc<Round<Answer>>, usize),
    ) -> Option<Forget> {
        at_once(self.inner.partition.passes())?;
        let channel = self.open_channel(address, Class::Control)?;
        let (id, forget) = channel.wait(self.next_id(), Waiter::OneOfMany(round.clone(), at));
        // Where it fails, the slow way finds out why.
        let sent = at_once(channel.sender.send(Envelope::Request(id, request.clone())))?;
        sent.is_ok().then_some(forget)
    }

    fn next_id(&self) -> u64 {
        self.inner.next_id.set(self.inner.next_id.get() + 1);
        self.inner.next_id.get()
    }

    /// A connection that is open.
    fn open_channel(&self, address: &str, class: Class) -> Option<Rc<Channel>> {
        let slot = self.slot(address, class)?;
        let channel = slot.try_lock().ok()?;
        channel.as_ref().filter(|channel| channel.open.get()).cloned()
    }

    fn slot(&self, address: &str, class: Class) -> Option<Slot> {
        self.inner.channels.borrow().get(address)?.get(&class).cloned()
    }

    /// A place for a connection. Nodes come back at other addresses: a new one is the moment to forget those without a
    /// connection.
    fn new_slot(&self, address: &str, class: Class) -> Slot {
        let in_use =
            |channel: &Rc<Channel>| channel.open.get() || !channel.waiting.borrow().is_empty();
        // Whoever else holds it connects just now.
        let is_used = |slot: &Slot| {
            Rc::strong_count(slot) > 1
                || slot.try_lock().is_ok_and(|channel| channel.as_ref().is_some_and(in_use))
        };
        let mut channels = self.inner.channels.borrow_mut();
        if !channels.contains_key(address) {
            channels.retain(|_, slots| slots.values().any(is_used));
        }
        channels.entry(address.to_owned()).or_default().entry(class).or_default().clone()
    }

    /// Whether there is a connection to this address, or was one lately.
    pub(crate) fn knows(&self, address: &str) -> bool {
        self.inner.channels.borrow().contains_key(address)
    }

    /// Which sockets to a proxy are open, by their numbers.
    pub(crate) fn open_sockets(&self, address: &str) -> BTreeSet<u32> {
        let channels = self.inner.channels.borrow();
        let slots = channels.get(address).into_iter().flatten();
        let open = slots.filter_map(|(class, slot)| match (class, slot.try_lock()) {
            (Class::Proxied(number), Ok(channel)) => {
                channel.as_ref().is_some_and(|channel| channel.open.get()).then_some(*number)
            }
            _ => None,
        });
        open.collect()
    }

    async fn call_without_limit(
        &self,
        address: &str,
        class: Class,
        request: Request,
    ) -> Result<Response, CallError> {
        let broken = |reason: String| CallError::Broken { address: address.to_owned(), reason };
        let channel = self.channel(address, class).await?;
        let (answer, answered) = oneshot::channel();
        let (id, forget) = channel.wait(self.next_id(), Waiter::Caller(answer));
        self.inner.partition.passes().await;
        let sent = channel.sender.send(Envelope::Request(id, request)).await;
        if let Err(error) = sent {
            if let Some(refused) = too_large(&error) {
                return Err(CallError::Failed(refused));
            }
            channel.open.set(false);
            return Err(broken(error.to_string()));
        }
        let answer = answered.await;
        drop(forget);
        answer.unwrap_or_else(|_| Err(broken("the connection closed".to_owned())))
    }

    async fn channel(&self, address: &str, class: Class) -> Result<Rc<Channel>, CallError> {
        let slot = self.slot(address, class).unwrap_or_else(|| self.new_slot(address, class));
        let mut slot = slot.lock().await;
        if let Some(channel) = slot.as_ref().filter(|channel| channel.open.get()) {
            return Ok(channel.clone());
        }
        *slot = None;
        self.inner.partition.passes().await;
        let connection = self.inner.env.connect::<Envelope>(address).await;
        let Connection { sender, receiver } = connection.map_err(|error| CallError::Broken {
            address: address.to_owned(),
            reason: error.to_string(),
        })?;
        let waiting = Rc::new(Waiting::default());
        let open = Rc::new(Cell::new(true));
        let (partition, waits) = (self.inner.partition.clone(), waiting.clone());
        let reading = read_answers(receiver, partition, waits, open.clone(), address.to_owned());
        let (closed, warn) = (self.inner.closed.clone(), self.inner.warn.clone());
        let reader = self.inner.env.spawn("answers", async move {
            if let Some(words) = reading.await {
                warn(&words);
            }
            closed.notify_one();
        });
        let channel = Rc::new(Channel { sender, waiting, open, _reader: reader });
        *slot = Some(channel.clone());
        Ok(channel)
    }

    /// Closes a connection, unless somebody waits for an answer on it.
    pub(crate) fn close_unused(&self, address: &str, class: Class) {
        let Some(slot) = self.slot(address, class) else { return };
        // Whoever holds it connects just now.
        let Ok(mut channel) = slot.try_lock() else { return };
        if channel.as_ref().is_some_and(|channel| channel.waiting.borrow().is_empty()) {
            *channel = None;
        }
    }

    /// Closes every connection.
    pub fn close(&self) {
        let channels = std::mem::take(&mut *self.inner.channels.borrow_mut());
        drop(channels);
    }
}

/// The refusal of a message that no connection takes: nothing of it was sent, and others go on.
fn too_large(error: &io::Error) -> Option<Failure> {
    let refused = || Failure::new(413, "content_too_long_exception", error.to_string());
    (error.kind() == io::ErrorKind::InvalidInput).then(refused)
}

/// Forgets a request when its caller is gone.
struct Forget {
    waiting: Rc<Waiting>,
    id: u64,
}

impl Drop for Forget {
    fn drop(&mut self) {
        let taken = self.waiting.borrow_mut().remove(&self.id);
        drop(taken);
    }
}

/// Hands out answers until the connection ends. Answers what an operator should read about that.
async fn read_answers(
    mut receiver: Receiver<Envelope>,
    partition: NetworkPartition,
    waiting: Rc<Waiting>,
    open: Rc<Cell<bool>>,
    address: String,
) -> Option<String> {
    let mut is_other = false;
    let reason = loop {
        let received = receiver.recv().await;
        partition.passes().await;
        match received {
            Ok(Some(Envelope::Response(id, answer))) => {
                let waiter = waiting.borrow_mut().remove(&id);
                if let Some(waiter) = waiter {
                    waiter.give(answer.map_err(CallError::Failed));
                }
            }
            Ok(Some(Envelope::Request(..))) => break "it asked where it should answer".to_owned(),
            Ok(None) => break "the connection closed".to_owned(),
            Err(error) => {
                is_other = is_other_version(&error);
                break error.to_string();
            }
        }
    };
    open.set(false);
    let left = std::mem::take(&mut *waiting.borrow_mut());
    for waiter in left.into_values() {
        waiter.give(Err(CallError::Broken { address: address.clone(), reason: reason.clone() }));
    }
    is_other.then(|| format!("cannot talk to {address}: {reason}"))
}

/// An answer, and what is held until it has been handed to the connection.
pub struct Reply {
    pub(crate) response: Response,
    pub(crate) hold: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Reply { response, hold: None }
    }
}

/// What a node does with the questions of others.
pub(crate) struct Handlers<Now, Later> {
    /// Answers what needs no time; none where the other does it.
    pub(crate) at_once: Now,
    /// Answers anything.
    pub(crate) in_time: Later,
    pub(crate) warn: Warn,
}

/// Serves connections until the task is ended. Each question that takes time runs in a task of its own; those of a
/// connection that closes are ended.
pub(crate) async fn serve<F>(
    env: Env,
    partition: NetworkPartition,
    mut listener: Listener<Envelope>,
    handlers: Handlers<
        impl Fn(&Request) -> Option<Response> + 'static,
        impl Fn(Request) -> F + 'static,
    >,
) where
    F: Future<Output = Result<Reply>> + 'static,
{
    let handlers = Rc::new(handlers);
    let mut connections: Vec<Task<()>> = Vec::new();
    loop {
        let Ok(connection) = listener.accept().await else {
            // Out of file handles, most likely: some may close.
            env.sleep(Duration::from_millis(50)).await;
            continue;
        };
        connections.retain(|task| !task.is_finished());
        let serving =
            serve_connection(env.clone(), partition.clone(), connection, handlers.clone());
        connections.push(env.spawn("serves a connection", serving));
    }
}

async fn serve_connection<F>(
    env: Env,
    partition: NetworkPartition,
    connection: Connection<Envelope>,
    handlers: Rc<
        Handlers<impl Fn(&Request) -> Option<Response> + 'static, impl Fn(Request) -> F + 'static>,
    >,
) where
    F: Future<Output = Result<Reply>> + 'static,
{
    let Connection { sender, mut receiver } = connection;
    let mut running: BTreeMap<u64, Task<()>> = BTreeMap::new();
    let mut sweep_at = 64;
    loop {
        let (id, request) = match receiver.recv().await {
            Ok(Some(Envelope::Request(id, request))) => (id, request),
            Err(error) if is_other_version(&error) => {
                (handlers.warn)(&format!("a connection of another node is refused: {error}"));
                // Whatever it is: the peer finds the version of this build in it.
                let _ = sender.send(Envelope::Response(0, Ok(Response::Done))).await;
                return;
            }
            _ => return,
        };
        partition.passes().await;
        if let Some(response) = (handlers.at_once)(&request) {
            let answer = Envelope::Response(id, Ok(response));
            // One that has no room for it is asked to wait below.
            if at_once(sender.send(answer)).is_some() {
                continue;
            }
        }
        let (sender, partition, env2) = (sender.clone(), partition.clone(), env.clone());
        let handlers = handlers.clone();
        let task = env.spawn_with("answers a question", move || async move {
            // Made here, as what a task is given and then pins is held twice.
            let (answer, hold) = match env2.caught(pin!((handlers.in_time)(request))).await {
                Ok(Ok(reply)) => (Ok(reply.response), reply.hold),
                Ok(Err(failure)) => (Err(failure), None),
                Err(panicked) => (Err(panicked.into()), None),
            };
            partition.passes().await;
            // Who asked may have gone meanwhile.
            let sent = sender.send(Envelope::Response(id, answer)).await;
            if let Some(refused) = sent.err().as_ref().and_then(too_large) {
                let _ = sender.send(Envelope::Response(id, Err(refused))).await;
            }
            drop(hold);
        });
        running.insert(id, task);
        if running.len() >= sweep_at {
            running.retain(|_, task| !task.is_finished());
            sweep_at = (running.len() * 2).max(64);
        }
    }
}

#[cfg(test)]
#[path = "pool_test.rs"]
mod tests;
