//! The faults of a link: whether it is cut, and how many of the next large pieces it damages.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The faults of one link, shared by its handle and all that passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkFaults {
    inner: Rc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    cut: Cell<bool>,
    healed: Notify,
    pieces_to_damage: Cell<u32>,
}

impl LinkFaults {
    pub(crate) fn set_cut(&self, cut: bool) {
        self.inner.cut.set(cut);
        if !cut {
            self.inner.healed.notify_waiters();
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.inner.cut.get()
    }

    /// Waits while the link is cut.
    pub(crate) async fn until_healed(&self) {
        while self.inner.cut.get() {
            self.inner.healed.notified().await;
        }
    }

    pub(crate) fn damage_next(&self, pieces: u32) {
        self.inner.pieces_to_damage.set(self.inner.pieces_to_damage.get() + pieces);
    }

    /// Whether the large piece that passes now is to be damaged; counts it if so.
    pub(crate) fn take_damage(&self) -> bool {
        let left = self.inner.pieces_to_damage.get();
        self.inner.pieces_to_damage.set(left.saturating_sub(1));
        left > 0
    }
}
