//! Brings up the copies that belong on this node, and takes down those that do not.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

use super::{LocalShard, Node, ShardKey};
use crate::recovery;
use crate::replication;
use crate::state::{ClusterState, CopyState, Event, IndexMeta, ShardCopy};

/// What is looked at.
pub(crate) enum Scope {
    /// All copies here.
    All,
    /// Those of the indices that differ from the state before, are new or are gone: their names, and their UUIDs.
    Of(BTreeSet<String>, BTreeSet<String>),
}

impl Scope {
    fn of_change(old: Option<&ClusterState>, new: &ClusterState) -> Scope {
        let same = |old: &&ClusterState| {
            (&old.persistent, &old.transient) == (&new.persistent, &new.transient)
        };
        let Some(old) = old.filter(same) else { return Scope::All };
        let names = new.changed_since(old);
        let uuids = |state: &ClusterState| -> Vec<String> {
            names.iter().filter_map(|name| Some(state.indices.get(name)?.uuid.clone())).collect()
        };
        let uuids = uuids(old).into_iter().chain(uuids(new)).collect();
        Scope::Of(names, uuids)
    }

    /// Of the copies here those that are looked at.
    pub(crate) fn among<V: Clone>(&self, copies: &BTreeMap<ShardKey, V>) -> Vec<(ShardKey, V)> {
        let both = |(key, copy): (&ShardKey, &V)| (key.clone(), copy.clone());
        match self {
            Scope::All => copies.iter().map(both).collect(),
            Scope::Of(_, uuids) => {
                uuids.iter().flat_map(|uuid| copies.range(all_of(uuid))).map(both).collect()
            }
        }
    }
}

/// The keys of all copies of an index.
fn all_of(uuid: &str) -> RangeInclusive<ShardKey> {
    (uuid.to_owned(), 0)..=(uuid.to_owned(), u32::MAX)
}

/// Runs whenever the state changes. Costs what changed, and a look at each index; after a failure of a copy what belongs on this
/// node.
pub(super) async fn run(node: Node) {
    let mut before: Option<Arc<ClusterState>> = None;
    loop {
        node.inner.reconcile.notified().await;
        if node.inner.stopping.get() {
            return;
        }
        if node.inner.reconciles_all.take() {
            before = None;
        }
        let state = node.state();
        let scope = Scope::of_change(before.as_deref(), &state);
        take_down(&node, &state, &scope).await;
        bring_up(&node, &state, &scope);
        node.following.reconcile(&node, &scope);
        look_after(&node, &scope);
        remove_obsolete(&node, &scope).await;
        before = Some(state);
    }
}

async fn take_down(node: &Node, state: &ClusterState, scope: &Scope) {
    let is_wanted = |shard: &LocalShard| {
        let meta = state.indices.get(&shard.index);
        let routing = meta
            .filter(|meta| meta.uuid == shard.index_uuid)
            .and_then(|_| state.shard(&shard.index, shard.number));
        let copy = routing.and_then(|routing| routing.on_node(&node.config.name));
        // A primary that could not be opened keeps its id when it is placed here again, and the state in between may
        // not have been seen.
        copy.is_some_and(|copy| copy.allocation_id == shard.allocation_id) && !shard.has_given_up()
    };
    let mut unwanted = scope.among(&node.shards.borrow());
    unwanted.retain(|(_, shard)| !is_wanted(shard));
    for (key, _) in &unwanted {
        node.shards.borrow_mut().remove(key);
        node.kept.borrow_mut().insert(key.clone());
    }
    for (_, shard) in unwanted {
        shard.close().await;
    }
}

fn bring_up(node: &Node, state: &ClusterState, scope: &Scope) {
    let here = node.config.name.as_str();
    let up = |index: &str, number: u32, copy: &ShardCopy| {
        if let Some(meta) = state.indices.get(index) {
            bring_up_copy(node, state, (index, meta), number, copy);
        }
    };
    match scope {
        Scope::All => {
            state.copies_on(here).for_each(|(index, number, copy)| up(index, number, copy))
        }
        Scope::Of(names, _) => {
            for (name, shards) in names.iter().filter_map(|name| state.routing.get_key_value(name))
            {
                for (number, shard) in (0..).zip(shards.iter()) {
                    if let Some(copy) = shard.on_node(here) {
                        up(name, number, copy);
                    }
                }
            }
        }
    }
}

/// Has the maintenance look at copies whose settings may have changed, or which are new.
fn look_after(node: &Node, scope: &Scope) {
    match scope {
        Scope::All => node.look_after_all(),
        Scope::Of(..) => {
            let shards = scope.among(&node.shards.borrow());
            if !shards.is_empty() {
                node.in_use.borrow_mut().extend(shards);
                node.note_use();
            }
        }
    }
}

fn bring_up_copy(
    node: &Node,
    state: &ClusterState,
    (index, meta): (&str, &IndexMeta),
    number: u32,
    copy: &ShardCopy,
) {
    let term = state.shard(index, number).map_or(0, |shard| shard.primary_term);
    let key = (meta.uuid.clone(), number);
    let known = node.shards.borrow().get(&key).cloned();
    match (known, &copy.state) {
        (Some(shard), _) => {
            shard.take_settings(meta);
            if shard.set_role(copy.primary, term, copy.is_started()) {
                node.keep("settles a promotion", replication::promoted(node.clone(), shard));
            }
        }
        (None, CopyState::Initializing { recovery }) => {
            let shard = Rc::new(LocalShard::new(index, &meta.uuid, number, copy, term));
            node.kept.borrow_mut().remove(&key);
            node.shards.borrow_mut().insert(key, shard.clone());
            let task = recovery::recover(node.clone(), shard.clone(), recovery.clone());
            shard.set_recovery_task(node.env.spawn("recovers", task));
        }
        // This node has restarted, or closed the copy: it is not there any more.
        (None, CopyState::Started) => {
            let event = Event::ShardFailed {
                index: index.to_owned(),
                shard: number,
                allocation_id: copy.allocation_id.clone(),
                reason: "the copy is not open on its node".to_owned(),
            };
            let node2 = node.clone();
            node.keep("reports a lost copy", async move { node2.report(event).await });
        }
        (None, CopyState::Unassigned { .. }) => {}
    }
}

/// Deletes what no copy needs any more.
async fn remove_obsolete(node: &Node, scope: &Scope) {
    let state = node.state();
    let here = &node.config.name;
    let obsolete = {
        let kept = node.kept.borrow();
        let of = |keys: &mut dyn Iterator<Item = &ShardKey>| keys.cloned().collect::<Vec<_>>();
        match scope {
            Scope::All => state.obsolete(here, state.indices.keys(), &of(&mut kept.iter())),
            Scope::Of(names, uuids) => {
                let mut keys = uuids.iter().flat_map(|uuid| kept.range(all_of(uuid)));
                state.obsolete(here, names, &of(&mut keys))
            }
        }
    };
    for key in obsolete {
        match node.disk.remove_copy(&key.0, key.1).await {
            Ok(()) => {
                node.kept.borrow_mut().remove(&key);
            }
            // It is tried again the next time.
            Err(_) => node.inner.reconciles_all.set(true),
        }
    }
}
