//! Puts the copies of a shard in the order in which they are asked, counts the request to the first, and sends probes.

use super::service::SearchService;
use std::rc::Rc;
use std::time::Duration;

use world::Time;

use super::asked_shards::AskedShard;
use super::in_flight::InFlight;
use super::oracle::Truth;
use super::preference::Rule;
use super::replica_selection::ReplicaSelection;
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
    service: &Rc<SearchService>,
    selection: ReplicaSelection,
    asked: &AskedShard,
    rule: &Rule,
) -> Result<Chosen, Later> {
    let random = service.core.env.random_u64();
    let (index, shard) = (asked.index.as_str(), asked.shard);
    let choice = asked.order(rule, service.core.name(), |copies| match selection {
        ReplicaSelection::Policy(policy) => {
            let question = Question { index, shard, copies, random };
            service.selector.borrow_mut().choose(policy, service.core.env.now(), question)
        }
        ReplicaSelection::Oracle => match service.core.env.virtual_shared::<Truth>() {
            Some(truth) => {
                truth.order(&service.core.env, copies, service.pool.stats().size, random)
            }
            // Refused before it comes here.
            None => Choice::Ask((0..copies.len()).collect()),
        },
    });
    let order: Vec<String> = match choice {
        Choice::Ask(places) => places.into_iter().map(|at| asked.nodes[at].clone()).collect(),
        Choice::WaitUntil(when) => return Err(Later(when)),
    };
    probe(service, selection, asked);
    let first = order.first().map(|name| InFlight::new(service, name));
    Ok(Chosen { order, first })
}

/// Probes some nodes of the shard's copies, where the policy wants that. Nobody waits for the answers.
fn probe(service: &Rc<SearchService>, selection: ReplicaSelection, asked: &AskedShard) {
    let ReplicaSelection::Policy(policy) = selection else { return };
    let names: Vec<&str> = asked.nodes.iter().map(String::as_str).collect();
    let servers = service.core.state().present.len();
    for at in service.selector.borrow().probes(policy, &names, || service.core.env.random_u64()) {
        let (service2, name) = (service.clone(), asked.nodes[at].clone());
        let probing = async move {
            let Some(address) = service2.core.address_of(&name) else { return };
            let answer =
                service2.core.call(&address, Class::Search, Request::Probe, PROBE_TIMEOUT).await;
            if let Ok(Response::Probed(answer)) = answer {
                let now = service2.core.env.now();
                service2.selector.borrow_mut().probed(now, &name, answer, servers);
            }
        };
        service.core.env.spawn("probes a node", probing).detach();
    }
}
