//! How a recovery goes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use record::Limit;
use world::Time;

use crate::transport::{RecoveredFiles, RecoveryState};
use policy::transfer::accounting::Accounting;

/// The stages of a recovery, as Elasticsearch names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Asks the source for a session.
    Init,
    /// Copies files.
    Index,
    /// Verifies them.
    VerifyIndex,
    /// Replays operations.
    Translog,
    /// Becomes in sync.
    Finalize,
    /// Complete.
    Done,
}

impl Stage {
    /// The name that `_recovery` shows.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Init => "INIT",
            Stage::Index => "INDEX",
            Stage::VerifyIndex => "VERIFY_INDEX",
            Stage::Translog => "TRANSLOG",
            Stage::Finalize => "FINALIZE",
            Stage::Done => "DONE",
        }
    }
}

/// One file of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProgress {
    pub name: String,
    pub len: u64,
    /// Bytes that were there already.
    pub reused: u64,
    /// Bytes that came.
    pub recovered: u64,
}

/// The progress of one recovery. Shared by the task that recovers and by whoever asks for it.
#[derive(Debug)]
pub struct Progress {
    /// What is shown of it, but for what follows from the rest when somebody asks.
    pub(crate) shown: RefCell<RecoveryState>,
    began: Time,
    ended: Cell<Option<Time>>,
    stage: Cell<Stage>,
    stage_began: RefCell<BTreeMap<Stage, Time>>,
    pub(crate) files: RefCell<Vec<FileProgress>>,
    /// Operations that came, and that no later try copies again.
    pub(crate) kept_ops: Cell<u64>,
    pub(crate) source_throttle: Cell<Duration>,
    pub(crate) target_throttle: Cell<Duration>,
    pub(crate) accounting: RefCell<Accounting>,
    charged_at_end: RefCell<Option<BTreeMap<Limit, Duration>>>,
}

impl Progress {
    pub(crate) fn new(now: Time, shown: RecoveryState, idle: Limit) -> Self {
        Progress {
            shown: RefCell::new(shown),
            began: now,
            ended: Cell::new(None),
            stage: Cell::new(Stage::Init),
            stage_began: RefCell::new(BTreeMap::from([(Stage::Init, now)])),
            files: RefCell::default(),
            kept_ops: Cell::default(),
            source_throttle: Cell::default(),
            target_throttle: Cell::default(),
            accounting: RefCell::new(Accounting::new(now, idle)),
            charged_at_end: RefCell::default(),
        }
    }

    /// The stage it is in.
    pub fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub(crate) fn enter(&self, now: Time, stage: Stage, idle: Limit) {
        self.stage.set(stage);
        self.stage_began.borrow_mut().insert(stage, now);
        self.accounting.borrow_mut().set_idle(now, idle);
        if stage == Stage::Done {
            self.ended.set(Some(now));
            let charged = self.accounting.borrow_mut().charged(now);
            *self.charged_at_end.borrow_mut() = Some(charged);
        }
    }

    /// What the time since the start was charged to.
    pub fn charged(&self, now: Time) -> BTreeMap<Limit, Duration> {
        match &*self.charged_at_end.borrow() {
            Some(charged) => charged.clone(),
            None => self.accounting.borrow_mut().charged(now),
        }
    }

    /// Bytes in files, and bytes that came over the network.
    pub fn bytes(&self) -> (u64, u64) {
        let files = self.recovered_files(false);
        (files.bytes, files.recovered_bytes)
    }

    /// Bytes that are on the disk, and bytes that are still to be written there.
    pub(crate) fn room(&self) -> (u64, u64) {
        let files = self.recovered_files(false);
        let here = files.reused_bytes + files.recovered_bytes;
        (here, files.bytes.saturating_sub(here))
    }

    fn stage_ms(&self, now: Time, stage: Stage) -> u64 {
        let began = self.stage_began.borrow();
        let Some(from) = began.get(&stage) else { return 0 };
        let until = began.range(stage..).nth(1).map(|(_, at)| *at).unwrap_or(now);
        (until - *from).as_millis() as u64
    }

    /// How it goes; `detailed` with each file.
    pub(crate) fn state(&self, now: Time, detailed: bool) -> RecoveryState {
        let end = self.ended.get().unwrap_or(now);
        let elapsed = end - self.began;
        let charged = self.charged(now).into_iter();
        RecoveryState {
            stage: self.stage().name().to_owned(),
            total_ms: elapsed.as_millis() as u64,
            ended: self.ended.get().is_some(),
            files: self.recovered_files(detailed),
            index_ms: self.stage_ms(end, Stage::Index),
            source_throttle_ms: self.source_throttle.get().as_millis() as u64,
            target_throttle_ms: self.target_throttle.get().as_millis() as u64,
            translog_ms: self.stage_ms(end, Stage::Translog),
            verify_ms: self.stage_ms(end, Stage::VerifyIndex),
            charged_ns: charged.map(|(limit, time)| (limit, time.as_nanos() as u64)).collect(),
            elapsed_ns: elapsed.as_nanos() as u64,
            ..self.shown.borrow().clone()
        }
    }

    fn recovered_files(&self, detailed: bool) -> RecoveredFiles {
        let mut all = RecoveredFiles::default();
        for file in &*self.files.borrow() {
            let is_reused = file.reused == file.len;
            all.count += 1;
            all.reused += u64::from(is_reused);
            all.recovered += u64::from(!is_reused && file.reused + file.recovered >= file.len);
            all.bytes += file.len;
            all.reused_bytes += file.reused;
            all.recovered_bytes += file.recovered;
            if detailed {
                all.details.push((file.name.clone(), file.len, file.recovered + file.reused));
            }
        }
        all
    }
}
