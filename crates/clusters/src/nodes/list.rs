//! The nodes that were started here: which there are, which of them run, and which is asked next.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use world::Env;

use crate::fault::{FaultKind, Strain};
use crate::http::{Answer, RestClient, is_idempotent};
use crate::topology::NodeHandle;
use crate::{Asker, Error, Result};

/// So many nodes are asked in turn: whoever is asked has connections to all others from then on, so that all of a
/// thousand would have a million.
const IN_TURN: usize = 8;
/// How long the nodes of a cluster may take to find each other once they listen.
const JOIN_PATIENCE: Duration = Duration::from_secs(30);
/// How long a node may take to say who has joined, of which it may wait 5 s for others.
const JOIN_ANSWER_PATIENCE: Duration = Duration::from_secs(8);
/// The pause before that is asked again.
const JOIN_PAUSE: Duration = Duration::from_millis(200);

/// What runs a node.
pub(crate) trait RunningNode: Sized {
    /// Ends it in order, and waits for that.
    async fn stop(self);

    /// Its process, by its id; none where it is no process.
    fn process_id(&self) -> Option<u32> {
        None
    }

    /// Why it has ended, where it has ended by itself.
    async fn failure(&mut self) -> Option<Error> {
        None
    }
}

/// A node that was started here. `P` is what runs it, `C` what it is started with.
pub(crate) struct StartedNode<P, C> {
    /// The name that requests to it are addressed to: its cluster, or its site of a cluster that spans a link.
    pub(crate) site: String,
    pub(crate) handle: NodeHandle,
    /// The address that leads to its transport through the link.
    pub(crate) through_link: Option<String>,
    /// What it is started with again. Its addresses stay the same, because other nodes know them by now.
    pub(crate) config: C,
    /// None while it is down.
    pub(crate) running: Option<P>,
}

/// The nodes of a target, in the order in which they were started.
pub(crate) struct Nodes<P, C> {
    /// The target's name, for messages.
    pub(crate) target: &'static str,
    /// Asks them.
    pub(crate) client: RestClient,
    list: Vec<StartedNode<P, C>>,
    next: Cell<usize>,
    /// Notified when a node has ended by itself.
    pub(crate) ends: Rc<Notify>,
}

impl<P, C> Nodes<P, C> {
    /// A list without nodes; those that are added are asked through `client`.
    pub(crate) fn new(target: &'static str, client: RestClient) -> Self {
        let (list, next, ends) = (Vec::new(), Cell::default(), Rc::default());
        Nodes { target, client, list, next, ends }
    }

    pub(crate) fn add(&mut self, node: StartedNode<P, C>) {
        self.list.push(node);
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &StartedNode<P, C>> {
        self.list.iter()
    }

    /// Removes the node that was started last. The manager of a cluster is started first, so it goes last.
    pub(crate) fn pop(&mut self) -> Option<StartedNode<P, C>> {
        self.list.pop()
    }

    pub(crate) fn find(&mut self, name: &str) -> Result<&mut StartedNode<P, C>> {
        let found = self.list.iter_mut().find(|node| node.handle.name == name);
        found.ok_or_else(|| Error::Unknown { what: "node", name: name.to_owned() })
    }

    /// What runs a node that is up.
    pub(crate) fn find_running(&mut self, name: &str) -> Result<&mut P> {
        let down = || Error::Unknown { what: "running node", name: name.to_owned() };
        self.find(name)?.running.as_mut().ok_or_else(down)
    }

    /// What a node that is down was started with.
    pub(crate) fn find_down(&mut self, name: &str) -> Result<&C> {
        let node = self.find(name)?;
        match node.running.is_some() {
            true => Err(Error::Unknown { what: "killed node", name: name.to_owned() }),
            false => Ok(&node.config),
        }
    }

    /// The nodes of a cluster, or of a site.
    pub(crate) fn of<'a>(&'a self, site: &'a str) -> impl Iterator<Item = &'a StartedNode<P, C>> {
        self.list.iter().filter(move |node| node.site == site)
    }

    /// The nodes of a cluster that run.
    pub(crate) fn running(&self, cluster: &str) -> Vec<NodeHandle> {
        let running = self.of(cluster).filter(|node| node.running.is_some());
        running.map(|node| node.handle.clone()).collect()
    }

    /// Transport addresses of a cluster's nodes as the other side of the link sees them.
    pub(crate) fn seeds(&self, cluster: &str) -> Vec<String> {
        let nodes = self.of(cluster);
        nodes
            .map(|node| node.through_link.as_ref().unwrap_or(&node.handle.transport).clone())
            .collect()
    }

    /// A client that asks the nodes that run now, of which there must be one.
    pub(crate) fn asker(&self, cluster: &str, limit: Duration) -> Result<Asker> {
        let addresses: Vec<String> =
            self.running(cluster).into_iter().map(|node| node.http).collect();
        match addresses.is_empty() {
            true => Err(Error::NoNode { cluster: cluster.to_owned() }),
            false => Ok(Asker::of_nodes(self.client.another().with_limit(limit), addresses)),
        }
    }

    /// Asks the next of the first nodes in turn; the others where it does not answer.
    pub(crate) async fn ask(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        let nodes = self.running(cluster);
        let turn = self.next.get();
        self.next.set(turn.wrapping_add(1));
        let first = turn % nodes.len().clamp(1, IN_TURN);
        let mut failure = Error::NoNode { cluster: cluster.to_owned() };
        for n in 0..nodes.len() {
            let node = &nodes[(first + n) % nodes.len()];
            match self.client.send(&node.http, method, path, body.clone()).await {
                Err(error @ Error::Connection { .. }) => failure = error,
                // Another node may be asked the same only if doing it twice does no harm: a bulk request
                // would index its documents twice.
                Err(error @ Error::Broken { .. }) if is_idempotent(method) => failure = error,
                other => return other,
            }
        }
        Err(failure)
    }

    /// The refusal of a strain that this target does not have.
    pub(crate) fn not_strained(&self, node: &str, strain: Strain) -> Error {
        let what = format!("have {node} strain itself");
        Error::NoFault {
            target: self.target,
            what,
            why: format!("{strain:?} is not for its nodes"),
        }
    }

    /// The refusal of a fault that this target does not have.
    pub(crate) fn refused(&self, node: &str, fault: FaultKind) -> Error {
        let what = format!("have {node} {fault}");
        Error::NoFault { target: self.target, what, why: String::new() }
    }
}

impl<P: RunningNode, C> Nodes<P, C> {
    /// Ends a node in order; nothing where it is down.
    pub(crate) async fn stop(&mut self, name: &str) -> Result<()> {
        if let Some(running) = self.find(name)?.running.take() {
            running.stop().await;
        }
        Ok(())
    }

    /// The process of a node that runs.
    pub(crate) fn process_id(&self, name: &str) -> Option<u32> {
        let node = self.list.iter().find(|node| node.handle.name == name)?;
        node.running.as_ref()?.process_id()
    }

    /// Waits until so many nodes of a cluster have joined. Fails as soon as a node has ended by itself; otherwise, in
    /// the end, as the last question did.
    pub(crate) async fn wait_until_joined(
        &mut self,
        env: &Env,
        cluster: &str,
        nodes: usize,
    ) -> Result<()> {
        let path = format!("/_cluster/health?wait_for_nodes={nodes}&timeout=5s");
        let ends = self.ends.clone();
        let not_joined = |joined| Error::NotJoined { cluster: cluster.to_owned(), joined, nodes };
        let mut failure = not_joined(0);
        let give_up = env.now() + JOIN_PATIENCE;
        while env.now() < give_up {
            let asked = self.ask(cluster, "GET", &path, Bytes::new());
            let answered = tokio::select! {
                biased;
                () = ends.notified() => None,
                answered = env.timeout(JOIN_ANSWER_PATIENCE, asked) => answered.ok(),
            };
            if let Some(ended) = self.failed().await {
                return Err(ended);
            }
            match answered {
                Some(Ok(answer)) => {
                    let joined = answer.json()?["number_of_nodes"].as_u64().unwrap_or(0);
                    if joined >= nodes as u64 {
                        return Ok(());
                    }
                    failure = not_joined(joined);
                }
                // Before a manager is elected the answer is an error.
                Some(Err(error)) => failure = error,
                None => {}
            }
            env.sleep(JOIN_PAUSE).await;
        }
        Err(failure)
    }

    /// The first node that has ended by itself, as the error that it is.
    pub(crate) async fn failed(&mut self) -> Option<Error> {
        Some(self.first_failed().await?.1)
    }

    /// As [`Nodes::failed`], with its name; from now on it is down.
    pub(crate) async fn take_failed(&mut self) -> Option<(String, Error)> {
        let (node, error) = self.first_failed().await?;
        node.running = None;
        Some((node.handle.name.clone(), error))
    }

    async fn first_failed(&mut self) -> Option<(&mut StartedNode<P, C>, Error)> {
        for node in &mut self.list {
            if let Some(running) = &mut node.running
                && let Some(error) = running.failure().await
            {
                return Some((node, error));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use rest::RestMessage;

    use super::*;

    /// A node that ends when it is told to.
    struct Ending(Rc<Cell<bool>>);

    impl RunningNode for Ending {
        async fn stop(self) {}

        async fn failure(&mut self) -> Option<Error> {
            let what = "ended by itself".to_owned();
            let error = Error::Node { node: "a-0".to_owned(), what, stderr: Vec::new() };
            self.0.get().then_some(error)
        }
    }

    /// Waits for two nodes where the only one accepts questions and answers none; it ends after a while where one is
    /// given. Returns the error, and when it came.
    async fn wait_for_two(env: &Env, ends_after: Option<Duration>) -> (Error, Duration) {
        let host = env.host("a");
        let listener = host.listen::<RestMessage>("a:9200").await.unwrap();
        let mut nodes = Nodes::new("virtual", RestClient::new(env));
        let http = listener.address().to_owned();
        let handle = NodeHandle { name: "a-0".to_owned(), http, transport: String::new() };
        let ended = Rc::new(Cell::new(false));
        let (through_link, running) = (None, Some(Ending(ended.clone())));
        let site = "a".to_owned();
        nodes.add(StartedNode { site, handle, through_link, config: (), running });
        let (ends, own) = (nodes.ends.clone(), env.clone());
        let _end = env.spawn("ends", async move {
            if let Some(after) = ends_after {
                own.sleep(after).await;
                ended.set(true);
                ends.notify_one();
            }
        });
        let begun = env.now();
        let error = nodes.wait_until_joined(env, "a", 2).await.unwrap_err();
        (error, env.now() - begun)
    }

    #[test]
    fn a_node_that_ends_before_others_have_joined_is_noticed_at_once() {
        world::virtual_world::run(1, async |env| {
            let (error, after) = wait_for_two(&env, Some(Duration::from_secs(2))).await;
            assert!(matches!(error, Error::Node { .. }), "{error}");
            assert_eq!(after, Duration::from_secs(2));
        });
    }

    #[test]
    fn a_node_that_does_not_answer_is_not_waited_for_longer_than_for_its_joining() {
        world::virtual_world::run(1, async |env| {
            let (error, after) = wait_for_two(&env, None).await;
            assert!(matches!(error, Error::NotJoined { joined: 0, .. }), "{error}");
            assert!(after < JOIN_PATIENCE + JOIN_ANSWER_PATIENCE + JOIN_PAUSE, "{after:?}");
        });
    }
}
