//! Whether anything passes between a node and everybody else: a node that is cut off.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The way of a node to all others, and theirs to it. Clones are the same way.
///
/// Cut, it is as a network is that loses every packet: connections stay open, what is under way arrives when it is
/// healed, and who waits is told nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cut: Cell<bool>,
    healed: Notify,
}

impl Way {
    /// Cuts or heals it.
    pub(crate) fn cut(&self, cut: bool) {
        self.0.cut.set(cut);
        if !cut {
            self.0.healed.notify_waiters();
        }
    }

    /// Waits until something passes.
    pub(crate) async fn passes(&self) {
        while self.0.cut.get() {
            self.0.healed.notified().await;
        }
    }
}
