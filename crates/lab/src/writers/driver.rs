//! The driver: it has writers write documents under ids of their own, and keeps ledgers of the answers. It borrows
//! nothing of the clusters, so that it goes on while nodes end and start.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::Asker;
use record::ledger::{Fate, RunSum};
use serde_json::Value;
use store::SyntheticBatch;
use world::{Env, Task, Time};

use super::documents::{Batch, DocumentHash, Part, Writer};
use super::ledgers::{Detail, Sent, WriteLedgers};
use super::rollover::Rollover;
use crate::corpus::portions;
use crate::error::{Error, Result};
use crate::plan::{Background, CorpusUse, Resolved, Runs};

/// How long an answer may take. What a later one would say of its writes stays unknown.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Pause of a writer that got no answer, before its next request.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// How often a writer that waits for its time checks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Documents of the corpus that are reserved for each writer in the background.
const ROOM: u64 = 1 << 36;
/// The parts of an answer to a bulk request that ledgers need.
const ANSWERED: &str =
    "items.*._index,items.*.status,items.*._seq_no,items.*._version,items.*.error.type";
/// Most documents of a run: the engine accepts no more in one request.
const RUN_DOCUMENTS_MAX: u64 = 10_000_000;

pub(crate) struct Driver {
    pub(crate) env: Env,
    asker: Asker,
    corpus: CorpusUse,
    hash: DocumentHash,
    seed: u64,
    pub(crate) ledgers: WriteLedgers,
    /// Aliases that are rolled over while writers in the background write.
    rollovers: RefCell<Vec<Rollover>>,
    /// Writes that were acknowledged before writers in the background began.
    acknowledged_before: Cell<u64>,
    /// Requests to index that were answered, and the time that they took together.
    answered: Cell<(u64, Duration)>,
    /// How many writers in the background have begun so far: each has documents of its own.
    writers: Cell<u64>,
    stops: Cell<bool>,
    tasks: RefCell<Vec<Task<()>>>,
    failed: RefCell<Option<Error>>,
}

/// Runs of documents, and how often one is written.
#[derive(Clone, Copy)]
pub(crate) struct RunRate {
    pub(crate) runs: Runs,
    pub(crate) every: Duration,
}

/// The index that a write came to, where that is known, and the write's fate.
type Answered = (Option<String>, Fate);

impl Driver {
    /// A driver of the cluster that `asker` asks, whose ledgers are empty.
    pub(crate) fn new(
        env: &Env,
        plan: &Resolved,
        corpus: &CorpusUse,
        asker: Asker,
        ledgers: WriteLedgers,
        hash: DocumentHash,
    ) -> Rc<Driver> {
        Rc::new(Driver {
            env: env.clone(),
            asker,
            corpus: corpus.clone(),
            hash,
            seed: plan.seed,
            ledgers,
            rollovers: RefCell::default(),
            acknowledged_before: Cell::default(),
            answered: Cell::default(),
            writers: Cell::default(),
            stops: Cell::default(),
            tasks: RefCell::default(),
            failed: RefCell::default(),
        })
    }

    /// Documents that were acknowledged since writers in the background began.
    pub(crate) fn written_in_background(&self) -> u64 {
        self.ledgers.counts().0 - self.acknowledged_before.get()
    }

    /// Requests to index that were answered so far, and the milliseconds that they took together, as samples have them.
    pub(crate) fn answered(&self) -> (Option<u64>, Option<f64>) {
        let (requests, took) = self.answered.get();
        (Some(requests), Some(took.as_secs_f64() * 1e3))
    }

    /// Has aliases rolled over from when writers in the background begin until they stop.
    pub(crate) fn keep_rolling(&self, rollovers: Vec<Rollover>) {
        self.rollovers.replace(rollovers);
    }

    /// Why a writer has ended, if one has.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failed.borrow_mut().take()
    }

    /// Has writers write the corpus; they end by themselves.
    pub(crate) fn fill(self: &Rc<Self>) {
        for (target, of) in self.ledgers.targets.iter().enumerate() {
            let first = of.documents.start;
            for part in portions(of.documents.end - first, self.corpus.clients) {
                self.start(Part {
                    target,
                    documents: first + part.start..first + part.end,
                    every: None,
                    after: Duration::ZERO,
                    updates_in_1000: 0,
                    deletes_in_1000: 0,
                });
            }
        }
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.tasks.borrow().iter().any(|task| !task.is_finished())
    }

    /// Has writers write at a rate until [`Driver::stop`]; with `runs` documents that exist only as a number.
    pub(crate) fn begin(self: &Rc<Self>, rate: Background, runs: Option<RunRate>) {
        self.acknowledged_before.set(self.ledgers.counts().0);
        for rollover in self.rollovers.borrow().iter() {
            let (driver, rollover) = (self.clone(), rollover.clone());
            self.spawn("rolls over", async move { driver.roll_over(&rollover).await });
        }
        for (target, of) in self.ledgers.targets.iter().enumerate() {
            if let Some(runs) = runs {
                let driver = self.clone();
                let writer = self.next_writer();
                self.spawn("writes runs", async move {
                    driver.write_runs(target, writer, runs).await;
                    Ok(())
                });
                continue;
            }
            let each = rate.documents_per_s as f64 * of.share / f64::from(self.corpus.clients);
            let every = self.corpus.bulk_documents as f64 / each.max(1e-3);
            let every = Duration::from_secs_f64(every);
            // One after another, so that the rate is kept from the first moment on.
            for client in 0..self.corpus.clients {
                let writer = self.next_writer();
                let from = self.corpus.documents + writer * ROOM;
                self.start(Part {
                    target,
                    documents: from..from + ROOM,
                    every: Some(every),
                    after: every * client / self.corpus.clients,
                    updates_in_1000: rate.updates_in_1000,
                    deletes_in_1000: rate.deletes_in_1000,
                });
            }
        }
    }

    /// Stops all writers, each once its last request was answered.
    pub(crate) async fn stop(&self) {
        self.stops.set(true);
        for task in self.tasks.take() {
            // One that was aborted has ended, too.
            let _ = task.await;
        }
        self.stops.set(false);
    }

    fn start(self: &Rc<Self>, part: Part) {
        let driver = self.clone();
        self.spawn("writes documents", async move { driver.write(&part).await });
    }

    fn spawn(
        self: &Rc<Self>,
        what: &'static str,
        work: impl Future<Output = Result<()>> + 'static,
    ) {
        let driver = self.clone();
        let task = self.env.spawn(what, async move {
            if let Err(error) = work.await {
                driver.failed.borrow_mut().get_or_insert(error);
            }
        });
        self.tasks.borrow_mut().push(task);
    }

    fn next_writer(&self) -> u64 {
        self.writers.replace(self.writers.get() + 1)
    }

    /// Waits until then; answers false if all are to stop.
    async fn wait_until(&self, then: Time) -> bool {
        while !self.stops.get() && self.env.now() < then {
            let look = self.env.now() + LOOK_EVERY;
            self.env.sleep_until(then.min(look)).await;
        }
        !self.stops.get()
    }

    /// Asks the next node.
    async fn ask(&self, method: &str, path: &str, body: Bytes) -> Result<Value, clusters::Error> {
        self.asker.ask(method, path, body).await?.json()
    }

    /// Asks it to index.
    async fn ask_to_index(&self, path: &str, body: Bytes) -> Result<Value, clusters::Error> {
        let asked = self.env.now();
        let answer = self.ask("POST", path, body).await;
        if answer.is_ok() {
            let (requests, took) = self.answered.get();
            self.answered.set((requests + 1, took + (self.env.now() - asked)));
        }
        answer
    }

    /// Asks the leader to roll an alias over, every so often, until all are to stop.
    async fn roll_over(&self, rollover: &Rollover) -> Result<()> {
        let body = Bytes::from(rollover.body().to_string());
        let path = format!("/{}/_rollover", self.ledgers.targets[rollover.target].name);
        let mut next = self.env.now();
        let mut was_accepted = false;
        loop {
            next = next + rollover.rule.poll_interval;
            if !self.wait_until(next).await {
                return Ok(());
            }
            let answer = match self.ask("POST", &path, body.clone()).await {
                Ok(answer) => answer,
                // A request that was never accepted never will be. One that was is refused while an earlier one is
                // still being done.
                Err(error @ clusters::Error::Refused { status: 400, .. }) if !was_accepted => {
                    return Err(error.into());
                }
                Err(_) => continue,
            };
            was_accepted = true;
            // If the request before got no answer, this is how the driver learns of its index.
            let rolled = answer["rolled_over"] == true;
            let index = if rolled { &answer["new_index"] } else { &answer["old_index"] };
            if let Some(index) = index.as_str() {
                self.ledgers.of(rollover.target, index);
            }
        }
    }

    async fn write(&self, part: &Part) -> Result<()> {
        let mut writer = Writer::new(&self.corpus.source, self.seed, part)?;
        let size = (self.corpus.bulk_documents, self.ledgers.targets[part.target].shards);
        let mut next = self.env.now() + part.after;
        loop {
            if !self.wait_until(next).await {
                return Ok(());
            }
            next = part.every.map_or(next, |every| next + every);
            let batch = writer.batch(part, size, self.hash)?;
            if batch.writes.is_empty() {
                return Ok(());
            }
            self.send(part.target, batch).await;
        }
    }

    /// Sends a bulk request and enters the answers. Where only sums are kept, it is sent again until every write was
    /// answered. That changes nothing in the sums: each write adds a document with an id of its own.
    async fn send(&self, target: usize, batch: Batch) {
        let sent_to = self.ledgers.current(target);
        sent_to.begin(&batch.writes);
        let mut answers = self.ask_bulk(target, &batch).await;
        let mut lacks = has_unknown(&answers);
        while lacks && self.ledgers.detail == Detail::Sums && !self.stops.get() {
            self.env.sleep(AFTER_FAILURE).await;
            let again = self.ask_bulk(target, &batch).await;
            lacks = has_unknown(&again);
            answers =
                answers.into_iter().zip(again).map(|(one, other)| merged(one, other)).collect();
        }
        let is_answered = answers.iter().any(|(index, _)| index.is_some());
        let now = self.env.now();
        for (write, (index, fate)) in batch.writes.into_iter().zip(answers) {
            self.ledgers.enter(now, &sent_to, index.as_deref(), write, fate);
        }
        if !is_answered {
            self.env.sleep(AFTER_FAILURE).await;
        }
    }

    /// Sends a bulk request once.
    async fn ask_bulk(&self, target: usize, batch: &Batch) -> Vec<Answered> {
        let path = format!("/{}/_bulk?filter_path={ANSWERED}", self.ledgers.targets[target].name);
        let (items, otherwise) = match self.ask_to_index(&path, batch.body.clone()).await {
            Ok(answer) => (answer["items"].as_array().cloned().unwrap_or_default(), Fate::Unknown),
            Err(error) => (Vec::new(), fate_of_failed(&error)),
        };
        let answered = |place: usize| {
            let item = items.get(place);
            let done = item.and_then(|item| item.as_object()?.values().next());
            let index = done.and_then(|done| done["_index"].as_str()).map(str::to_owned);
            (index, item.map_or(otherwise, Fate::of_bulk_item))
        };
        (0..batch.writes.len()).map(answered).collect()
    }

    /// Writes runs of documents that exist only as a number until all are to stop: each time as many as are due.
    async fn write_runs(&self, target: usize, writer: u64, pace: RunRate) {
        let RunRate { runs, every } = pace;
        let rate = runs.documents_per_s as f64 * self.ledgers.targets[target].share;
        let document_bytes = runs.document_bytes.map(|bytes| bytes as f64);
        let document_bytes = document_bytes.unwrap_or_else(|| self.corpus.document_bytes());
        let began = self.env.now();
        let (mut next, mut sent, mut number) = (began, 0, 0);
        loop {
            next = next + every;
            if !self.wait_until(next).await {
                return;
            }
            let due = ((self.env.now() - began).as_secs_f64() * rate) as u64;
            let documents = (due - sent).min(RUN_DOCUMENTS_MAX);
            if documents > 0 {
                let bytes = (documents as f64 * document_bytes) as u64;
                self.send_run(target, &format!("run-{writer}-{number}"), documents, bytes).await;
                number += 1;
                sent += documents;
            }
        }
    }

    /// Sends a run and enters the answers. What each shard's part must add to a copy is computed here.
    async fn send_run(&self, target: usize, id: &str, documents: u64, source_bytes: u64) {
        let sent_to = self.ledgers.current(target);
        let of = &self.ledgers.targets[target];
        let path = format!(
            "/{}/_narrows/run?documents={documents}&source_bytes={source_bytes}&id={id}",
            of.name
        );
        let answer = self.ask_to_index(&path, Bytes::new()).await;
        let now = self.env.now();
        let otherwise = answer.as_ref().err().map_or(Fate::Unknown, fate_of_failed);
        let answer = answer.unwrap_or_default();
        let parts = answer["shards"].as_array();
        for shard in 0..of.shards {
            let documents = SyntheticBatch::share(documents, shard, of.shards);
            let part = parts.and_then(|parts| parts.iter().find(|part| part["shard"] == shard));
            let fate = match part.map(|part| (part["seq_no"].as_u64(), part["status"].as_u64())) {
                Some((Some(seq_no), _)) => Fate::Acknowledged { seq_no, version: 1 },
                Some((None, Some(400..500))) => Fate::Rejected,
                Some(_) => Fate::Unknown,
                None => otherwise,
            };
            if documents > 0 {
                let bytes = SyntheticBatch::share(source_bytes, shard, of.shards);
                let content = SyntheticBatch::new(documents, bytes)
                    .hash(&SyntheticBatch::id_of_shard(id, shard));
                let sent = Sent::Run { shard, run: RunSum { documents, content } };
                self.ledgers.enter(now, &sent_to, answer["index"].as_str(), sent, fate);
            }
        }
    }
}

fn has_unknown(answers: &[Answered]) -> bool {
    answers.iter().any(|(_, fate)| *fate == Fate::Unknown)
}

/// The fate of a write that was sent twice. One that was rejected once may have been done the other time.
fn merged(one: Answered, other: Answered) -> Answered {
    match (one.1, other.1) {
        (Fate::Acknowledged { .. }, _) => one,
        (Fate::Rejected, Fate::Rejected) | (_, Fate::Acknowledged { .. }) => other,
        _ => (other.0, Fate::Unknown),
    }
}

/// The fate of the writes of a request that failed: those of one that was refused were not done.
fn fate_of_failed(error: &clusters::Error) -> Fate {
    match error {
        clusters::Error::Refused { status: 400..500, .. } => Fate::Rejected,
        _ => Fate::Unknown,
    }
}
