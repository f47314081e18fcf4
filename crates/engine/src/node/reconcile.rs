//! Brings up the copies that belong on this node, and takes down those that do not.

use std::collections::{BTreeMap, BTreeSet};
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

    pub(crate) fn holds(&self, key: &ShardKey) -> bool {
        match self {
            Scope::All => true,
            Scope::Of(_, uuids) => uuids.contains(&key.0),
        }
    }

    /// Of the copies here those that are looked at.
    pub(crate) fn among(
        &self,
        shards: &BTreeMap<ShardKey, Rc<LocalShard>>,
    ) -> Vec<(ShardKey, Rc<LocalShard>)> {
        let both = |(key, shard): (&ShardKey, &Rc<LocalShard>)| (key.clone(), shard.clone());
        match self {
            Scope::All => shards.iter().map(both).collect(),
            Scope::Of(_, uuids) => {
                let of_index =
                    |uuid: &String| shards.range((uuid.clone(), 0)..=(uuid.clone(), u32::MAX));
                uuids.iter().flat_map(of_index).map(both).collect()
            }
        }
    }
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
        remove_obsolete(&node).await;
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
async fn remove_obsolete(node: &Node) {
    let obsolete = node.state().obsolete(&node.config.name, &node.kept.borrow());
    for key in obsolete {
        // What cannot be removed now is tried again the next time.
        if node.disk.remove_copy(&key.0, key.1).await.is_ok() {
            node.kept.borrow_mut().remove(&key);
        }
    }
}
