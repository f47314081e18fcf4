//! A node that is cut off from all others.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// Whether messages pass between a node and all others. Clones share it.
///
/// A partition is like a network that loses every packet: connections stay open without an error, and messages that are
/// under way arrive once it is healed.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkPartition(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cut: Cell<bool>,
    healed: Notify,
}

impl NetworkPartition {
    /// Cuts the node off, or heals that.
    pub(crate) fn cut(&self, cut: bool) {
        self.0.cut.set(cut);
        if !cut {
            self.0.healed.notify_waiters();
        }
    }

    /// Waits until messages pass.
    pub(crate) async fn passes(&self) {
        while self.0.cut.get() {
            self.0.healed.notified().await;
        }
    }
}
