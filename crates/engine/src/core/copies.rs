//! The shard copies that are open on this node: found, noted as used, reported as failed.

use std::rc::Rc;

use policy::failures::{Action, Component, action};

use super::activity::QUIET_AFTER;
use super::shared::Core;
use crate::shard::LocalShard;
use crate::state::Event;
use crate::transport::{Failure, Result};

impl Core {
    /// A copy on this node.
    pub(crate) fn local_shard(&self, index: &str, number: u32) -> Result<Rc<LocalShard>> {
        let state = self.state();
        let meta = state.indices.get(index).ok_or_else(|| Failure::no_such_index(index))?;
        self.local_shard_of((index, &meta.uuid), number)
    }

    /// A copy on this node, of an index by its name and UUID.
    pub(crate) fn local_shard_of(
        &self,
        (index, uuid): (&str, &str),
        number: u32,
    ) -> Result<Rc<LocalShard>> {
        let shard = self.shards.borrow().get(&(uuid.to_owned(), number)).cloned();
        shard.ok_or_else(|| {
            Failure::unavailable(index, number, "has no copy on this node now; try again")
        })
    }

    /// Tells the manager that a copy failed. Reports it only once: a second report could fail the reopened copy, which
    /// may have the same id. Then the copy is opened again, if the state still assigns it to this node.
    pub(crate) async fn fail_copy(&self, shard: &LocalShard, reason: String, disk_full: bool) {
        if shard.failed.replace(true) {
            return;
        }
        let event = Event::ShardFailed {
            index: shard.index.clone(),
            shard: shard.number,
            allocation_id: shard.allocation_id.clone(),
            reason,
            disk_full,
        };
        self.report(event).await;
        shard.failure_reported.set(true);
        self.reconcile_again();
    }

    /// Whether this is the copy that is open here, and not one of an earlier life of its shard.
    pub(crate) fn is_here(&self, shard: &Rc<LocalShard>) -> bool {
        self.shards.borrow().get(shard.key()).is_some_and(|here| Rc::ptr_eq(here, shard))
    }

    /// Does what the table of failures says about an error of a copy's store. The manager is told in a task of its own,
    /// because whoever waits for the store may be gone before the manager has answered.
    pub(crate) fn store_failed(
        self: &Rc<Self>,
        component: Component,
        shard: &Rc<LocalShard>,
        error: &store::Error,
    ) {
        if action(component, error.kind()) == Action::ReopenCopy {
            let (core, shard) = (self.clone(), shard.clone());
            let (reason, disk_full) = (error.to_string(), error.is_disk_full());
            self.keep("reports a failed copy", async move {
                core.fail_copy(&shard, reason, disk_full).await;
            });
        }
    }

    /// Notes that a copy here is written or searched, or that its settings may have changed.
    pub(crate) fn note_use(&self) {
        self.activity.used_at.set(self.env.now());
        self.activity.used.notify_one();
    }

    /// Notes that this copy is written or searched.
    pub(crate) fn note_use_of(&self, shard: &Rc<LocalShard>) {
        let now = self.env.now();
        let before = shard.used_at.replace(Some(now));
        // The maintenance looks at a copy that was in use a moment ago anyway.
        if before.is_none_or(|before| now - before > QUIET_AFTER / 2) {
            self.activity.in_use.borrow_mut().insert(shard.key().clone(), shard.clone());
        }
        self.note_use();
    }

    /// Has the maintenance look at every copy the next time, also at idle ones.
    pub(crate) fn maintain_all(&self) {
        self.activity.all_are_due.set(true);
        self.note_use();
    }
}
