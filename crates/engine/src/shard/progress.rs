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

/// Where a recovery comes from and goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// `type` of `_recovery`: `PEER`, `SNAPSHOT`, ...
    pub kind: &'static str,
    pub index: String,
    pub shard: u32,
    pub primary: bool,
    /// Node that is read, or the remote cluster.
    pub source: Option<String>,
    pub source_address: Option<String>,
    pub target: String,
    pub target_address: String,
}

/// The progress of one recovery. Shared by the task that recovers and by whoever asks for it.
#[derive(Debug)]
pub struct Progress {
    pub(crate) ends: RefCell<Ends>,
    pub(crate) began: Time,
    pub(crate) began_epoch_ms: u64,
    ended: Cell<Option<Time>>,
    stage: Cell<Stage>,
    stage_began: RefCell<BTreeMap<Stage, Time>>,
    pub(crate) files: RefCell<Vec<FileProgress>>,
    pub(crate) ops_total: Cell<u64>,
    pub(crate) ops_recovered: Cell<u64>,
    pub(crate) ops_bytes: Cell<u64>,
    pub(crate) source_throttle: Cell<Duration>,
    pub(crate) target_throttle: Cell<Duration>,
    pub(crate) refetched_chunks: Cell<u64>,
    pub(crate) retries: Cell<u64>,
    pub(crate) chunk_bytes: Cell<u64>,
    pub(crate) in_flight_bytes: Cell<u64>,
    pub(crate) in_flight_bytes_max: Cell<u64>,
    /// Connections that carry it now, and the most that did.
    pub(crate) connections: Cell<u32>,
    pub(crate) connections_max: Cell<u32>,
    pub(crate) failure: RefCell<Option<String>>,
    pub(crate) accounting: RefCell<Accounting>,
    charged_at_end: RefCell<Option<BTreeMap<Limit, Duration>>>,
}

impl Progress {
    pub(crate) fn new(now: Time, epoch_ms: u64, ends: Ends, idle: Limit) -> Self {
        Progress {
            ends: RefCell::new(ends),
            began: now,
            began_epoch_ms: epoch_ms,
            ended: Cell::new(None),
            stage: Cell::new(Stage::Init),
            stage_began: RefCell::new(BTreeMap::from([(Stage::Init, now)])),
            files: RefCell::default(),
            ops_total: Cell::new(0),
            ops_recovered: Cell::new(0),
            ops_bytes: Cell::new(0),
            source_throttle: Cell::default(),
            target_throttle: Cell::default(),
            refetched_chunks: Cell::new(0),
            retries: Cell::new(0),
            chunk_bytes: Cell::new(0),
            in_flight_bytes: Cell::new(0),
            in_flight_bytes_max: Cell::new(0),
            connections: Cell::new(0),
            connections_max: Cell::new(0),
            failure: RefCell::default(),
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
        let files = self.files.borrow();
        (files.iter().map(|f| f.len).sum(), files.iter().map(|f| f.recovered).sum())
    }

    /// Bytes that are on the disk, and bytes that are still to be written there.
    pub(crate) fn room(&self) -> (u64, u64) {
        let files = self.files.borrow();
        let here = files.iter().map(|f| f.reused + f.recovered).sum::<u64>();
        let all = files.iter().map(|f| f.len).sum::<u64>();
        (here, all.saturating_sub(here))
    }

    fn stage_ms(&self, now: Time, stage: Stage) -> u64 {
        let began = self.stage_began.borrow();
        let Some(from) = began.get(&stage) else { return 0 };
        let until = began.range(stage..).nth(1).map(|(_, at)| *at).unwrap_or(now);
        (until - *from).as_millis() as u64
    }

    /// How it goes; `detailed` with each file.
    pub(crate) fn state(&self, now: Time, detailed: bool) -> RecoveryState {
        let ends = self.ends.borrow();
        let end = self.ended.get().unwrap_or(now);
        let elapsed = end - self.began;
        let charged = self.charged(now).into_iter();
        RecoveryState {
            index: ends.index.clone(),
            shard: ends.shard,
            kind: ends.kind.to_owned(),
            stage: self.stage().name().to_owned(),
            primary: ends.primary,
            began_epoch_ms: self.began_epoch_ms,
            total_ms: elapsed.as_millis() as u64,
            ended: self.ended.get().is_some(),
            source: ends.source.clone(),
            source_address: ends.source_address.clone(),
            target: ends.target.clone(),
            target_address: ends.target_address.clone(),
            files: self.recovered_files(detailed),
            index_ms: self.stage_ms(end, Stage::Index),
            source_throttle_ms: self.source_throttle.get().as_millis() as u64,
            target_throttle_ms: self.target_throttle.get().as_millis() as u64,
            ops_total: self.ops_total.get(),
            ops_recovered: self.ops_recovered.get(),
            ops_bytes: self.ops_bytes.get(),
            translog_ms: self.stage_ms(end, Stage::Translog),
            verify_ms: self.stage_ms(end, Stage::VerifyIndex),
            charged_ns: charged.map(|(limit, time)| (limit, time.as_nanos() as u64)).collect(),
            elapsed_ns: elapsed.as_nanos() as u64,
            chunk_bytes: self.chunk_bytes.get(),
            in_flight_bytes: self.in_flight_bytes.get(),
            in_flight_bytes_max: self.in_flight_bytes_max.get(),
            connections: self.connections.get(),
            connections_max: self.connections_max.get(),
            refetched_chunks: self.refetched_chunks.get(),
            retries: self.retries.get(),
            failure: self.failure.borrow().clone(),
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
