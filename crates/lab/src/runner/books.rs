//! The books of a driver: what it was answered, for each index that it writes to. An index that rolls over is a family of
//! indices behind one alias.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use record::ledger::{Action, Fate, Ledger, RunSum, Sums};
use world::Time;

use crate::plan::{Index, Resolved};

/// What is written down of each write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Entries {
    /// All that was answered: every copy can be read beside it, document by document.
    Each,
    /// What it adds, and no more: digests of copies can be compared with the sum. For writes that only ever add.
    Sums,
}

/// The books of one index.
pub(super) struct Book {
    pub(super) index: String,
    pub(super) shards: u32,
    pub(super) ledger: RefCell<Ledger>,
    /// What was added; kept in place of the ledger.
    pub(super) sums: RefCell<Sums>,
    entries: Entries,
    /// Which family it is of, and the how manieth.
    family: usize,
    number: usize,
    /// Whether another index takes the writes now.
    is_closed: Cell<bool>,
    /// Whether nothing more is expected of it: it is closed, and the follower had all of it.
    is_settled: Cell<bool>,
    /// Of each shard, one above the highest operation that was acknowledged.
    done: RefCell<Vec<u64>>,
    /// Their sum, when it grew; older moments go once the follower is past them.
    history: RefCell<VecDeque<(Time, u64)>>,
}

impl Book {
    fn new(index: String, shards: u32, (family, number): (usize, usize), entries: Entries) -> Book {
        Book {
            index,
            shards,
            ledger: RefCell::default(),
            sums: RefCell::default(),
            entries,
            family,
            number,
            is_closed: Cell::default(),
            is_settled: Cell::default(),
            done: RefCell::new(vec![0; shards as usize]),
            history: RefCell::default(),
        }
    }

    /// Operations that were acknowledged, over all shards.
    pub(super) fn operations(&self) -> u64 {
        self.done.borrow().iter().sum()
    }

    /// Whether nothing more is expected of it.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.get()
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
        self.is_settled.set(lag == 0 && whole > 0 && self.is_closed.get());
        (lag, history.front().filter(|_| lag > 0).map(|(at, _)| *at))
    }

    /// Operations up to `seq_no` were acknowledged.
    fn note(&self, now: Time, shard: u32, seq_no: u64) {
        let mut done = self.done.borrow_mut();
        let of_shard = &mut done[shard as usize];
        if seq_no >= *of_shard {
            *of_shard = seq_no + 1;
            self.is_settled.set(false);
            let sum = done.iter().sum();
            let mut history = self.history.borrow_mut();
            match history.back_mut().filter(|(at, _)| *at == now) {
                Some(last) => last.1 = sum,
                None => history.push_back((now, sum)),
            }
        }
    }
}

/// An index of the plan: itself, or behind its alias one after another.
pub(super) struct Family {
    /// What writes are sent to.
    pub(super) name: String,
    pub(super) shards: u32,
    /// Which documents of the corpus it is filled with, and its part of all.
    pub(super) documents: Range<u64>,
    pub(super) share: f64,
    /// Whether it is an alias.
    pub(super) rolls: bool,
    /// The index that took its writes when it was last heard of.
    current: RefCell<Rc<Book>>,
    /// What got no answer, and the number of the index that took the writes when it was sent: it may be in any from
    /// there on.
    unanswered: RefCell<Vec<(usize, Sent)>>,
}

/// A write, or a run of documents.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    Write { id: String, shard: u32, action: Action },
    Run { shard: u32, run: RunSum },
}

impl Sent {
    /// Writes that it counts for.
    fn count(&self) -> u64 {
        match self {
            Sent::Write { .. } => 1,
            Sent::Run { run, .. } => run.documents,
        }
    }

    fn shard(&self) -> u32 {
        match self {
            Sent::Write { shard, .. } | Sent::Run { shard, .. } => *shard,
        }
    }

    fn enter(&self, book: &Book, fate: Fate) {
        if book.entries == Entries::Sums {
            return book.sums.borrow_mut().enter(self.adds(), fate);
        }
        let mut ledger = book.ledger.borrow_mut();
        match self {
            Sent::Write { id, shard, action } => ledger.enter(id, *shard, *action, fate),
            Sent::Run { shard, run } => ledger.enter_run(*shard, *run, fate),
        }
    }

    /// What it adds to a copy. A delete adds nothing.
    fn adds(&self) -> RunSum {
        match self {
            Sent::Write { action: Action::Delete, .. } => RunSum::default(),
            Sent::Write {
                action: Action::Index { content } | Action::Create { content }, ..
            } => RunSum { documents: 1, content: *content },
            Sent::Run { run, .. } => *run,
        }
    }
}

/// All books of a driver.
pub(super) struct Books {
    pub(super) families: Vec<Family>,
    books: RefCell<Vec<Rc<Book>>>,
    pub(super) entries: Entries,
    /// Writes that were acknowledged, rejected, and neither.
    counts: Cell<(u64, u64, u64)>,
}

impl Books {
    /// Empty ones, for the first index of each family. `sizes` has the documents that each is filled with.
    pub(super) fn new(plan: &Resolved, sizes: &[u64], entries: Entries) -> Books {
        let whole: u64 = sizes.iter().sum();
        let mut books = Vec::new();
        let mut family = |(number, index): (usize, &Index)| {
            let first = Rc::new(Book::new(index.first_name(), index.shards, (number, 0), entries));
            books.push(first.clone());
            Family {
                name: index.name.clone(),
                shards: index.shards,
                documents: index.documents.clone(),
                share: sizes[number] as f64 / whole.max(1) as f64,
                rolls: index.rollover.is_some(),
                current: RefCell::new(first),
                unanswered: RefCell::default(),
            }
        };
        let families = plan.indices.iter().enumerate().map(&mut family).collect();
        Books { families, books: RefCell::new(books), entries, counts: Cell::default() }
    }

    /// Every book, in the order in which their indices were heard of.
    pub(super) fn all(&self) -> Vec<Rc<Book>> {
        self.books.borrow().clone()
    }

    /// Those of which more is expected.
    pub(super) fn open(&self) -> Vec<Rc<Book>> {
        self.books.borrow().iter().filter(|book| !book.is_settled()).cloned().collect()
    }

    /// The index that takes the writes of a family, as far as is known.
    pub(super) fn current(&self, family: usize) -> Rc<Book> {
        self.families[family].current.borrow().clone()
    }

    /// The book of an index; a new one if it was never heard of, which then takes the writes.
    pub(super) fn of(&self, family: usize, index: &str) -> Rc<Book> {
        let of = &self.families[family];
        let current = of.current.borrow().clone();
        if current.index == index || !of.rolls {
            return current;
        }
        let known = self.books.borrow().iter().find(|book| book.index == index).cloned();
        known.unwrap_or_else(|| {
            current.is_closed.set(true);
            let number = current.number + 1;
            let book =
                Rc::new(Book::new(index.to_owned(), of.shards, (family, number), self.entries));
            self.books.borrow_mut().push(book.clone());
            of.current.replace(book.clone());
            book
        })
    }

    /// Indices that took over from another.
    pub(super) fn rollovers(&self) -> u64 {
        (self.books.borrow().len() - self.families.len()) as u64
    }

    /// Operations that were acknowledged, over all indices.
    pub(super) fn operations(&self) -> u64 {
        self.books.borrow().iter().map(|book| book.operations()).sum()
    }

    /// Writes that were acknowledged, rejected, and neither; a run counts for each of its documents.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        self.counts.get()
    }

    /// Enters what was sent while `sent_to` took the writes, and what became of it; acknowledged by `index`.
    pub(super) fn enter(
        &self,
        now: Time,
        sent_to: &Rc<Book>,
        index: Option<&str>,
        sent: Sent,
        fate: Fate,
    ) {
        let mut counts = self.counts.get();
        let count = sent.count();
        let family = sent_to.family;
        let book = index.map_or_else(|| sent_to.clone(), |index| self.of(family, index));
        match fate {
            Fate::Acknowledged { seq_no, .. } => {
                counts.0 += count;
                sent.enter(&book, fate);
                book.note(now, sent.shard(), seq_no + count - 1);
            }
            Fate::Rejected => {
                counts.1 += count;
                sent.enter(&book, fate);
            }
            Fate::Unknown => {
                counts.2 += count;
                // Which index it is in nobody knows until all of them are.
                match self.families[family].rolls {
                    true => {
                        let mut unanswered = self.families[family].unanswered.borrow_mut();
                        unanswered.push((sent_to.number, sent));
                    }
                    false => sent.enter(&book, fate),
                }
            }
        }
        self.counts.set(counts);
    }

    /// Enters what got no answer in every book where it may be. Nobody writes any more.
    pub(super) fn close(&self) {
        for book in self.books.borrow().iter() {
            let unanswered = self.families[book.family].unanswered.borrow();
            for (_, sent) in unanswered.iter().filter(|(from, _)| *from <= book.number) {
                sent.enter(book, Fate::Unknown);
            }
        }
        self.families.iter().for_each(|family| family.unanswered.borrow_mut().clear());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(s: u64) -> Time {
        Time::default() + Duration::from_secs(s)
    }

    #[test]
    fn the_lag_is_what_the_leader_has_and_since_when() {
        let book = Book::new("a".to_owned(), 2, (0, 0), Entries::Each);
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

    fn rolling() -> Books {
        let first = Rc::new(Book::new("logs-000001".to_owned(), 1, (0, 0), Entries::Each));
        let family = Family {
            name: "logs".to_owned(),
            shards: 1,
            documents: 0..1,
            share: 1.0,
            rolls: true,
            current: RefCell::new(first.clone()),
            unanswered: RefCell::default(),
        };
        let (books, entries) = (RefCell::new(vec![first]), Entries::Each);
        Books { families: vec![family], books, entries, counts: Cell::default() }
    }

    #[test]
    fn what_got_no_answer_may_be_in_any_index_from_then_on() {
        let books = rolling();
        let run = |documents: u64| Sent::Run { shard: 0, run: RunSum { documents, content: 7 } };
        let ack = |seq_no: u64| Fate::Acknowledged { seq_no, version: 1 };
        let first = books.current(0);
        books.enter(at(1), &first, Some("logs-000001"), run(10), ack(0));
        let second = books.of(0, "logs-000002");
        books.enter(at(2), &second, None, run(5), Fate::Unknown);
        // It was sent before the rollover, and came after it.
        books.enter(at(3), &first, Some("logs-000003"), run(20), ack(0));
        assert_eq!((books.counts(), books.rollovers()), ((30, 0, 5), 2));
        assert_eq!(books.current(0).index, "logs-000003");
        assert_eq!(books.operations(), 30);
        assert_eq!(first.lag(&[10]), (0, None));
        assert_eq!(books.open().len(), 2, "the first is closed, and the follower has all of it");
        books.close();
        let counts: Vec<_> = books.all().iter().map(|book| book.ledger.borrow().counts()).collect();
        assert_eq!(counts, [(10, 0, 0), (0, 0, 5), (20, 0, 5)]);
    }
}
