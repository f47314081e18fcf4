//! Brings up the copies that belong on this node, and takes down those that do not.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{LocalShard, Node, ShardKey};
use crate::recovery;
use crate::replication;
use crate::state::{ClusterState, CopyState, Event, IndexMeta, ShardCopy};

/// Runs whenever the state changes. Costs what belongs on this node, however large the cluster is.
pub(super) async fn run(node: Node) {
    loop {
        node.inner.reconcile.notified().await;
        if node.inner.stopping.get() {
            return;
        }
        take_down(&node).await;
        bring_up(&node);
        node.following.reconcile(&node);
        remove_obsolete(&node).await;
    }
}

async fn take_down(node: &Node) {
    let unwanted: Vec<Rc<LocalShard>> = {
        let state = node.state();
        let wanted: BTreeMap<(&str, u32), &ShardCopy> = state
            .copies_on(&node.config.name)
            .filter_map(|(index, number, copy)| {
                Some(((state.indices.get(index)?.uuid.as_str(), number), copy))
            })
            .collect();
        let is_wanted = |shard: &LocalShard| {
            let copy = wanted.get(&(shard.index_uuid.as_str(), shard.number));
            // A primary that could not be opened keeps its id when it is placed here again, and the state in between may
            // not have been seen.
            copy.is_some_and(|copy| copy.allocation_id == shard.allocation_id)
                && !shard.has_given_up()
        };
        let mut shards = node.shards.borrow_mut();
        let unwanted = shards.iter().filter(|(_, shard)| !is_wanted(shard));
        let gone: Vec<ShardKey> = unwanted.map(|(key, _)| key.clone()).collect();
        node.kept.borrow_mut().extend(gone.iter().cloned());
        gone.iter().filter_map(|key| shards.remove(key)).collect()
    };
    for shard in unwanted {
        shard.close().await;
    }
}

fn bring_up(node: &Node) {
    let state = node.state();
    for (index, number, copy) in state.copies_on(&node.config.name) {
        if let Some(meta) = state.indices.get(index) {
            bring_up_copy(node, &state, (index, meta), number, copy);
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
            node.keep("reports a lost copy", async move {
                let _ = node2.submit(event).await;
            });
        }
        (None, CopyState::Unassigned { .. }) => {}
    }
}

/// Deletes what no copy needs any more.
async fn remove_obsolete(node: &Node) {
    let obsolete: Vec<ShardKey> = {
        let (state, kept) = (node.state(), node.kept.borrow());
        let obsolete = |key: &&ShardKey| state.is_obsolete(&node.config.name, &key.0, key.1);
        kept.iter().filter(obsolete).cloned().collect()
    };
    for key in obsolete {
        // What cannot be removed now is tried again the next time.
        if node.disk.remove_copy(&key.0, key.1).await.is_ok() {
            node.kept.borrow_mut().remove(&key);
        }
    }
}
