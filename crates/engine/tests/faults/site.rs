//! A cluster whose nodes are killed and started again, as processes are.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::state::ClusterState;
use engine::{Node, NodeConfig};
use world::{Env, Task};

use crate::scenario::Machine;

/// How long a node may take to stop in order before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
/// Until a node that could not start is started again.
const START_AGAIN: Duration = Duration::from_millis(500);

/// A cluster.
pub struct Site {
    env: Env,
    seats: Vec<Seat>,
}

/// The place of a node.
struct Seat {
    config: RefCell<NodeConfig>,
    node: RefCell<Option<Node>>,
    /// Which process of this node it is: a task of an earlier one must not go on.
    life: Cell<u64>,
    is_up: Cell<bool>,
    task: RefCell<Option<Task<()>>>,
    /// The manager's state when it was last killed.
    left: RefCell<Option<Arc<ClusterState>>>,
}

impl Site {
    /// Starts a cluster, and waits until its nodes are there.
    pub async fn start(env: &Env, name: &str, nodes: usize, machines: &[Machine]) -> Rc<Site> {
        let members: Vec<String> = (0..nodes).map(|n| format!("{name}-{n}")).collect();
        for (member, machine) in members.iter().zip(machines) {
            let host = env.host(member);
            let mut model = host.virtual_host_model().expect("the world is virtual");
            model.disk.seek = Duration::from_micros(machine.seek_us);
            model.disk.sync = Duration::from_micros(machine.sync_us);
            model.card_delay = Duration::from_micros(machine.delay_us);
            host.set_host_model(model);
        }
        let seat = |node: &String| Seat {
            config: RefCell::new(NodeConfig {
                transport: env.host(node).any_address(),
                http: env.host(node).any_address(),
                ..NodeConfig::new(node, name, &members, "/data")
            }),
            node: RefCell::default(),
            life: Cell::new(0),
            is_up: Cell::new(false),
            task: RefCell::default(),
            left: RefCell::default(),
        };
        let site = Rc::new(Site { env: env.clone(), seats: members.iter().map(seat).collect() });
        for number in 0..nodes {
            site.clone().bring_up(number);
            while site.node(number).is_none() {
                env.sleep(Duration::from_millis(5)).await;
            }
        }
        site
    }

    pub fn node(&self, number: usize) -> Option<Node> {
        self.seats[number].node.borrow().clone()
    }

    pub fn nodes(&self) -> Vec<Node> {
        (0..self.seats.len()).filter_map(|number| self.node(number)).collect()
    }

    /// Whether the manager counts it among the nodes of the cluster. Without a manager nobody is given up.
    pub fn is_member(&self, number: usize) -> bool {
        let name = &self.seats[number].config.borrow().name;
        self.node(0).is_none_or(|manager| manager.state().present.contains(name))
    }

    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Where a node answers clients, there or not.
    pub fn http(&self, number: usize) -> String {
        self.seats[number].config.borrow().http.clone()
    }

    pub fn transport(&self, number: usize) -> String {
        self.seats[number].config.borrow().transport.clone()
    }

    pub fn host(&self, number: usize) -> Env {
        self.env.host(&self.seats[number].config.borrow().name)
    }

    /// Starts a node, and again until it is there; nothing where it is.
    pub fn bring_up(self: Rc<Self>, number: usize) {
        let seat = &self.seats[number];
        if seat.is_up.replace(true) {
            return;
        }
        seat.life.set(seat.life.get() + 1);
        let life = seat.life.get();
        let env = self.env.clone();
        let site = self.clone();
        let task = env.spawn("keeps a node up", async move { site.keep_up(number, life).await });
        *self.seats[number].task.borrow_mut() = Some(task);
    }

    async fn keep_up(&self, number: usize, life: u64) {
        let seat = &self.seats[number];
        let is_current = || seat.is_up.get() && seat.life.get() == life;
        while is_current() {
            let host = self.host(number);
            if number > 0 {
                seat.config.borrow_mut().manager = Some(self.transport(0));
            }
            let config = seat.config.borrow().clone();
            let env = host.clone();
            let started =
                host.spawn("starts", async move { rest::start(&env, config).await }).await;
            if !is_current() {
                return;
            }
            if let Ok(Ok(node)) = started {
                let mut config = seat.config.borrow_mut();
                config.transport = node.transport_address().to_owned();
                config.http = node.http_address().to_owned();
                *seat.node.borrow_mut() = Some(node);
                return;
            }
            // What could not start is a process that ended.
            self.env.kill_host(&seat.config.borrow().name);
            self.env.sleep(START_AGAIN).await;
        }
    }

    /// `kill -9`.
    pub fn kill(&self, number: usize) {
        let seat = &self.seats[number];
        seat.is_up.set(false);
        seat.life.set(seat.life.get() + 1);
        let node = seat.node.borrow_mut().take();
        if let Some(node) = &node {
            seat.left.replace(Some(node.state()));
        }
        self.env.kill_host(&seat.config.borrow().name);
        drop(node);
    }

    /// Stops a node in order, or kills it if that takes long.
    pub fn stop(self: Rc<Self>, number: usize) {
        let seat = &self.seats[number];
        let Some(node) = seat.node.borrow_mut().take() else { return };
        seat.left.replace(Some(node.state()));
        seat.life.set(seat.life.get() + 1);
        let life = seat.life.get();
        let (site, host) = (self.clone(), self.host(number));
        let stopping = host.spawn("stops", node.stop());
        let task = self.env.spawn("stops a node", async move {
            // However it went: the process is gone.
            let _ = site.env.timeout(STOP_PATIENCE, stopping).await;
            if site.seats[number].life.get() == life {
                site.kill(number);
            }
        });
        *self.seats[number].task.borrow_mut() = Some(task);
    }

    /// The manager's state: what it is, or was when the manager was killed.
    pub fn last_state(&self) -> Option<Arc<ClusterState>> {
        let now = self.node(0).map(|manager| manager.state());
        now.or_else(|| self.seats[0].left.borrow().clone())
    }

    /// Lets nothing pass between a node that is there and all others, or everything again.
    pub fn cut_off(&self, number: usize, cut: bool) {
        if let Some(node) = self.node(number) {
            node.cut_off(cut);
        }
    }

    pub fn pause(&self, number: usize, pauses: bool) {
        self.env.pause_host(&self.seats[number].config.borrow().name, pauses);
    }
}
