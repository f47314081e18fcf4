//! Puts the copies of a shard in the order in which they are asked, counts the request to the first, and sends probes.

use std::time::Duration;

use world::Time;

use super::ReplicaSelection;
use super::in_flight::InFlight;
use super::oracle::Truth;
use super::preference::Rule;
use super::targets::Target;
use crate::node::Node;
use crate::transport::{Class, Request, Response};
use policy::selection::{Choice, Question};

/// An answer to a probe that takes longer is out of date.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// What was chosen.
pub(super) struct Chosen {
    /// Nodes in the order in which they are asked.
    pub(super) order: Vec<String>,
    /// The request to the first of them.
    pub(super) first: Option<InFlight>,
}

/// The rate control of the policy allows no request before this moment.
pub(super) struct Later(pub(super) Time);

/// Chooses for a shard.
pub(super) fn choose(
    node: &Node,
    selection: ReplicaSelection,
    target: &Target,
    rule: &Rule,
) -> Result<Chosen, Later> {
    let random = node.env.random_u64();
    let (index, shard) = (target.index.as_str(), target.shard);
    let choice = target.order(rule, node.name(), |copies| match selection {
        ReplicaSelection::Policy(policy) => {
            let question = Question { index, shard, copies, random };
            node.search.selector.borrow_mut().choose(policy, node.env.now(), question)
        }
        ReplicaSelection::Oracle => match node.env.virtual_shared::<Truth>() {
            Some(truth) => truth.order(&node.env, copies, node.search.pool.size(), random),
            // Refused before it comes here.
            None => Choice::Ask((0..copies.len()).collect()),
        },
    });
    let order: Vec<String> = match choice {
        Choice::Ask(places) => places.into_iter().map(|at| target.nodes[at].clone()).collect(),
        Choice::WaitUntil(when) => return Err(Later(when)),
    };
    probe(node, selection, target);
    let first = order.first().map(|name| InFlight::new(node, name));
    Ok(Chosen { order, first })
}

/// Probes some nodes of the shard's copies, where the policy asks for it. The search does not wait for the answers.
fn probe(node: &Node, selection: ReplicaSelection, target: &Target) {
    let ReplicaSelection::Policy(policy) = selection else { return };
    let names: Vec<&str> = target.nodes.iter().map(String::as_str).collect();
    let servers = node.state().present.len();
    for at in node.search.selector.borrow().probes(policy, &names, || node.env.random_u64()) {
        let (node2, name) = (node.clone(), target.nodes[at].clone());
        let probing = async move {
            let Some(address) = node2.address_of(&name) else { return };
            let answer = node2.call(&address, Class::Search, Request::Probe, PROBE_TIMEOUT).await;
            if let Ok(Response::Probed(answer)) = answer {
                let now = node2.env.now();
                node2.search.selector.borrow_mut().probed(now, &name, answer, servers);
            }
        };
        node.env.spawn("probes a node", probing).detach();
    }
}
