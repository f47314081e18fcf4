//! A stranger between two nodes: every question and every answer passes it, may wait there, and may be changed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use engine::state::Event;
use engine::transport::{CallError, Class, Envelope, Failure, Pool, Request, Response};
use tokio::sync::Notify;
use world::{Connection, Env, Task};

use super::Cluster;

pub type Answer = Result<Response, Failure>;
type Which = fn(&Request) -> bool;
type Change = Box<dyn FnMut(&Request, Answer) -> Answer>;

pub struct Between {
    pub address: String,
    inner: Rc<Inner>,
    _serving: Task<()>,
}

struct Inner {
    env: Env,
    pool: Pool,
    to: RefCell<String>,
    change: RefCell<Option<Change>>,
    holds: Cell<Option<Which>>,
    held: Cell<usize>,
    released: Notify,
    asked: Cell<u64>,
}

impl Between {
    /// Stands before the node at an address.
    pub async fn before(env: &Env, to: &str) -> Between {
        let host = env.host("between");
        let mut listener = host.listen::<Envelope>(&host.any_address()).await.unwrap();
        let address = listener.address().to_owned();
        let inner = Rc::new(Inner {
            pool: Pool::new(host.clone()),
            env: host.clone(),
            to: RefCell::new(to.to_owned()),
            change: RefCell::default(),
            holds: Cell::default(),
            held: Cell::default(),
            released: Notify::new(),
            asked: Cell::default(),
        });
        let serves = inner.clone();
        let serving = host.spawn("stands between", async move {
            while let Ok(connection) = listener.accept().await {
                let passing = pass(serves.clone(), connection);
                serves.env.spawn("passes questions on", passing).detach();
            }
        });
        Between { address, inner, _serving: serving }
    }

    /// Changes answers from now on.
    pub fn change(&self, change: impl FnMut(&Request, Answer) -> Answer + 'static) {
        self.inner.change.replace(Some(Box::new(change)));
    }

    /// Holds questions of a kind back from now on; what is held and is not of it goes on.
    pub fn hold(&self, which: Which) {
        self.inner.holds.set(Some(which));
        self.inner.released.notify_waiters();
    }

    /// Holds nothing back from now on; what is held stays so, as if it was lost.
    pub fn lose_what_is_held(&self) {
        self.inner.holds.set(None);
    }

    /// How many questions are held back.
    pub fn held(&self) -> usize {
        self.inner.held.get()
    }

    /// How many questions came.
    pub fn asked(&self) -> u64 {
        self.inner.asked.get()
    }

    /// Passes everything on as it is.
    pub fn be_honest(&self) {
        self.inner.change.replace(None);
        self.inner.holds.set(None);
        self.inner.released.notify_waiters();
    }
}

async fn pass(inner: Rc<Inner>, connection: Connection<Envelope>) {
    let Connection { sender, mut receiver } = connection;
    while let Ok(Some(Envelope::Request(id, request))) = receiver.recv().await {
        let (sender, inner2) = (sender.clone(), inner.clone());
        let passing = async move {
            let answer = inner2.answer(request).await;
            // Who asked may be gone.
            let _ = sender.send(Envelope::Response(id, answer)).await;
        };
        inner.env.spawn("passes a question on", passing).detach();
    }
}

impl Inner {
    async fn answer(&self, request: Request) -> Answer {
        self.asked.set(self.asked.get() + 1);
        let is_held = || self.holds.get().is_some_and(|holds| holds(&request));
        if is_held() {
            self.held.set(self.held.get() + 1);
            loop {
                self.released.notified().await;
                if !is_held() {
                    break;
                }
            }
            self.held.set(self.held.get() - 1);
        }
        let (to, limit) = (self.to.borrow().clone(), Duration::from_secs(300));
        let class = match request {
            Request::ReadOpening { .. } | Request::ReadChunk { .. } => Class::Recovery(0),
            _ => Class::Control,
        };
        let answer = self.pool.call(&to, class, request.clone(), limit).await;
        let answer = answer.map_err(Failure::from);
        match &mut *self.change.borrow_mut() {
            Some(change) => change(&request, answer),
            None => answer,
        }
    }
}

impl Cluster {
    /// Asks a node over a connection of its own.
    pub async fn ask_node(&self, node: &str, request: Request) -> Result<Response, CallError> {
        let pool = Pool::new(self.env.host("asks"));
        let address = self.nodes[node].transport_address();
        let answer = pool.call(address, Class::Control, request, Duration::from_secs(60)).await;
        pool.close();
        answer
    }

    /// Asks the primary of the first shard of an index.
    pub async fn ask_primary(&self, index: &str, request: Request) -> Result<Response, CallError> {
        self.ask_node(&self.primary_of(index), request).await
    }
}

/// Whether the manager is told that a copy has recovered.
pub fn starts_a_copy(request: &Request) -> bool {
    matches!(request, Request::Submit(event) if matches!(**event, Event::ShardStarted { .. }))
}

/// A cluster of which the others reach one node, as node 0, the manager, through somebody in between.
pub async fn cluster_behind(
    env: &Env,
    name: &str,
    nodes: usize,
    behind: usize,
) -> (Between, Cluster) {
    let (mut between, cluster) = cluster_behind_each(env, name, nodes, &[behind]).await;
    (between.remove(0), cluster)
}

/// The same of several nodes, each with somebody of its own before it.
pub async fn cluster_behind_each(
    env: &Env,
    name: &str,
    nodes: usize,
    behind: &[usize],
) -> (Vec<Between>, Cluster) {
    let mut hidden = Vec::new();
    for number in behind {
        let node = format!("{name}-{number}");
        let address = match env.is_virtual() {
            true => format!("{node}:9300"),
            false => format!("127.0.0.1:{}", testbed::free_port()),
        };
        let between = Between::before(env, &address).await;
        hidden.push((node, address, between));
    }
    let change = |config: &mut engine::NodeConfig| {
        if let Some((_, address, between)) = hidden.iter().find(|(node, ..)| *node == config.name) {
            config.transport = address.clone();
            config.publish = Some(between.address.clone());
        }
    };
    let cluster = Cluster::start_as(env, name, nodes, change).await;
    (hidden.into_iter().map(|(_, _, between)| between).collect(), cluster)
}
