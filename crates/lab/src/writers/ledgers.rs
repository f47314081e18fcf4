//! What a driver was answered: a ledger for each index that it writes to. Behind a rollover alias there is one index
//! after another, each with a ledger of its own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

use record::ledger::{Action, Fate, Ledger, RunSum, Sums};
use record::units::show_count;
use world::Time;

use crate::error::{Error, Result};
use crate::plan::{Index, Resolved};

/// What ledgers keep of each write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The write and its answer: every copy can be compared with it, document by document.
    EachWrite,
    /// What it adds to a sum, with which digests of copies can be compared. For writes that only ever add documents.
    Sums,
}

/// What was answered for one index.
pub(crate) struct IndexLedger {
    pub(crate) index: String,
    pub(crate) shards: u32,
    pub(crate) writes: RefCell<Ledger>,
    /// The sum of what was added; kept in place of the writes with [`Detail::Sums`].
    pub(crate) sums: RefCell<Sums>,
    detail: Detail,
    /// Which write target it belongs to, and how many indices of that target came before.
    target: usize,
    number: usize,
    /// Whether another index is the write index now.
    is_closed: Cell<bool>,
    /// Whether it can be left out of the lag: it is closed, and the follower had all of it.
    is_finished: Cell<bool>,
    presence: Cell<Presence>,
    /// For each shard, one above the highest sequence number that was acknowledged.
    done: RefCell<Vec<u64>>,
    /// Their sum at each moment at which it grew; a moment is dropped once the follower is past it.
    history: RefCell<VecDeque<(Time, u64)>>,
}

impl IndexLedger {
    fn new(
        index: String,
        shards: u32,
        (target, number): (usize, usize),
        detail: Detail,
    ) -> IndexLedger {
        IndexLedger {
            index,
            shards,
            writes: RefCell::default(),
            sums: RefCell::default(),
            detail,
            target,
            number,
            is_closed: Cell::default(),
            is_finished: Cell::default(),
            presence: Cell::default(),
            done: RefCell::new(vec![0; shards as usize]),
            history: RefCell::default(),
        }
    }

    /// Enters writes that are about to be sent.
    pub(super) fn begin(&self, writes: &[Sent]) {
        let mut presence = self.presence.get();
        presence.under_way += writes.len() as u64;
        presence.deletes += writes.iter().filter(|sent| sent.deletes()).count() as u64;
        self.presence.set(presence);
    }

    /// How many documents a search that is asked and answered now finds, as far as writes and answers tell: at least
    /// those that were acknowledged and that nobody deletes, at most those that were sent.
    pub(crate) fn documents(&self) -> RangeInclusive<u64> {
        let Presence { under_way, deletes, written } = self.presence.get();
        written.saturating_sub(deletes)..=self.writes.borrow().documents() as u64 + under_way
    }

    /// Enters the fate of a write in what is known to be there. Comes before the write is entered itself.
    fn answered(&self, sent: &Sent, fate: Fate) {
        let mut presence = self.presence.get();
        presence.under_way = presence.under_way.saturating_sub(1);
        if let (Sent::Write { id, .. }, Fate::Acknowledged { .. }) = (sent, fate)
            && !sent.deletes()
            && !self.writes.borrow().was_written(id)
        {
            presence.written += 1;
        }
        self.presence.set(presence);
    }

    /// Operations that were acknowledged, over all shards.
    pub(crate) fn operations(&self) -> u64 {
        self.done.borrow().iter().sum()
    }

    /// Whether it can be left out of the lag: it is closed, and the follower had all of it when it was last asked.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished.get()
    }

    /// How many operations a follower that has `follower` of each shard lacks, and when the oldest of them was
    /// acknowledged.
    pub(crate) fn lag(&self, follower: &[u64]) -> (u64, Option<Time>) {
        let done = self.done.borrow();
        let has = |shard: usize| follower.get(shard).copied().unwrap_or(0);
        let lacks = done.iter().enumerate().map(|(shard, done)| done.saturating_sub(has(shard)));
        let lag = lacks.sum();
        let whole: u64 = done.iter().sum();
        let mut history = self.history.borrow_mut();
        while history.front().is_some_and(|(_, operations)| operations + lag <= whole) {
            history.pop_front();
        }
        self.is_finished.set(lag == 0 && whole > 0 && self.is_closed.get());
        (lag, history.front().filter(|_| lag > 0).map(|(at, _)| *at))
    }

    /// Operations up to `seq_no` were acknowledged.
    fn acknowledge(&self, now: Time, shard: u32, seq_no: u64) {
        let mut done = self.done.borrow_mut();
        let of_shard = &mut done[shard as usize];
        if seq_no >= *of_shard {
            *of_shard = seq_no + 1;
            self.is_finished.set(false);
            let sum = done.iter().sum();
            let mut history = self.history.borrow_mut();
            match history.back_mut().filter(|(at, _)| *at == now) {
                Some(last) => last.1 = sum,
                None => history.push_back((now, sum)),
            }
        }
    }
}

/// What is known of how many documents there are.
#[derive(Clone, Copy, Default)]
struct Presence {
    /// Writes that were sent and not answered yet.
    under_way: u64,
    /// Deletes that were sent.
    deletes: u64,
    /// Documents of which a write was acknowledged.
    written: u64,
}

/// What writes are sent to: an index of the plan, or a rollover alias.
pub(crate) struct WriteTarget {
    /// The name in requests.
    pub(crate) name: String,
    pub(crate) shards: u32,
    /// Which documents of the corpus it is filled with, and its part of all.
    pub(crate) documents: Range<u64>,
    pub(crate) share: f64,
    /// Whether it is a rollover alias.
    pub(crate) rolls: bool,
    /// The ledger of the last known write index.
    current: RefCell<Rc<IndexLedger>>,
    /// Writes without an answer, each with the number of the write index when it was sent: it may be in that one or in
    /// any later one.
    unanswered: RefCell<Vec<(usize, Sent)>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Sent {
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

    fn deletes(&self) -> bool {
        matches!(self, Sent::Write { action: Action::Delete, .. })
    }

    fn shard(&self) -> u32 {
        match self {
            Sent::Write { shard, .. } | Sent::Run { shard, .. } => *shard,
        }
    }

    fn enter(&self, ledger: &IndexLedger, fate: Fate) {
        if ledger.detail == Detail::Sums {
            return ledger.sums.borrow_mut().enter(self.adds(), fate);
        }
        let mut writes = ledger.writes.borrow_mut();
        match self {
            Sent::Write { id, shard, action } => writes.enter(id, *shard, *action, fate),
            Sent::Run { shard, run } => writes.enter_run(*shard, *run, fate),
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

pub(crate) struct WriteLedgers {
    pub(crate) targets: Vec<WriteTarget>,
    ledgers: RefCell<Vec<Rc<IndexLedger>>>,
    pub(crate) detail: Detail,
    /// Writes that were acknowledged, rejected, and neither.
    counts: Cell<(u64, u64, u64)>,
}

impl WriteLedgers {
    /// Empty ledgers for the first index of each write target; `sizes` are the documents that each target is filled
    /// with.
    pub(crate) fn new(plan: &Resolved, sizes: &[u64], detail: Detail) -> WriteLedgers {
        let whole: u64 = sizes.iter().sum();
        let mut ledgers = Vec::new();
        let mut target = |(number, index): (usize, &Index)| {
            let first =
                Rc::new(IndexLedger::new(index.first_name(), index.shards, (number, 0), detail));
            ledgers.push(first.clone());
            WriteTarget {
                name: index.name.clone(),
                shards: index.shards,
                documents: index.documents.clone(),
                share: sizes[number] as f64 / whole.max(1) as f64,
                rolls: index.rollover.is_some(),
                current: RefCell::new(first),
                unanswered: RefCell::default(),
            }
        };
        let targets = plan.indices.iter().enumerate().map(&mut target).collect();
        WriteLedgers { targets, ledgers: RefCell::new(ledgers), detail, counts: Cell::default() }
    }

    /// Every ledger, in the order in which the driver learned of the indices.
    pub(crate) fn all(&self) -> Vec<Rc<IndexLedger>> {
        self.ledgers.borrow().clone()
    }

    /// The ledgers that count for the lag.
    pub(crate) fn open(&self) -> Vec<Rc<IndexLedger>> {
        self.ledgers.borrow().iter().filter(|ledger| !ledger.is_finished()).cloned().collect()
    }

    /// The ledger of a target's last known write index.
    pub(crate) fn current(&self, target: usize) -> Rc<IndexLedger> {
        self.targets[target].current.borrow().clone()
    }

    /// The ledger of an index. An index that the driver did not know of is the new write index.
    pub(crate) fn of(&self, target: usize, index: &str) -> Rc<IndexLedger> {
        let of = &self.targets[target];
        let current = of.current.borrow().clone();
        if current.index == index || !of.rolls {
            return current;
        }
        let known = self.ledgers.borrow().iter().find(|ledger| ledger.index == index).cloned();
        known.unwrap_or_else(|| {
            current.is_closed.set(true);
            let number = current.number + 1;
            let ledger = Rc::new(IndexLedger::new(
                index.to_owned(),
                of.shards,
                (target, number),
                self.detail,
            ));
            self.ledgers.borrow_mut().push(ledger.clone());
            of.current.replace(ledger.clone());
            ledger
        })
    }

    /// How many times a write index was replaced.
    pub(crate) fn rollovers(&self) -> u64 {
        (self.ledgers.borrow().len() - self.targets.len()) as u64
    }

    /// Operations that indices acknowledged whose place as write index another one has taken.
    pub(crate) fn rolled_operations(&self) -> u64 {
        let ledgers = self.ledgers.borrow();
        ledgers.iter().filter(|ledger| ledger.is_closed.get()).map(|l| l.operations()).sum()
    }

    /// Operations that were acknowledged, over all indices.
    pub(crate) fn operations(&self) -> u64 {
        self.ledgers.borrow().iter().map(|ledger| ledger.operations()).sum()
    }

    /// Writes that were acknowledged, rejected, and neither; a run counts for each of its documents.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        self.counts.get()
    }

    /// Fails where writes were refused and none was acknowledged: copies without a document would agree with that.
    pub(crate) fn refuse_all_rejected(&self) -> Result<()> {
        match self.counts() {
            (0, rejected, _) if rejected > 0 => {
                let why = format!("all {} that were written", show_count(rejected));
                Err(Error::Rejected { why })
            }
            _ => Ok(()),
        }
    }

    /// Enters a write that was sent while `sent_to` was the write index, with its fate; `index` is the one that
    /// acknowledged it.
    pub(crate) fn enter(
        &self,
        now: Time,
        sent_to: &Rc<IndexLedger>,
        index: Option<&str>,
        sent: Sent,
        fate: Fate,
    ) {
        if self.detail == Detail::EachWrite {
            sent_to.answered(&sent, fate);
        }
        let mut counts = self.counts.get();
        let count = sent.count();
        let target = sent_to.target;
        let ledger = index.map_or_else(|| sent_to.clone(), |index| self.of(target, index));
        match fate {
            Fate::Acknowledged { seq_no, .. } => {
                counts.0 += count;
                sent.enter(&ledger, fate);
                ledger.acknowledge(now, sent.shard(), seq_no + count - 1);
            }
            Fate::Rejected => {
                counts.1 += count;
                sent.enter(&ledger, fate);
            }
            Fate::Unknown => {
                counts.2 += count;
                // Which index it may be in is known once all of them are.
                match self.targets[target].rolls {
                    true => {
                        let mut unanswered = self.targets[target].unanswered.borrow_mut();
                        unanswered.push((sent_to.number, sent));
                    }
                    false => sent.enter(&ledger, fate),
                }
            }
        }
        self.counts.set(counts);
    }

    /// Enters the writes without an answer in every ledger where they may be. Called once nobody writes any more.
    pub(crate) fn close(&self) {
        for ledger in self.ledgers.borrow().iter() {
            let unanswered = self.targets[ledger.target].unanswered.borrow();
            for (_, sent) in unanswered.iter().filter(|(from, _)| *from <= ledger.number) {
                sent.enter(ledger, Fate::Unknown);
            }
        }
        self.targets.iter().for_each(|target| target.unanswered.borrow_mut().clear());
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
        let ledger = IndexLedger::new("a".to_owned(), 2, (0, 0), Detail::EachWrite);
        assert_eq!(ledger.lag(&[0, 0]), (0, None));
        ledger.acknowledge(at(1), 0, 9);
        ledger.acknowledge(at(2), 1, 4);
        ledger.acknowledge(at(3), 0, 19);
        assert_eq!(ledger.operations(), 25);
        assert_eq!(ledger.lag(&[]), (25, Some(at(1))));
        assert_eq!(ledger.lag(&[10, 0]), (15, Some(at(2))));
        assert_eq!(ledger.lag(&[12, 5]), (8, Some(at(3))));
        // It may have what nobody answered.
        assert_eq!(ledger.lag(&[21, 5]), (0, None));
        ledger.acknowledge(at(4), 0, 3);
        assert_eq!(ledger.operations(), 25, "an older operation adds nothing");
    }

    #[test]
    fn a_search_finds_what_was_acknowledged_and_nothing_that_was_not_sent() {
        let ledgers = rolling();
        let first = ledgers.current(0);
        let sent = |id: &str, action| Sent::Write { id: id.to_owned(), shard: 0, action };
        let index = |id: &str| sent(id, Action::Index { content: 1 });
        let mut seq_no = 0;
        let mut enter = |sent: Sent, fate: Option<Fate>| {
            seq_no += 1;
            let fate = fate.unwrap_or(Fate::Acknowledged { seq_no, version: 1 });
            ledgers.enter(at(1), &first, None, sent, fate);
        };
        let batch = ["a", "b", "c"].map(index);
        first.begin(&batch);
        assert_eq!(first.documents(), 0..=3, "under way");
        let [a, b, c] = batch;
        enter(a, None);
        enter(b, None);
        enter(c, Some(Fate::Rejected));
        assert_eq!(first.documents(), 2..=3);
        let update = [index("a")];
        first.begin(&update);
        enter(index("a"), None);
        assert_eq!(first.documents(), 2..=3, "no new document");
        first.begin(&[sent("b", Action::Delete)]);
        assert_eq!(first.documents(), 1..=4, "it may be gone");
    }

    fn rolling() -> WriteLedgers {
        let first =
            Rc::new(IndexLedger::new("logs-000001".to_owned(), 1, (0, 0), Detail::EachWrite));
        let target = WriteTarget {
            name: "logs".to_owned(),
            shards: 1,
            documents: 0..1,
            share: 1.0,
            rolls: true,
            current: RefCell::new(first.clone()),
            unanswered: RefCell::default(),
        };
        let (ledgers, detail) = (RefCell::new(vec![first]), Detail::EachWrite);
        WriteLedgers { targets: vec![target], ledgers, detail, counts: Cell::default() }
    }

    #[test]
    fn nothing_but_refused_writes_is_no_run() {
        let ledgers = rolling();
        let first = ledgers.current(0);
        let run = || Sent::Run { shard: 0, run: RunSum { documents: 5, content: 7 } };
        assert!(ledgers.refuse_all_rejected().is_ok(), "nothing was written");
        ledgers.enter(at(1), &first, None, run(), Fate::Rejected);
        let refused = ledgers.refuse_all_rejected().unwrap_err().to_string();
        assert!(refused.contains("all 5 that were written"), "{refused}");
        ledgers.enter(at(2), &first, None, run(), Fate::Acknowledged { seq_no: 0, version: 1 });
        assert!(ledgers.refuse_all_rejected().is_ok());
    }

    #[test]
    fn what_got_no_answer_may_be_in_any_index_from_then_on() {
        let ledgers = rolling();
        let run = |documents: u64| Sent::Run { shard: 0, run: RunSum { documents, content: 7 } };
        let ack = |seq_no: u64| Fate::Acknowledged { seq_no, version: 1 };
        let first = ledgers.current(0);
        ledgers.enter(at(1), &first, Some("logs-000001"), run(10), ack(0));
        let second = ledgers.of(0, "logs-000002");
        ledgers.enter(at(2), &second, None, run(5), Fate::Unknown);
        // It was sent before the rollover, and came after it.
        ledgers.enter(at(3), &first, Some("logs-000003"), run(20), ack(0));
        assert_eq!((ledgers.counts(), ledgers.rollovers()), ((30, 0, 5), 2));
        assert_eq!(ledgers.current(0).index, "logs-000003");
        assert_eq!((ledgers.operations(), ledgers.rolled_operations()), (30, 10));
        assert_eq!(first.lag(&[10]), (0, None));
        assert_eq!(ledgers.open().len(), 2, "the first is closed, and the follower has all of it");
        ledgers.close();
        let counts: Vec<_> =
            ledgers.all().iter().map(|ledger| ledger.writes.borrow().counts()).collect();
        assert_eq!(counts, [(10, 0, 0), (0, 0, 5), (20, 0, 5)]);
    }
}
