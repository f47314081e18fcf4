//! The manager's loop: one node changes the state, stores it, and publishes it; and it watches the others.
//!
//! Events that arrive while a publication is under way wait and are handled together: the failure of a rack costs a few
//! publications, not one for each copy. A node that has the previous state is sent the difference, as in Elasticsearch;
//! others are sent the whole state.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::disk_usage::look_at_all;
use super::manager::{Answer, Manager};
use super::parts::Node;
use crate::core::Core;
use crate::planted;
use crate::state::{self, ClusterState, Event, IndexShardRoutingTable, ShardCopy, StateDiff};
use crate::transport::{CallError, Failure, Publication, Request, Response};

const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
/// Checks without an answer in time after which a node counts as gone; a broken connection counts at once.
const CHECKS_LOST: u32 = 3;

async fn handle(manager: &Manager, core: &Rc<Core>, events: Vec<Event>) -> Vec<Answer> {
    let old = manager.state.borrow().clone();
    let mut new = ClusterState::clone(&old);
    let is_loss = events.iter().any(Event::is_loss);
    let batch = state::apply_all(&mut new, core.env.epoch_ms(), events);
    let answers = |state: &Arc<ClusterState>| -> Vec<Answer> {
        let answer = |one: &Result<(), state::StateError>| {
            one.as_ref().map(|()| state.clone()).map_err(Failure::from)
        };
        batch.accepted.iter().map(answer).collect()
    };
    if batch.changes.is_empty() {
        return answers(&old);
    }
    if core.env.is_planted(planted::TERM_LEFT_TO_ANOTHER) {
        leave_terms(&old, &mut new);
    }
    debug_assert_eq!(state::check(&new), Ok(()));
    let new = Arc::new(new);
    let is_planted = core.env.is_planted(planted::STATE_NOT_WRITTEN) && new.version > 5;
    let written = if is_planted { Ok(()) } else { core.disk.write_state(&new).await };
    if let Err(error) = written {
        // It may be on the disk all the same, where a start would find it.
        let _ = core.disk.write_state(&old).await;
        let reason = "nothing was changed, as the cluster state cannot be stored";
        let failure = Failure::not_stored((500, "process_cluster_event_exception"), reason, &error);
        if is_loss {
            core.loss_not_stored(&failure);
        }
        return batch.accepted.iter().map(|_| Err(failure.clone())).collect();
    }
    *manager.state.borrow_mut() = new.clone();
    publish(core, &old, &new).await;
    manager.published.set(new.version);
    answers(&new)
}

/// The bug [`planted::TERM_LEFT_TO_ANOTHER`]: a primary that was never started leaves its term to the next one. It is
/// planted here because the pure state has no [`world::Env`].
fn leave_terms(old: &ClusterState, new: &mut ClusterState) {
    for (index, shards) in &mut new.routing {
        let Some(before) = old.routing.get(index).filter(|old| !Arc::ptr_eq(old, shards)) else {
            continue;
        };
        for (shard, before) in Arc::make_mut(shards).iter_mut().zip(before.iter()) {
            if before.started_primary().is_none() {
                shard.primary_term = before.primary_term;
            }
        }
    }
}

/// Publishes a state to every present node, and does not wait long for one that is silent: [`watch_nodes`] finds it, or
/// its next check tells it that there is a newer state.
async fn publish(core: &Rc<Core>, old: &Arc<ClusterState>, new: &Arc<ClusterState>) {
    core.accept_state(new.clone());
    let diff = Publication::diff(Arc::new(StateDiff::between(old, new)), new);
    let own = core.name();
    // A node that has just joined is sent the state as the answer to that.
    let others = new.present_nodes().filter(|n| n.name != own && old.present.contains(&n.name));
    let others = others.map(|other| other.transport_address.clone()).collect();
    let without_the_old = publish_to(core, others, diff).await;
    if !without_the_old.is_empty() {
        publish_to(core, without_the_old, Publication::Whole(new.clone())).await;
    }
}

/// Sends a state to these addresses at once, and waits for the answers. Answers with those that have refused it.
async fn publish_to(core: &Core, addresses: Vec<String>, publication: Publication) -> Vec<String> {
    let request = Request::Publish(publication);
    let answers = core.pool.call_each(&addresses, &request, PUBLISH_TIMEOUT).await;
    let answered = addresses.into_iter().zip(answers);
    let refusing = answered.filter(|(_, answer)| matches!(answer, Err(CallError::Failed(_))));
    refusing.map(|(address, _)| address).collect()
}

/// Handles events, all that wait at once, until the node ends.
pub(super) async fn run(node: Node) {
    let manager = node.parts.manager.as_ref().expect("only the manager manages");
    loop {
        something_to_do(&node, manager).await;
        let waiting = std::mem::take(&mut *manager.waiting.borrow_mut());
        let (events, waiters): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        if events.is_empty() {
            continue;
        }
        let answers = handle(manager, node.core(), events).await;
        for (waiter, answer) in waiters.into_iter().zip(answers) {
            // The caller may be gone.
            let _ = waiter.send(answer);
        }
    }
}

/// Waits for an event. The end of the delay of an unassigned copy counts as one.
async fn something_to_do(node: &Node, manager: &Manager) {
    let env = &node.core().env;
    let now_ms = env.epoch_ms();
    let Some(ends_ms) = state::delay_ends_ms(&manager.state(), now_ms) else {
        return manager.came.notified().await;
    };
    let delay = Duration::from_millis((ends_ms - now_ms).max(1));
    tokio::select! {
        biased;
        () = manager.came.notified() => {}
        () = env.sleep(delay) => drop(manager.put(Event::DelayEnded)),
    }
}

/// Waits for the next round of checks, or until a node closes a connection where that is enough.
async fn next_check(core: &Core) {
    let next = core.env.sleep(core.settings().follower_check_interval());
    tokio::pin!(next);
    loop {
        tokio::select! {
            biased;
            () = &mut next => return,
            // It may have been asked for after the wait began.
            () = core.pool.closed_by_other() => if core.settings().checks_on_disconnect() { return },
        }
    }
}

/// Takes nodes that no longer answer out of the cluster, those of one round together; and looks for room on full disks:
/// on all of them as soon as a node joins, as in the field.
pub(super) async fn watch_nodes(node: Node) {
    let manager = node.parts.manager.as_ref().expect("only the manager watches");
    let core = node.core();
    let mut lost: BTreeMap<String, u32> = BTreeMap::new();
    let mut looked = core.env.now();
    let mut looked_at = None;
    // The version of a state in which no copy waits for room.
    let mut nothing_waits_in = None;
    loop {
        next_check(core).await;
        let asked = core.env.now();
        let (state, version) = (manager.state(), manager.published.get());
        let others = state.present_nodes().filter(|other| other.name != core.name());
        let (names, addresses): (Vec<&String>, Vec<String>) =
            others.map(|other| (&other.name, other.transport_address.clone())).unzip();
        let check = Request::FollowerCheck(version);
        let checks = core.pool.call_each(&addresses, &check, CHECK_TIMEOUT).await;
        let mut gone = Vec::new();
        for (name, check) in names.into_iter().zip(checks) {
            let is_gone = match check {
                Ok(Response::Done) => {
                    lost.remove(name);
                    false
                }
                Err(CallError::Broken { .. }) => true,
                _ => {
                    let count = lost.entry(name.clone()).or_default();
                    *count += 1;
                    *count >= CHECKS_LOST
                }
            };
            if is_gone {
                lost.remove(name);
                // Another node may have been waited for, and this one have started again: with that its former life is
                // over.
                if !manager.has_joined_since(asked, name) {
                    gone.push(Event::NodeLeft { node: name.clone() });
                }
            }
        }
        let waits =
            |shard: &IndexShardRoutingTable| shard.copies.iter().any(ShardCopy::waits_for_room);
        let is_due = core.env.now() - looked >= core.settings().info_update_interval();
        let is_enabled = core.settings().disk_threshold_enabled();
        let has_new = |before: &Arc<BTreeSet<String>>| !state.present.is_subset(before);
        if is_enabled && (is_due || looked_at.as_ref().is_none_or(has_new)) {
            gone.push(Event::DisksSeen(Box::new(look_at_all(core, &state).await)));
        }
        looked_at = is_enabled.then(|| state.present.clone());
        if is_due {
            looked = core.env.now();
            let state = manager.state();
            if nothing_waits_in != Some(state.version) {
                let waits = state.shards().any(|(_, _, shard)| waits(shard));
                gone.extend(waits.then_some(Event::LookForRoom));
                nothing_waits_in = (!waits).then_some(state.version);
            }
        }
        let left: Vec<_> = gone.into_iter().map(|event| manager.put(event)).collect();
        for left in left {
            // It fails only where the state cannot be stored; the next round tries again.
            let _ = left.await;
        }
    }
}
