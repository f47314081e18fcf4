//! The operations that run on a primary, and their end: a primary that is moved hands over to its target, and takes no
//! operation from then on unless the move is given up.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Notify;

/// The operations that run on a copy as the primary.
#[derive(Default)]
pub(crate) struct Operations {
    running: Cell<usize>,
    ended: Notify,
    hand_off: RefCell<HandOff>,
}

/// How far a primary is with handing over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum HandOff {
    #[default]
    None,
    /// It takes no new operations, and waits for those that run.
    Waits,
    /// The target may be the primary already.
    Done {
        to: String,
        /// Version of the cluster state that named it.
        version: u64,
    },
}

impl Operations {
    pub(super) fn are_taken(&self) -> bool {
        *self.hand_off.borrow() == HandOff::None
    }

    pub(crate) fn handed_to(&self, target: &str) -> bool {
        matches!(&*self.hand_off.borrow(), HandOff::Done { to, .. } if to == target)
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        matches!(&*self.hand_off.borrow(), HandOff::Done { .. })
    }

    /// A cluster state of this version has the copy moved to `target`, or to none. If this copy has handed over to
    /// another target before that, the move there was given up: that target was never started, took no operation, and
    /// never will, so that this copy may take operations again.
    pub(crate) fn follow_state(&self, target: Option<&str>, version: u64) {
        let mut hand_off = self.hand_off.borrow_mut();
        if let HandOff::Done { to, version: at } = &*hand_off
            && version > *at
            && target != Some(to.as_str())
        {
            *hand_off = HandOff::None;
        }
    }

    pub(crate) async fn end(&self) {
        while self.running.get() > 0 {
            self.ended.notified().await;
        }
    }
}

pub(crate) struct Operation(Rc<Operations>);

impl Operation {
    pub(super) fn begin(operations: &Rc<Operations>) -> Operation {
        operations.running.set(operations.running.get() + 1);
        Operation(operations.clone())
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let operations = &self.0;
        operations.running.set(operations.running.get() - 1);
        if operations.running.get() == 0 {
            operations.ended.notify_waiters();
        }
    }
}

/// No operation is taken until this is dropped, or for good once the hand-off is done.
pub(crate) struct Blocked(Rc<Operations>);

impl Blocked {
    /// None where another hand-off is under way.
    pub(crate) fn begin(operations: &Rc<Operations>) -> Option<Blocked> {
        let mut hand_off = operations.hand_off.borrow_mut();
        if *hand_off != HandOff::None {
            return None;
        }
        *hand_off = HandOff::Waits;
        Some(Blocked(operations.clone()))
    }

    /// The target has what it needs to take over, as the state of this version wants it.
    pub(crate) fn hand_over(self, target: &str, version: u64) {
        let done = HandOff::Done { to: target.to_owned(), version };
        self.0.hand_off.replace(done);
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let mut hand_off = self.0.hand_off.borrow_mut();
        if *hand_off == HandOff::Waits {
            *hand_off = HandOff::None;
        }
    }
}
