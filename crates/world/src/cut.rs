//! Whether a link is cut; those that wait for it to heal.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Notify;

/// A switch that tasks can wait on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut {
    inner: Rc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    cut: Cell<bool>,
    healed: Notify,
    damage: RefCell<u32>,
}

impl Cut {
    pub(crate) fn set(&self, cut: bool) {
        self.inner.cut.set(cut);
        if !cut {
            self.inner.healed.notify_waiters();
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.inner.cut.get()
    }

    pub(crate) async fn whole(&self) {
        while self.inner.cut.get() {
            self.inner.healed.notified().await;
        }
    }

    pub(crate) fn damage_next(&self, chunks: u32) {
        *self.inner.damage.borrow_mut() += chunks;
    }

    /// Whether the next large piece is to be damaged; counts it if so.
    pub(crate) fn take_damage(&self) -> bool {
        let mut left = self.inner.damage.borrow_mut();
        let hit = *left > 0;
        *left = left.saturating_sub(1);
        hit
    }
}
