//! How a node starts, and how it ends.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use world::{Env, LocalFuture};

use super::manager::{Manager, version_of};
use super::parts::{ManagerSeen, Node, Parts};
use super::{dangling, dispatch, maintenance, managing, membership, reconcile, stored_indices};
use crate::core::{ChangedCopies, Core, NodeConfig, Submit, Upward};
use crate::error::Error;
use crate::following::{AutoFollowing, FollowService, FollowTasks, auto_follow};
use crate::recovery::{self, RecoveryService};
use crate::remote::RemoteClusterService;
use crate::search::{self, SearchService};
use crate::shard::NodeDisk;
use crate::state::ClusterState;
use crate::transport::{self, Envelope, Failure, NodeRow, Result};

impl Node {
    /// Starts a node: listens for other nodes, joins its cluster, and brings up the copies that belong on it. Clients
    /// are served at `http`; `serve` is called once there is a node to serve them with.
    pub fn start<'a>(
        env: &'a Env,
        config: NodeConfig,
        http: String,
        serve: Box<dyn FnOnce(&Node) + 'a>,
    ) -> LocalFuture<'a, Result<Node, Error>> {
        Box::pin(Node::start_serving(env, config, http, serve))
    }

    async fn start_serving(
        env: &Env,
        config: NodeConfig,
        http: String,
        serve: Box<dyn FnOnce(&Node) + '_>,
    ) -> Result<Node, Error> {
        let disk = NodeDisk::open(env, &config.name, &config.data).await?;
        disk.remove_empty_indices(&config.name).await?;
        let listen = |source| Error::Listen { node: config.name.clone(), source };
        let transport = env.listen::<Envelope>(&config.transport).await.map_err(listen)?;
        let row = NodeRow {
            name: config.name.clone(),
            cluster: config.cluster.clone(),
            transport: config.publish.clone().unwrap_or_else(|| transport.address().to_owned()),
            http,
            attributes: config.attributes.clone(),
        };
        let manager = match config.manager {
            None => Some(Manager::open(env, &config, &disk).await?),
            Some(_) => None,
        };
        let state = ClusterState::new(&config.cluster, [], || env.random_u64());
        let rotation_seed = config.rotation_seed.unwrap_or_else(|| env.random_u64());
        let core = Core::new(env, config, row, disk, state);
        let node = Node::of_parts(core, manager, rotation_seed);
        let core = node.core().clone();
        let partition = core.pool.partition().clone();
        let (now, later) = (node.clone(), node.clone());
        let handlers = transport::Handlers {
            at_once: move |request: &_| dispatch::at_once(&now, request),
            in_time: move |request| {
                let node = later.clone();
                async move { dispatch::handle(&node, request).await }
            },
            warn: core.pool.warn(),
        };
        let serving = transport::serve(env.clone(), partition, transport, handlers);
        core.keep("transport", serving);
        serve(&node);
        core.keep("reconciles", reconcile::run(node.clone()));
        core.keep(
            "writes what indices are",
            stored_indices::write(core.clone(), node.parts.stored_indices.clone()),
        );
        core.keep("maintains shards", maintenance::run(core.clone()));
        core.keep("lets views go", search::expire(node.search().clone()));
        core.keep("ends idle sessions", recovery::expire_sessions(node.parts.recovery.clone()));
        if node.parts.manager.is_some() {
            core.keep("manages", managing::run(node.clone()));
            core.keep("watches nodes", managing::watch_nodes(node.clone()));
            core.keep("follows by patterns", auto_follow(node.parts.auto_following.clone()));
        }
        if let Err(error) = membership::join(&node).await {
            // Its tasks hold it: nobody else would give up its addresses and its directory.
            node.stop().await;
            return Err(error);
        }
        node.remotes().begin();
        dangling::say(&core).await;
        dangling::sweep(&node).await;
        core.keep("stays a member", membership::stay(node.clone()));
        Ok(node)
    }

    fn of_parts(core: Rc<Core>, manager: Option<Manager>, rotation_seed: u64) -> Node {
        let remotes = RemoteClusterService::new(&core);
        let following = FollowService::new(&core, &remotes);
        let parts = Rc::new(Parts {
            manager,
            manager_seen: Cell::new(ManagerSeen::At(core.env.now())),
            search: SearchService::new(&core, rotation_seed),
            recovery: RecoveryService::new(&core, &remotes),
            follow_tasks: FollowTasks::new(following.clone()),
            auto_following: AutoFollowing::new(following.clone()),
            following,
            remotes,
            closed_copies: RefCell::default(),
            stored_indices: Rc::default(),
            stopping: Cell::new(false),
            core,
        });
        let node = Node { parts };
        if node.core().upward.set(node.upward()).is_err() {
            unreachable!("a node is made once");
        }
        node
    }

    /// The functions by which features call the node. They hold it weakly: a feature would keep the whole node alive.
    fn upward(&self) -> Upward {
        let weak = Rc::downgrade(&self.parts);
        let with = |act: fn(&Node)| -> Box<dyn Fn()> {
            let weak = weak.clone();
            Box::new(move || {
                if let Ok(node) = upgrade(&weak) {
                    act(&node);
                }
            })
        };
        let (asked, told) = (weak.clone(), weak.clone());
        let manages = self.parts.manager.is_some();
        Upward {
            dispatch: Box::new(move |request| {
                let node = upgrade(&asked);
                Box::pin(async move { dispatch::handle(&node?, request).await })
            }),
            submit: manages.then(|| {
                let submit: Submit = Box::new(move |event| {
                    let node = upgrade(&told);
                    Box::pin(
                        async move { version_of(dispatch::manager(&node?)?.submit(event).await) },
                    )
                });
                submit
            }),
            remotes_changed: with(|node| node.parts.remotes.restart()),
            promoted: with(|node| node.parts.follow_tasks.reconcile(&ChangedCopies::All)),
        }
    }

    /// Stops: closes every copy in order, ends every task, and gives up the addresses.
    pub fn stop(self) -> LocalFuture<'static, ()> {
        Box::pin(async move {
            let Parts { core, follow_tasks, recovery, remotes, stopping, .. } = &*self.parts;
            stopping.set(true);
            follow_tasks.stop();
            let shards = std::mem::take(&mut *core.shards.borrow_mut());
            for shard in shards.into_values() {
                shard.close().await;
            }
            recovery.sessions.clear();
            core.end_tasks().await;
            // Until then a state may come that has other remote clusters.
            remotes.stop().await;
            core.pool.close();
            core.disk.release();
        })
    }
}

fn upgrade(parts: &Weak<Parts>) -> Result<Node> {
    let gone = || Failure::new(503, "node_closed_exception", "the node has ended");
    parts.upgrade().map(|parts| Node { parts }).ok_or_else(gone)
}

/// Refuses addresses that others than this machine can reach: transport has no authentication, and REST only where
/// there are credentials.
pub fn check_addresses(env: &Env, config: &NodeConfig) -> Result<(), Error> {
    if env.is_virtual() {
        return Ok(());
    }
    let open = config.credentials.is_none().then_some(&config.http);
    for address in [&config.transport].into_iter().chain(&config.publish).chain(open) {
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        if host != "localhost" && !ip.is_ok_and(|ip| ip.is_loopback()) {
            let node = config.name.clone();
            return Err(Error::NotLoopback { node, address: address.clone() });
        }
    }
    Ok(())
}
