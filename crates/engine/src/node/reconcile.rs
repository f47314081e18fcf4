//! Brings up the copies that belong on this node, and takes down those that do not.

use std::rc::Rc;

use super::{LocalShard, Node, ShardKey};
use crate::recovery;
use crate::replication;
use crate::state::{CopyState, Event};

/// Runs whenever the state changes.
pub(super) async fn run(node: Node) {
    loop {
        node.inner.reconcile.notified().await;
        if node.inner.stopping.get() {
            return;
        }
        take_down(&node).await;
        bring_up(&node);
        remove_obsolete(&node).await;
    }
}

async fn take_down(node: &Node) {
    let state = node.state();
    let unwanted: Vec<Rc<LocalShard>> = {
        let mut shards = node.shards.borrow_mut();
        let wanted = |shard: &LocalShard| {
            state.copies_on(&node.config.name).any(|(index, number, copy)| {
                index == shard.index
                    && number == shard.number
                    && copy.allocation_id == shard.allocation_id
            })
        };
        let gone: Vec<ShardKey> =
            shards.iter().filter(|(_, shard)| !wanted(shard)).map(|(key, _)| key.clone()).collect();
        gone.iter().filter_map(|key| shards.remove(key)).collect()
    };
    for shard in unwanted {
        shard.close().await;
    }
}

fn bring_up(node: &Node) {
    let state = node.state();
    for (index, number, copy) in state.copies_on(&node.config.name) {
        let Some(meta) = state.indices.get(index) else { continue };
        let term = state.shard(index, number).map_or(0, |shard| shard.primary_term);
        let key = (meta.uuid.clone(), number);
        let known = node.shards.borrow().get(&key).cloned();
        match (known, &copy.state) {
            (Some(shard), _) => {
                if let Ok(store) = shard.store() {
                    let durability = meta.typed_settings().translog_durability();
                    store.set_durability(replication::store_durability(durability));
                }
                if shard.set_role(copy.primary, term, copy.is_started()) {
                    node.keep("settles a promotion", replication::promoted(node.clone(), shard));
                }
            }
            (None, CopyState::Initializing { recovery }) => {
                let shard = Rc::new(LocalShard::new(index, &meta.uuid, number, copy, term));
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
}

/// Deletes what no copy needs any more.
async fn remove_obsolete(node: &Node) {
    let state = node.state();
    for found in node.disk.found_copies().await {
        let key = (found.index_uuid.clone(), found.shard);
        let open = node.shards.borrow().contains_key(&key);
        if !open && state.is_obsolete(&node.config.name, &found.index_uuid, found.shard) {
            // What cannot be removed now is found again the next time.
            let _ = node.disk.remove_copy(&found.index_uuid, found.shard).await;
        }
    }
}
