//! Many waiters, one sync: those that arrive while a sync runs share the next one.

use std::cell::Cell;

use tokio::sync::Notify;

/// Positions in an append-only log, and the waiters for each to be durable.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    appended: Cell<u64>,
    synced: Cell<u64>,
    running: Cell<bool>,
    turned: Notify,
    syncs: Cell<u64>,
}

/// Gives the turn to the next waiter, even where the sync's future was dropped half way.
struct Turn<'a>(&'a GroupCommit);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.running.set(false);
        self.0.turned.notify_waiters();
    }
}

impl GroupCommit {
    pub(crate) fn appended(&self, bytes: u64) {
        self.appended.set(self.appended.get() + bytes);
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.get()
    }

    /// Returns once all that was appended before the call is durable. `sync` makes it so.
    pub(crate) async fn wait<E>(&self, sync: impl AsyncFn() -> Result<(), E>) -> Result<(), E> {
        let target = self.appended.get();
        while self.synced.get() < target {
            if self.running.get() {
                self.turned.notified().await;
                continue;
            }
            self.running.set(true);
            let turn = Turn(self);
            let covers = self.appended.get();
            sync().await?;
            self.syncs.set(self.syncs.get() + 1);
            self.synced.set(self.synced.get().max(covers));
            drop(turn);
        }
        Ok(())
    }
}
