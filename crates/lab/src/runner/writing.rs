//! The driver: it writes documents under ids of its own, replaces and deletes some, and keeps the books of what it was
//! answered. It borrows nothing of the target, so that it goes on while nodes end and start.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::Asker;
use policy::routing::shard_of;
use record::ledger::{Action, Fate, RunSum};
use serde_json::Value;
use store::SyntheticBatch;
use world::{Env, Task, Time};

use super::books::{Books, Entries, Sent};
use super::rolling::Keeper;
use crate::Error;
use crate::corpus::{DocumentReader, Random, Source, portions};
use crate::plan::{Background, CorpusUse, Resolved, Runs};

/// How long an answer may take; what comes later nobody knows.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Until somebody who got no answer asks again.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// How often a writer that waits for its turn looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Documents that a writer knows it may replace or delete.
const REMEMBERED: usize = 4096;
/// Documents of a corpus that one writer in the background may use.
const ROOM: u64 = 1 << 36;
/// The family of a writer's random numbers.
const FAMILY: u64 = 0x77_7269_7465;
/// Of an answer to a bulk request, what the books need.
const ANSWERED: &str =
    "items.*._index,items.*.status,items.*._seq_no,items.*._version,items.*.error.type";
/// Most documents of a run; the engine takes no more at once.
const RUN_DOCUMENTS_MAX: u64 = 10_000_000;

/// The driver.
pub(super) struct Driver {
    pub(super) env: Env,
    asker: Asker,
    source: Source,
    /// Hash of a document, by `_id` and `_source`, as digests of copies count it.
    hash: fn(&str, &[u8]) -> u64,
    seed: u64,
    bulk_documents: u64,
    clients: u32,
    corpus_documents: u64,
    document_bytes: f64,
    pub(super) books: Books,
    /// Who rolls indices over while they are written to.
    keepers: RefCell<Vec<Keeper>>,
    /// What was acknowledged before writers in the background began.
    acknowledged_before: Cell<u64>,
    /// Writers in the background that there were so far: each has documents of its own.
    writers: Cell<u64>,
    stops: Cell<bool>,
    tasks: RefCell<Vec<Task<()>>>,
    failed: RefCell<Option<Error>>,
}

/// Runs of documents, and how often one is written.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) runs: Runs,
    pub(super) every: Duration,
}

/// What one writer writes.
struct Part {
    family: usize,
    documents: Range<u64>,
    /// No sooner than so long after the one before began.
    every: Option<Duration>,
    /// ... and the first no sooner than so long from now.
    after: Duration,
    updates_in_1000: u32,
    deletes_in_1000: u32,
}

/// A bulk request, and its writes.
struct Batch {
    body: Bytes,
    writes: Vec<Sent>,
}

/// What became of a write: the index that it came to, as far as is known.
type Answered = (Option<String>, Fate);

/// A writer: where it is in the corpus, and what it has written.
struct Writer {
    reader: DocumentReader,
    chance: Random,
    written: Vec<u64>,
}

impl Driver {
    /// A driver of the cluster that `asker` asks, with empty books.
    pub(super) fn new(
        env: &Env,
        plan: &Resolved,
        corpus: &CorpusUse,
        asker: Asker,
        books: Books,
        hash: fn(&str, &[u8]) -> u64,
    ) -> Rc<Driver> {
        Rc::new(Driver {
            env: env.clone(),
            asker,
            hash,
            source: corpus.source.clone(),
            seed: plan.seed,
            bulk_documents: corpus.bulk_documents,
            clients: corpus.clients,
            corpus_documents: corpus.documents,
            document_bytes: corpus.document_bytes(),
            books,
            keepers: RefCell::default(),
            acknowledged_before: Cell::default(),
            writers: Cell::default(),
            stops: Cell::default(),
            tasks: RefCell::default(),
            failed: RefCell::default(),
        })
    }

    /// Documents that were acknowledged since writers in the background began.
    pub(super) fn written_in_background(&self) -> u64 {
        self.books.counts().0 - self.acknowledged_before.get()
    }

    /// Has these roll indices over from when writers in the background begin until they stop.
    pub(super) fn keep_rolling(&self, keepers: Vec<Keeper>) {
        self.keepers.replace(keepers);
    }

    /// Why a writer has ended, if one has.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failed.borrow_mut().take()
    }

    /// Has writers write the corpus; they end by themselves.
    pub(super) fn fill(self: &Rc<Self>) {
        for (family, of) in self.books.families.iter().enumerate() {
            let first = of.documents.start;
            for part in portions(of.documents.end - first, self.clients) {
                self.start(Part {
                    family,
                    documents: first + part.start..first + part.end,
                    every: None,
                    after: Duration::ZERO,
                    updates_in_1000: 0,
                    deletes_in_1000: 0,
                });
            }
        }
    }

    /// Whether writers are still at it.
    pub(super) fn is_writing(&self) -> bool {
        self.tasks.borrow().iter().any(|task| !task.is_finished())
    }

    /// Has writers write at a rate until [`Driver::stop`]; with `runs` documents that exist only as a number.
    pub(super) fn begin(self: &Rc<Self>, rate: Background, runs: Option<Pace>) {
        self.acknowledged_before.set(self.books.counts().0);
        for keeper in self.keepers.borrow().iter() {
            let (driver, keeper) = (self.clone(), keeper.clone());
            self.spawn("rolls over", async move { keeper.run(&driver).await });
        }
        for (family, of) in self.books.families.iter().enumerate() {
            if let Some(runs) = runs {
                let driver = self.clone();
                let writer = self.next_writer();
                self.spawn("writes runs", async move {
                    driver.write_runs(family, writer, runs).await;
                    Ok(())
                });
                continue;
            }
            let each = rate.documents_per_s as f64 * of.share / f64::from(self.clients);
            let every = self.bulk_documents as f64 / each.max(1e-3);
            let every = Duration::from_secs_f64(every);
            // One after another, so that the rate is kept from the first moment on.
            for client in 0..self.clients {
                let writer = self.next_writer();
                let from = self.corpus_documents + writer * ROOM;
                self.start(Part {
                    family,
                    documents: from..from + ROOM,
                    every: Some(every),
                    after: every * client / self.clients,
                    updates_in_1000: rate.updates_in_1000,
                    deletes_in_1000: rate.deletes_in_1000,
                });
            }
        }
    }

    /// Ends all writers, each once it was answered.
    pub(super) async fn stop(&self) {
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
        work: impl Future<Output = Result<(), Error>> + 'static,
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

    /// Waits until then; false if all are to stop.
    pub(super) async fn wait_until(&self, then: Time) -> bool {
        while !self.stops.get() && self.env.now() < then {
            let look = self.env.now() + LOOK_EVERY;
            self.env.sleep_until(then.min(look)).await;
        }
        !self.stops.get()
    }

    /// Asks the next node.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Value, clusters::Error> {
        self.asker.ask(method, path, body).await?.json()
    }

    async fn write(&self, part: &Part) -> Result<(), Error> {
        let mut writer = Writer {
            reader: DocumentReader::new(&self.source, self.seed, part.documents.clone())?,
            chance: Random::new(self.seed, FAMILY, part.documents.start),
            written: Vec::new(),
        };
        let mut next = self.env.now() + part.after;
        loop {
            if !self.wait_until(next).await {
                return Ok(());
            }
            next = part.every.map_or(next, |every| next + every);
            let batch = self.batch(part, &mut writer)?;
            if batch.writes.is_empty() {
                return Ok(());
            }
            self.send(part.family, batch).await;
        }
    }

    /// The next bulk request. A document is in it once.
    fn batch(&self, part: &Part, writer: &mut Writer) -> Result<Batch, Error> {
        let shards = self.books.families[part.family].shards;
        let (mut body, mut writes) = (Vec::new(), Vec::new());
        let (mut used, mut source) = (BTreeSet::new(), Vec::new());
        for _ in 0..self.bulk_documents {
            let draw = writer.chance.below(1000);
            let earlier = match draw < part.deletes_in_1000 + part.updates_in_1000 {
                true => writer.pick().filter(|at| !used.contains(&writer.written[*at])),
                false => None,
            };
            let deleted = earlier.filter(|_| draw < part.deletes_in_1000);
            let (document, action) = if let Some(at) = deleted {
                (writer.written.swap_remove(at), Action::Delete)
            } else {
                source.clear();
                let Some(read) = writer.reader.next(&mut source)? else { break };
                let document = earlier.map_or(read, |at| writer.written[at]);
                if earlier.is_none() {
                    writer.remember(read);
                }
                let content = (self.hash)(&format!("{document:x}"), &source);
                (document, Action::Index { content })
            };
            used.insert(document);
            let id = format!("{document:x}");
            let shard = shard_of(&id, shards);
            let name = if action == Action::Delete { "delete" } else { "index" };
            body.extend_from_slice(format!("{{\"{name}\":{{\"_id\":\"{id}\"}}}}\n").as_bytes());
            if action != Action::Delete {
                body.extend_from_slice(&source);
                body.push(b'\n');
            }
            writes.push(Sent::Write { id, shard, action });
        }
        Ok(Batch { body: body.into(), writes })
    }

    /// Sends a bulk request and enters what was answered. Where only sums are kept, it is sent until everything was
    /// answered, as it may be: each write adds a document of its own.
    async fn send(&self, family: usize, batch: Batch) {
        let sent_to = self.books.current(family);
        let mut answers = self.ask_bulk(family, &batch).await;
        let mut lacks = has_unknown(&answers);
        while lacks && self.books.entries == Entries::Sums && !self.stops.get() {
            self.env.sleep(AFTER_FAILURE).await;
            let again = self.ask_bulk(family, &batch).await;
            lacks = has_unknown(&again);
            answers = answers.into_iter().zip(again).map(|(one, other)| both(one, other)).collect();
        }
        let is_answered = answers.iter().any(|(index, _)| index.is_some());
        let now = self.env.now();
        for (write, (index, fate)) in batch.writes.into_iter().zip(answers) {
            self.books.enter(now, &sent_to, index.as_deref(), write, fate);
        }
        if !is_answered {
            self.env.sleep(AFTER_FAILURE).await;
        }
    }

    /// Sends a bulk request once.
    async fn ask_bulk(&self, family: usize, batch: &Batch) -> Vec<Answered> {
        let path = format!("/{}/_bulk?filter_path={ANSWERED}", self.books.families[family].name);
        let (items, otherwise) = match self.ask("POST", &path, batch.body.clone()).await {
            Ok(answer) => (answer["items"].as_array().cloned().unwrap_or_default(), Fate::Unknown),
            Err(error) => (Vec::new(), without_answer(&error)),
        };
        let answered = |place: usize| {
            let item = items.get(place);
            let done = item.and_then(|item| item.as_object()?.values().next());
            let index = done.and_then(|done| done["_index"].as_str()).map(str::to_owned);
            (index, item.map_or(otherwise, Fate::of_bulk_item))
        };
        (0..batch.writes.len()).map(answered).collect()
    }

    /// Writes runs of documents that exist only as a number, until all are to stop: every time as many as are due.
    async fn write_runs(&self, family: usize, writer: u64, pace: Pace) {
        let Pace { runs, every } = pace;
        let rate = runs.documents_per_s as f64 * self.books.families[family].share;
        let document_bytes = runs.document_bytes.map_or(self.document_bytes, |bytes| bytes as f64);
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
                self.send_run(family, &format!("run-{writer}-{number}"), documents, bytes).await;
                number += 1;
                sent += documents;
            }
        }
    }

    /// Sends a run and enters what was answered. What each shard's part must add to a copy is known without asking.
    async fn send_run(&self, family: usize, id: &str, documents: u64, source_bytes: u64) {
        let sent_to = self.books.current(family);
        let of = &self.books.families[family];
        let path = format!(
            "/{}/_narrows/run?documents={documents}&source_bytes={source_bytes}&id={id}",
            of.name
        );
        let answer = self.ask("POST", &path, Bytes::new()).await;
        let now = self.env.now();
        let otherwise = answer.as_ref().err().map_or(Fate::Unknown, without_answer);
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
                self.books.enter(now, &sent_to, answer["index"].as_str(), sent, fate);
            }
        }
    }
}

fn has_unknown(answers: &[Answered]) -> bool {
    answers.iter().any(|(_, fate)| *fate == Fate::Unknown)
}

/// What became of a write that was sent twice. One that was refused once may have been done the other time.
fn both(one: Answered, other: Answered) -> Answered {
    match (one.1, other.1) {
        (Fate::Acknowledged { .. }, _) => one,
        (Fate::Rejected, Fate::Rejected) | (_, Fate::Acknowledged { .. }) => other,
        _ => (other.0, Fate::Unknown),
    }
}

/// What became of a request that was not answered as it should be: what is refused for good was not done.
fn without_answer(error: &clusters::Error) -> Fate {
    match error {
        clusters::Error::Refused { status: 400..500, .. } => Fate::Rejected,
        _ => Fate::Unknown,
    }
}

impl Writer {
    /// Any of the documents that it remembers, by its place.
    fn pick(&mut self) -> Option<usize> {
        let count = self.written.len() as u32;
        (count > 0).then(|| self.chance.below(count) as usize)
    }

    fn remember(&mut self, document: u64) {
        match self.written.len() < REMEMBERED {
            true => self.written.push(document),
            false => {
                let at = self.chance.below(REMEMBERED as u32) as usize;
                self.written[at] = document;
            }
        }
    }
}
