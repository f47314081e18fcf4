//! What a node keeps of the recoveries that it is a part of.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::sessions::Sessions;
use crate::core::Core;
use crate::planted;
use crate::remote::RemoteClusterService;
use crate::settings::Settings;
use crate::shard::{Progress, Stage};

/// The recoveries of a node: as the node that is read, and as the one that recovers.
pub(crate) struct RecoveryService {
    pub(super) core: Rc<Core>,
    pub(super) remotes: Rc<RemoteClusterService>,
    pub(crate) sessions: Sessions,
    /// Recoveries of copies here that are not done, kept apart because every chunk asks for them and a node may have
    /// thousands of copies.
    going_on: RefCell<Vec<Weak<Progress>>>,
    /// Of the nodes of a large twin, copies are recovered on hardly one in five.
    has_begun: Cell<bool>,
    /// Whether a copy has come from a peer since the node started, or the node stands for one that has run for long.
    pub(crate) has_copied: Cell<bool>,
    /// Chunks that were read and not yet handed to a connection, in KiB.
    pub(super) read_ahead: Arc<Semaphore>,
}

/// Chunks that a node has read and not yet handed to a connection, at most, in KiB.
pub(crate) fn read_ahead_kib(settings: &Settings) -> u32 {
    u32::try_from(settings.recovery_read_ahead() >> 10).unwrap_or(u32::MAX)
}

impl RecoveryService {
    pub(crate) fn new(core: &Rc<Core>, remotes: &Rc<RemoteClusterService>) -> Rc<Self> {
        Rc::new(RecoveryService {
            core: core.clone(),
            remotes: remotes.clone(),
            sessions: Sessions::new(match core.env.is_planted(planted::SESSIONS_BEGIN_AGAIN) {
                true => 1,
                false => core.first_number(),
            }),
            going_on: RefCell::default(),
            has_begun: Cell::new(false),
            has_copied: Cell::new(false),
            read_ahead: Arc::new(Semaphore::new(read_ahead_kib(&core.settings()) as usize)),
        })
    }

    /// Notes that a copy here is recovered from now on.
    pub(super) fn note_recovery(&self, progress: &Rc<Progress>) {
        self.has_begun.set(true);
        let mut going_on = self.going_on.borrow_mut();
        going_on.retain(is_going_on);
        going_on.push(Rc::downgrade(progress));
    }

    /// Whether a copy here was ever recovered.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Copies here that are recovered now.
    pub(crate) fn going_on(&self) -> usize {
        self.going_on.borrow().iter().filter(|one| is_going_on(one)).count()
    }

    /// Counts a chunk as being read until the returned guard is dropped.
    pub(super) fn begin_read(self: &Rc<Self>) -> Reading {
        self.sessions.reading.update(|reading| reading + 1);
        self.note_load();
        Reading { service: self.clone() }
    }

    /// Finds out whether recoveries hardly use this node. A recovery with one chunk in flight cannot give way any
    /// further.
    pub(super) fn note_load(&self) {
        let mut going_on = self.going_on.borrow_mut();
        going_on.retain(is_going_on);
        let at_floor = |one: &Weak<Progress>| {
            one.upgrade().is_none_or(|progress| {
                let shown = progress.shown.borrow();
                shown.in_flight_bytes <= shown.chunk_bytes
            })
        };
        let light = self.sessions.reads_are_light() && going_on.iter().all(at_floor);
        self.core.foreground.borrow_mut().set_recoveries_light(self.core.env.now(), light);
    }
}

fn is_going_on(recovery: &Weak<Progress>) -> bool {
    recovery.upgrade().is_some_and(|progress| progress.stage() != Stage::Done)
}

/// A chunk that is being read.
pub(super) struct Reading {
    service: Rc<RecoveryService>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.service.sessions.reading.update(|reading| reading - 1);
        self.service.note_load();
    }
}
