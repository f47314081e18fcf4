//! The sessions that are open on the node that is read.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use policy::failures::GONE;
use store::{Shard, Snapshot};
use tokio::sync::Notify;
use world::Time;

use crate::core::Throttle;
use crate::shard::LocalShard;
use crate::transport::{Failure, Result, SessionKind};

/// The sessions that are open on a node.
pub(crate) struct Sessions {
    next_id: Cell<u64>,
    pub(super) open: RefCell<BTreeMap<u64, Rc<Session>>>,
    /// A session was opened.
    pub(super) opened: Notify,
    /// Chunks that are asked for and not read yet.
    pub(super) reading: Cell<usize>,
}

/// A recovery that reads from this node.
pub(super) struct Session {
    pub(super) shard: Rc<LocalShard>,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) kind: SessionKind,
    /// Drawn by the target.
    pub(super) key: u64,
    pub(super) _kept: KeptOps,
    pub(super) used: Cell<Time>,
}

/// Retains operations in the log until it is dropped. A session that is being opened holds one, too, so that a session
/// that fails to open retains nothing.
pub(super) struct KeptOps {
    shard: Rc<LocalShard>,
    lease: String,
}

impl KeptOps {
    /// Retains nothing yet: see [`KeptOps::from`].
    pub(super) fn new(shard: &Rc<LocalShard>, lease: String) -> Self {
        KeptOps { shard: shard.clone(), lease }
    }

    /// Keeps operations from this one on.
    pub(super) fn from(&self, store: &Shard, seq_no: u64) {
        store.retain_ops_from(&self.lease, Some(seq_no));
    }
}

impl Drop for KeptOps {
    fn drop(&mut self) {
        if let Ok(store) = self.shard.store() {
            store.retain_ops_from(&self.lease, None);
        }
    }
}

impl Sessions {
    /// None yet; ids are counted from `first` on.
    pub(super) fn new(first: u64) -> Self {
        Sessions {
            next_id: Cell::new(first),
            open: RefCell::default(),
            opened: Notify::new(),
            reading: Cell::new(0),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.replace(self.next_id.get().wrapping_add(1))
    }

    pub(crate) fn clear(&self) {
        let open = std::mem::take(&mut *self.open.borrow_mut());
        drop(open);
    }

    /// An open session, which counts as used at this moment.
    pub(super) fn get(&self, now: Time, id: u64) -> Result<Rc<Session>> {
        let session = self.open.borrow().get(&id).cloned().ok_or_else(|| {
            let reason =
                format!("there is no recovery session [{id}]; it was idle for too long, or closed");
            Failure::new(404, GONE, reason)
        })?;
        session.used.set(now);
        Ok(session)
    }

    /// Waits for the session with a key.
    pub(super) async fn keyed(&self, key: u64) -> u64 {
        loop {
            let opened = self.opened.notified();
            let found = {
                let open = self.open.borrow();
                open.iter().find(|(_, session)| session.key == key).map(|(id, _)| *id)
            };
            match found {
                Some(id) => return id,
                None => opened.await,
            }
        }
    }

    /// Whether all sessions together read no more than a chunk each.
    pub(crate) fn reads_are_light(&self) -> bool {
        self.reading.get() <= self.count()
    }

    /// Recoveries that read from this node now.
    pub(crate) fn count(&self) -> usize {
        self.open.borrow().len()
    }
}

impl Session {
    pub(super) fn throttle(&self) -> Throttle {
        match self.kind {
            SessionKind::Peer { .. } => Throttle::Peer,
            SessionKind::Remote { .. } => Throttle::Ccr,
        }
    }
}
