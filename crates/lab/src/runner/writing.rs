//! The driver of a plan that follows: it writes documents under ids of its own, replaces and deletes some, and keeps the
//! books of what it was answered. It asks nodes by their addresses, so that it goes on while the target ends and starts
//! them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::RestClient;
use engine::routing::shard_of;
use record::ledger::{Action, Fate, Ledger, WriteId};
use serde_json::Value;
use world::{Env, Task, Time};

use crate::Error;
use crate::corpus::{DocumentReader, Random, Source, portions};
use crate::plan::{Background, CorpusUse, Resolved};

/// How long an answer may take; what comes later nobody knows.
const PATIENCE: Duration = Duration::from_secs(30);
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
const ANSWERED: &str = "items.*.status,items.*._seq_no,items.*._version,items.*.error.type";

/// The books of one index.
pub(super) struct Book {
    pub(super) index: String,
    pub(super) shards: u32,
    pub(super) ledger: RefCell<Ledger>,
    /// Which documents of the corpus it is filled with, and its part of all.
    documents: Range<u64>,
    share: f64,
    /// Of each shard, one above the highest operation that was acknowledged.
    done: RefCell<Vec<u64>>,
    /// Their sum, when it grew; older moments go once the follower is past them.
    history: RefCell<VecDeque<(Time, u64)>>,
}

impl Book {
    /// Operations that were acknowledged, over all shards.
    pub(super) fn operations(&self) -> u64 {
        self.done.borrow().iter().sum()
    }

    /// What a follower lacks that has `follower` operations of each shard, and since when it has been there.
    pub(super) fn lag(&self, follower: &[u64]) -> (u64, Option<Time>) {
        let done = self.done.borrow();
        let has = |shard: usize| follower.get(shard).copied().unwrap_or(0);
        let lacks = done.iter().enumerate().map(|(shard, done)| done.saturating_sub(has(shard)));
        let lag = lacks.sum();
        let whole: u64 = done.iter().sum();
        let mut history = self.history.borrow_mut();
        while history.front().is_some_and(|(_, operations)| operations + lag <= whole) {
            history.pop_front();
        }
        (lag, history.front().filter(|_| lag > 0).map(|(at, _)| *at))
    }

    fn note(&self, now: Time, shard: u32, seq_no: u64) {
        let mut done = self.done.borrow_mut();
        let of_shard = &mut done[shard as usize];
        if seq_no >= *of_shard {
            *of_shard = seq_no + 1;
            let sum = done.iter().sum();
            let mut history = self.history.borrow_mut();
            match history.back_mut().filter(|(at, _)| *at == now) {
                Some(last) => last.1 = sum,
                None => history.push_back((now, sum)),
            }
        }
    }
}

/// The driver.
pub(super) struct Driver {
    env: Env,
    client: RestClient,
    addresses: Vec<String>,
    source: Source,
    seed: u64,
    bulk_documents: u64,
    clients: u32,
    corpus_documents: u64,
    pub(super) books: Vec<Book>,
    turn: Cell<usize>,
    /// Writers in the background that there were so far: each has documents of its own.
    writers: Cell<u64>,
    stops: Cell<bool>,
    tasks: RefCell<Vec<Task<()>>>,
    failed: RefCell<Option<Error>>,
}

/// What one writer writes.
struct Part {
    book: usize,
    documents: Range<u64>,
    /// No sooner than so long after the one before began.
    every: Option<Duration>,
    updates_in_1000: u32,
    deletes_in_1000: u32,
}

/// A bulk request, and its writes in the books.
#[derive(Default)]
struct Batch {
    body: Vec<u8>,
    writes: Vec<(WriteId, u32)>,
}

/// A writer: where it is in the corpus, and what it has written.
struct Writer {
    reader: DocumentReader,
    chance: Random,
    written: Vec<u64>,
}

impl Driver {
    /// A driver of the nodes that listen at `addresses`.
    pub(super) fn new(
        env: &Env,
        plan: &Resolved,
        corpus: &CorpusUse,
        addresses: Vec<String>,
    ) -> Rc<Driver> {
        let whole: u64 = plan.indices.iter().map(|i| i.documents.end - i.documents.start).sum();
        let book = |index: &crate::plan::Index| Book {
            index: index.name.clone(),
            shards: index.shards,
            ledger: RefCell::default(),
            documents: index.documents.clone(),
            share: (index.documents.end - index.documents.start) as f64 / whole.max(1) as f64,
            done: RefCell::new(vec![0; index.shards as usize]),
            history: RefCell::default(),
        };
        Rc::new(Driver {
            env: env.clone(),
            client: RestClient::new(env).with_limit(PATIENCE),
            addresses,
            source: corpus.source.clone(),
            seed: plan.seed,
            bulk_documents: corpus.bulk_documents,
            clients: corpus.clients,
            corpus_documents: corpus.documents,
            books: plan.indices.iter().map(book).collect(),
            turn: Cell::default(),
            writers: Cell::default(),
            stops: Cell::default(),
            tasks: RefCell::default(),
            failed: RefCell::default(),
        })
    }

    /// Operations that were acknowledged, over all indices.
    pub(super) fn operations(&self) -> u64 {
        self.books.iter().map(Book::operations).sum()
    }

    /// Writes that were acknowledged, rejected, and neither.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let add = |sum: (u64, u64, u64), more: (u64, u64, u64)| {
            (sum.0 + more.0, sum.1 + more.1, sum.2 + more.2)
        };
        self.books.iter().map(|book| book.ledger.borrow().counts()).fold((0, 0, 0), add)
    }

    /// Why a writer has ended, if one has.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failed.borrow_mut().take()
    }

    /// Has writers write the corpus; they end by themselves.
    pub(super) fn fill(self: &Rc<Self>) {
        for (number, book) in self.books.iter().enumerate() {
            let first = book.documents.start;
            for part in portions(book.documents.end - first, self.clients) {
                self.start(Part {
                    book: number,
                    documents: first + part.start..first + part.end,
                    every: None,
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

    /// Has writers write at a rate until [`Driver::stop`].
    pub(super) fn begin(self: &Rc<Self>, rate: Background) {
        for (number, book) in self.books.iter().enumerate() {
            let each = rate.documents_per_s as f64 * book.share / f64::from(self.clients);
            let every = self.bulk_documents as f64 / each.max(1e-3);
            for _ in 0..self.clients {
                let writer = self.writers.replace(self.writers.get() + 1);
                let from = self.corpus_documents + writer * ROOM;
                self.start(Part {
                    book: number,
                    documents: from..from + ROOM,
                    every: Some(Duration::from_secs_f64(every)),
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
        let task = self.env.spawn("writes documents", async move {
            if let Err(error) = driver.write(&part).await {
                driver.failed.borrow_mut().get_or_insert(error);
            }
        });
        self.tasks.borrow_mut().push(task);
    }

    async fn write(&self, part: &Part) -> Result<(), Error> {
        let mut writer = Writer {
            reader: DocumentReader::new(&self.source, self.seed, part.documents.clone())?,
            chance: Random::new(self.seed, FAMILY, part.documents.start),
            written: Vec::new(),
        };
        let mut next = self.env.now();
        loop {
            while !self.stops.get() && self.env.now() < next {
                let look = self.env.now() + LOOK_EVERY;
                self.env.sleep_until(next.min(look)).await;
            }
            if self.stops.get() {
                return Ok(());
            }
            next = part.every.map_or(next, |every| next + every);
            let batch = self.batch(part, &mut writer)?;
            if batch.writes.is_empty() {
                return Ok(());
            }
            if !self.send(&self.books[part.book], batch).await {
                self.env.sleep(AFTER_FAILURE).await;
            }
        }
    }

    /// The next bulk request, entered in the books. A document is in it once.
    fn batch(&self, part: &Part, writer: &mut Writer) -> Result<Batch, Error> {
        let book = &self.books[part.book];
        let mut ledger = book.ledger.borrow_mut();
        let (mut batch, mut used, mut source) = (Batch::default(), BTreeSet::new(), Vec::new());
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
                let content = store::document_hash(&format!("{document:x}"), &source);
                (document, Action::Index { content })
            };
            used.insert(document);
            let id = format!("{document:x}");
            let shard = shard_of(&id, book.shards);
            let name = if action == Action::Delete { "delete" } else { "index" };
            batch
                .body
                .extend_from_slice(format!("{{\"{name}\":{{\"_id\":\"{id}\"}}}}\n").as_bytes());
            if action != Action::Delete {
                batch.body.extend_from_slice(&source);
                batch.body.push(b'\n');
            }
            batch.writes.push((ledger.begin(&id, shard, action), shard));
        }
        Ok(batch)
    }

    /// Sends a bulk request to the next node and enters what was answered; whether anything was.
    async fn send(&self, book: &Book, batch: Batch) -> bool {
        let turn = self.turn.replace(self.turn.get().wrapping_add(1));
        let address = &self.addresses[turn % self.addresses.len()];
        let path = format!("/{}/_bulk?filter_path={ANSWERED}", book.index);
        let answer = self.client.send(address, "POST", &path, Bytes::from(batch.body)).await;
        let (items, otherwise) = match answer.and_then(|answer| answer.json()) {
            Ok(answer) => (answer["items"].as_array().cloned().unwrap_or_default(), Fate::Unknown),
            Err(clusters::Error::Refused { status: 400..500, .. }) => (Vec::new(), Fate::Rejected),
            Err(_) => (Vec::new(), Fate::Unknown),
        };
        let now = self.env.now();
        let mut ledger = book.ledger.borrow_mut();
        for (place, (write, shard)) in batch.writes.iter().enumerate() {
            let fate = items.get(place).map_or(otherwise, |item: &Value| Fate::of_bulk_item(item));
            ledger.settle(write, fate);
            if let Fate::Acknowledged { seq_no, .. } = fate {
                book.note(now, *shard, seq_no);
            }
        }
        !items.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Book {
        Book {
            index: "a".to_owned(),
            shards: 2,
            ledger: RefCell::default(),
            documents: 0..10,
            share: 1.0,
            done: RefCell::new(vec![0; 2]),
            history: RefCell::default(),
        }
    }

    #[test]
    fn the_lag_is_what_the_leader_has_and_since_when() {
        let book = book();
        let at = |s: u64| Time::default() + Duration::from_secs(s);
        assert_eq!(book.lag(&[0, 0]), (0, None));
        book.note(at(1), 0, 9);
        book.note(at(2), 1, 4);
        book.note(at(3), 0, 19);
        assert_eq!(book.operations(), 25);
        assert_eq!(book.lag(&[]), (25, Some(at(1))));
        assert_eq!(book.lag(&[10, 0]), (15, Some(at(2))));
        assert_eq!(book.lag(&[12, 5]), (8, Some(at(3))));
        // It may have what nobody answered.
        assert_eq!(book.lag(&[21, 5]), (0, None));
        book.note(at(4), 0, 3);
        assert_eq!(book.operations(), 25, "an older operation adds nothing");
    }
}
