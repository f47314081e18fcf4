//! How one shard of a follower keeps up with its leader's: what is read next, and what is written next.
//!
//! After Elasticsearch's `ShardFollowNodeTask`. Reads ask for ranges of the leader's history below its global
//! checkpoint, several at once; an answer may hold less than the range, then the rest is asked for before
//! anything new. When nothing is known to be there one read waits at the leader for what comes (the long poll).
//! Operations wait in a buffer, by their place in the history, and are written in batches, several at once, in
//! whatever order their ranges came. A failed request is tried again after a random wait that grows
//! ([`Backoff`]).
//!
//! The [`ReadWriteBudget`] decides how much is read and written at once: by the field's parameters, or by the path.

mod limits;
mod read_write_budget;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use world::Time;

use super::backoff::Backoff;
pub use limits::Limits;
pub use read_write_budget::{Outstanding, ReadWriteBudget};

/// One operation of the leader's history, as far as this policy looks at it.
pub trait Operation {
    /// The sequence numbers that it takes: one, or those of a batch of documents that exist only as a number.
    fn seq_nos(&self) -> Range<u64>;

    /// Bytes that it takes in a request.
    fn encoded_bytes(&self) -> u64;
}

fn count(op: &impl Operation) -> u64 {
    let seq_nos = op.seq_nos();
    seq_nos.end - seq_nos.start
}

/// Operations of the leader that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAsk {
    /// The first.
    pub from: u64,
    /// Exclusive end of a range that the leader is known to have; equals `from` in a long poll.
    pub until: u64,
    /// At most so many operations.
    pub max_ops: u64,
    /// At most so many bytes; one operation is sent whatever its size.
    pub max_bytes: u64,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order<O> {
    /// Ask the leader.
    Read(ReadAsk),
    /// Apply these, under this number.
    Write(u64, Arc<Vec<O>>),
}

/// What a leader answered to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<O> {
    /// Operations from [`ReadAsk::from`] on, ascending, without holes.
    pub ops: Vec<O>,
    /// Every in-sync copy of the leader has everything up to here.
    pub global_checkpoint: Option<u64>,
    /// The leader's highest sequence number.
    pub max_seq_no: Option<u64>,
    /// How long the request took on the leader, without waiting for what was to come.
    pub served: Duration,
    /// How long it waited there.
    pub waited: Duration,
    /// Whether the users of the leader's node suffer.
    pub pressure: bool,
}

/// What an answer brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// When it was asked for.
    pub requested_at: Time,
    /// Bytes of its operations.
    pub bytes: u64,
    /// Whether the budget limited the read: there was more to ask for.
    pub was_full: bool,
}

/// A read that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadException {
    /// First operation that it asked for.
    pub from: u64,
    /// How often it was tried again.
    pub retries: u32,
    /// What went wrong last.
    pub exception: String,
}

/// What was done so far, in the field's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the stats")]
pub struct Counts {
    pub total_read_time: Duration,
    pub total_read_remote_exec_time: Duration,
    pub successful_read_requests: u64,
    pub failed_read_requests: u64,
    pub operations_read: u64,
    pub bytes_read: u64,
    pub total_write_time: Duration,
    pub successful_write_requests: u64,
    pub failed_write_requests: u64,
    pub operations_written: u64,
    pub last_read_at: Option<Time>,
}

#[derive(Debug)]
struct Reading {
    ask: ReadAsk,
    at: Time,
    retries: u32,
    /// Estimated bytes of the answer.
    expected_bytes: u64,
    /// Whether the budget limited the read, and not the end of the leader's history.
    backlogged: bool,
}

#[derive(Debug)]
struct Writing<O> {
    ops: Arc<Vec<O>>,
    bytes: u64,
    at: Time,
    retries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    Read(u64),
    Write(u64),
}

/// One shard that follows. Sequence numbers that end in `_next` are one above the last.
#[derive(Debug)]
pub struct ShardFollower<O> {
    budget: ReadWriteBudget,
    leader_next: u64,
    leader_max_seq_no: Option<u64>,
    requested_next: u64,
    follower_global_checkpoint: Option<u64>,
    follower_max_seq_no: Option<u64>,
    /// In flight or waiting to be tried again, by their first operation.
    reads: BTreeMap<u64, Reading>,
    /// Remainders of ranges that were answered in part: from, until.
    partial: BTreeMap<u64, u64>,
    /// Operations that were read and not yet written, by the first of each answer. Answers may overlap: the only read
    /// in flight may return more than it asked for.
    buffer: BTreeMap<u64, VecDeque<O>>,
    buffer_bytes: u64,
    buffer_ops: u64,
    writes: BTreeMap<u64, Writing<O>>,
    write_number: u64,
    /// By the moment when they are due.
    retries: BTreeMap<(Time, u64), Retry>,
    retry_number: u64,
    exceptions: BTreeMap<u64, ReadException>,
    counts: Counts,
    /// When a read last brought operations; before the first, when it began.
    brought_at: Time,
}

impl<O: Operation> ShardFollower<O> {
    /// Continues after the follower's global checkpoint.
    pub fn new(
        now: Time,
        budget: ReadWriteBudget,
        global_checkpoint: Option<u64>,
        max_seq_no: Option<u64>,
    ) -> ShardFollower<O> {
        let next = global_checkpoint.map_or(0, |seq_no| seq_no + 1);
        ShardFollower {
            budget,
            leader_next: next,
            leader_max_seq_no: global_checkpoint,
            requested_next: next,
            follower_global_checkpoint: global_checkpoint,
            follower_max_seq_no: max_seq_no,
            reads: BTreeMap::new(),
            partial: BTreeMap::new(),
            buffer: BTreeMap::new(),
            buffer_bytes: 0,
            buffer_ops: 0,
            writes: BTreeMap::new(),
            write_number: 0,
            retries: BTreeMap::new(),
            retry_number: 0,
            exceptions: BTreeMap::new(),
            counts: Counts::default(),
            brought_at: now,
        }
    }

    /// The next request to send now; none until an answer is reported or [`ShardFollower::wake_at`] has come.
    pub fn next(&mut self, now: Time) -> Option<Order<O>> {
        if let Some(order) = self.due_retry(now) {
            return Some(order);
        }
        self.next_write(now).or_else(|| self.next_read(now))
    }

    /// How long a read may wait at the leader for new operations.
    pub fn poll_timeout(&self, now: Time) -> Duration {
        self.budget.read_poll_timeout(now - self.brought_at)
    }

    /// When to call [`ShardFollower::next`] again although no answer has come.
    pub fn wake_at(&self) -> Option<Time> {
        let retry = self.retries.first_key_value().map(|((at, _), _)| *at);
        let paced = if self.wants() { self.budget.wake_at(&self.outstanding()) } else { None };
        [retry, paced].into_iter().flatten().min()
    }

    fn due_retry(&mut self, now: Time) -> Option<Order<O>> {
        let (&(at, number), &retry) = self.retries.first_key_value()?;
        if at > now {
            return None;
        }
        self.retries.remove(&(at, number));
        Some(match retry {
            Retry::Read(from) => {
                let read = self.reads.get_mut(&from).expect("a read that is tried again is kept");
                read.at = now;
                Order::Read(read.ask)
            }
            Retry::Write(number) => {
                let write = self.writes.get_mut(&number).expect("and so is a write");
                write.at = now;
                Order::Write(number, write.ops.clone())
            }
        })
    }

    fn next_write(&mut self, now: Time) -> Option<Order<O>> {
        let writing = self.writes.values().map(|write| write.bytes).sum();
        let (max_ops, max_bytes) = self.budget.may_write(self.writes.len(), writing)?;
        let mut ops = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        while count < max_ops && (ops.is_empty() || bytes < max_bytes) {
            let Some(mut first) = self.buffer.first_entry() else { break };
            let op = first.get_mut().pop_front();
            if first.get().is_empty() {
                first.remove();
            }
            let Some(op) = op else { continue };
            bytes += op.encoded_bytes();
            count += self::count(&op);
            ops.push(op);
        }
        if ops.is_empty() {
            return None;
        }
        self.buffer_bytes -= bytes;
        self.buffer_ops -= count;
        self.write_number += 1;
        let (number, ops) = (self.write_number, Arc::new(ops));
        self.writes.insert(number, Writing { ops: ops.clone(), bytes, at: now, retries: 0 });
        Some(Order::Write(number, ops))
    }

    fn next_read(&mut self, now: Time) -> Option<Order<O>> {
        // There is nothing to ask for but in a long poll, which is alone in flight.
        if !self.wants() && !self.reads.is_empty() {
            return None;
        }
        let outstanding = self.outstanding();
        if let Some((&from, &until)) = self.partial.first_key_value() {
            let (max_ops, max_bytes) = self.budget.may_read(now, &outstanding)?;
            self.partial.remove(&from);
            let end = until.min(from.saturating_add(max_ops));
            if end < until {
                self.partial.insert(end, until);
            }
            return Some(self.read(now, from, end, (end - from, max_bytes), true));
        }
        let from = self.requested_next;
        if from < self.leader_next {
            let (max_ops, max_bytes) = self.budget.may_read(now, &outstanding)?;
            let until = self.leader_next.min(from.saturating_add(max_ops));
            // The only read in flight may also return operations that reached the leader meanwhile.
            let ops = if outstanding.reads == 0 { max_ops } else { until - from };
            self.requested_next = until;
            return Some(self.read(now, from, until, (ops, max_bytes), until < self.leader_next));
        }
        let limits = self.budget.may_read(now, &outstanding)?;
        Some(self.read(now, from, from, limits, false))
    }

    fn read(
        &mut self,
        now: Time,
        from: u64,
        until: u64,
        (max_ops, max_bytes): (u64, u64),
        backlogged: bool,
    ) -> Order<O> {
        let ask = ReadAsk { from, until, max_ops, max_bytes };
        let expected_bytes = self.budget.expected_bytes(until - from).min(max_bytes);
        let reading = Reading { ask, at: now, retries: 0, expected_bytes, backlogged };
        self.reads.insert(from, reading);
        Order::Read(ask)
    }

    fn outstanding(&self) -> Outstanding {
        Outstanding {
            reads: self.reads.len(),
            reading_bytes: self.reads.values().map(|read| read.expected_bytes).sum(),
            buffer_ops: self.buffer_ops,
            buffer_bytes: self.buffer_bytes,
            writing_bytes: self.writes.values().map(|write| write.bytes).sum(),
        }
    }

    /// A read was answered.
    ///
    /// # Panics
    /// If no such read is under way.
    pub fn read_done(&mut self, now: Time, ask: ReadAsk, answer: Answer<O>) -> Brought {
        let read = self.reads.remove(&ask.from).expect("only what was asked for is answered");
        self.exceptions.remove(&ask.from);
        let bytes: u64 = answer.ops.iter().map(O::encoded_bytes).sum();
        let count = answer.ops.iter().map(count).sum();
        self.counts.successful_read_requests += 1;
        self.counts.total_read_time += now - read.at;
        self.counts.total_read_remote_exec_time += answer.served;
        self.counts.operations_read += count;
        self.counts.bytes_read += bytes;
        self.counts.last_read_at = Some(now);
        if count > 0 {
            self.brought_at = now;
        }
        let trip = read_write_budget::ReadTrip {
            began: read.at,
            ops: count,
            bytes,
            waited: answer.waited,
            pressure: answer.pressure,
            was_full: read.backlogged && read.retries == 0,
        };
        self.leader_next =
            self.leader_next.max(answer.global_checkpoint.map_or(0, |seq_no| seq_no + 1));
        self.leader_max_seq_no = self.leader_max_seq_no.max(answer.max_seq_no);
        let next = answer.ops.iter().map(|op| op.seq_nos().end).fold(ask.from, u64::max);
        self.buffer_bytes += bytes;
        self.buffer_ops += count;
        if let Some(first) = answer.ops.first() {
            self.buffer.entry(first.seq_nos().start).or_default().extend(answer.ops);
        }
        self.requested_next = self.requested_next.max(next);
        if next < ask.until {
            self.partial.insert(next, ask.until);
        }
        let outstanding = self.outstanding();
        let is_behind = self.requested_next < self.leader_next;
        self.budget.read_done(now, trip, &outstanding, is_behind);
        Brought { requested_at: read.at, bytes, was_full: trip.was_full }
    }

    /// A read failed and is tried again after a pause that `random` draws, uniform over all of `u64`.
    ///
    /// # Panics
    /// If no such read is under way.
    pub fn read_failed(&mut self, now: Time, ask: ReadAsk, exception: String, random: u64) {
        let max_retry_delay = self.budget.max_retry_delay();
        let read = self.reads.get_mut(&ask.from).expect("only what was asked for fails");
        read.retries += 1;
        let retries = read.retries;
        self.counts.failed_read_requests += 1;
        self.counts.total_read_time += now - read.at;
        self.exceptions.insert(ask.from, ReadException { from: ask.from, retries, exception });
        let wait = Backoff::Follower { max_retry_delay }.delay(retries, random);
        self.retry_at(now + wait, Retry::Read(ask.from));
    }

    /// A batch was applied on every copy that is in sync.
    ///
    /// # Panics
    /// If no such write is under way.
    pub fn written(
        &mut self,
        now: Time,
        number: u64,
        global_checkpoint: Option<u64>,
        max_seq_no: Option<u64>,
    ) {
        let write = self.writes.remove(&number).expect("only what was ordered is written");
        self.counts.successful_write_requests += 1;
        self.counts.total_write_time += now - write.at;
        self.counts.operations_written += write.ops.iter().map(count).sum::<u64>();
        self.note_follower(global_checkpoint, max_seq_no);
    }

    /// Reports the checkpoints of the follower's copies.
    pub fn note_follower(&mut self, global_checkpoint: Option<u64>, max_seq_no: Option<u64>) {
        self.follower_global_checkpoint = self.follower_global_checkpoint.max(global_checkpoint);
        self.follower_max_seq_no = self.follower_max_seq_no.max(max_seq_no);
    }

    /// The lowest operation that the leader must keep: the first that not every copy has, or that a read asks for. A
    /// read that is tried again may ask for operations that all copies have made durable meanwhile.
    pub fn needed_from(&self) -> u64 {
        let lacking = self.follower_global_checkpoint.map_or(0, |seq_no| seq_no + 1);
        let asked = self.reads.keys().chain(self.partial.keys()).min();
        asked.map_or(lacking, |from| lacking.min(*from))
    }

    /// A batch could not be applied and may be tried again.
    ///
    /// # Panics
    /// If no such write is under way.
    pub fn write_failed(&mut self, now: Time, number: u64, random: u64) {
        let max_retry_delay = self.budget.max_retry_delay();
        let write = self.writes.get_mut(&number).expect("only what was ordered fails");
        write.retries += 1;
        self.counts.failed_write_requests += 1;
        self.counts.total_write_time += now - write.at;
        let wait = Backoff::Follower { max_retry_delay }.delay(write.retries, random);
        self.retry_at(now + wait, Retry::Write(number));
    }

    fn retry_at(&mut self, at: Time, retry: Retry) {
        self.retry_number += 1;
        self.retries.insert((at, self.retry_number), retry);
    }

    /// Sets the shard's share of the node's memory; the field's budget has no use for it.
    pub fn set_memory_max_bytes(&mut self, memory_max_bytes: u64) {
        self.budget.set_memory_max_bytes(memory_max_bytes);
    }

    /// The leader's global checkpoint, as of the last answer.
    pub fn leader_global_checkpoint(&self) -> Option<u64> {
        self.leader_next.checked_sub(1)
    }

    /// The leader's highest sequence number, as of the last answer.
    pub fn leader_max_seq_no(&self) -> Option<u64> {
        self.leader_max_seq_no
    }

    /// What all of the follower's copies have.
    pub fn follower_global_checkpoint(&self) -> Option<u64> {
        self.follower_global_checkpoint
    }

    /// The highest sequence number on the follower.
    pub fn follower_max_seq_no(&self) -> Option<u64> {
        self.follower_max_seq_no
    }

    /// The last operation that was asked for.
    pub fn last_requested_seq_no(&self) -> Option<u64> {
        self.requested_next.checked_sub(1)
    }

    /// Reads in flight, and those that wait to be tried again.
    pub fn outstanding_reads(&self) -> usize {
        self.reads.len()
    }

    /// Writes in flight, and those that wait to be tried again.
    pub fn outstanding_writes(&self) -> usize {
        self.writes.len()
    }

    /// Operations that wait to be written, and their bytes.
    pub fn buffered(&self) -> (u64, u64) {
        (self.buffer_ops, self.buffer_bytes)
    }

    /// Whether the shard holds operations or knows of some that it lacks. It does neither in a long poll.
    pub fn is_busy(&self) -> bool {
        self.wants() || self.memory_bytes() > 0
    }

    /// Whether the leader is known to have operations that were not asked for yet.
    fn wants(&self) -> bool {
        !self.partial.is_empty() || self.requested_next < self.leader_next
    }

    /// Bytes that the shard holds or expects: in flight, waiting, being written.
    pub fn memory_bytes(&self) -> u64 {
        let outstanding = self.outstanding();
        outstanding.reading_bytes + outstanding.buffer_bytes + outstanding.writing_bytes
    }

    /// Reads that failed and have not succeeded since.
    pub fn exceptions(&self) -> impl Iterator<Item = &ReadException> {
        self.exceptions.values()
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
