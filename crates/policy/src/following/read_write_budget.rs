//! How much is read and written at once: as the field's parameters say, or as the path carries.
//!
//! The adaptive budget has no parameter but its memory. To the controller that recoveries use ([`Adaptive`]) a read is
//! a chunk. Only reads that filled the window feed the controller: an idle leader says nothing about the path. Bytes in
//! flight, in the buffer and being written together stay within the memory, so that a follower that writes slower than
//! it reads stops reading.

use std::time::Duration;

use world::Time;

use super::Limits;
use crate::transfer::adaptive::Adaptive;
use crate::transfer::bandwidth_delay_product::REQUEST_COST_BYTES;
use crate::transfer::chunk::Delivery;
use crate::transfer::path::Trip;

/// How much at once.
#[derive(Debug)]
pub enum ReadWriteBudget {
    /// As much as the field's parameters say.
    Field(Limits),
    /// As much as the path carries.
    Adaptive(Box<AdaptiveBudget>),
}

/// Requests in flight and operations held by one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Reads in flight.
    pub reads: usize,
    /// Estimated bytes of their answers.
    pub reading_bytes: u64,
    /// Operations in the buffer.
    pub buffer_ops: u64,
    /// Their bytes.
    pub buffer_bytes: u64,
    /// Bytes that are being written.
    pub writing_bytes: u64,
}

/// The figures of a read that was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTrip {
    pub(super) began: Time,
    pub(super) ops: u64,
    pub(super) bytes: u64,
    pub(super) waited: Duration,
    pub(super) pressure: bool,
    /// Whether the budget limited the read: there was more to ask for.
    pub(super) was_full: bool,
}

/// Estimated bytes of an operation before the first was seen: about a line of a log.
const FIRST_OP_BYTES: f64 = 512.0;
/// Weight of one read in the estimate.
const OP_BYTES_STEP: f64 = 0.25;
/// The most operations of a read, however small they are: the leader holds them all before it answers.
const READ_OPS_MAX: u64 = 50_000;
/// Bytes of a long poll.
const POLL_BYTES: u64 = 1 << 20;
/// Batches that are written at once: while one is synced and replicated, the next is applied.
const WRITES_MAX: usize = 9;
/// The most bytes of a batch, as many as in the field and not more: documents are read before they are indexed, and
/// should still be in the core's cache.
const WRITE_BYTES_MAX: u64 = 2 << 20;
const WRITE_OPS_MAX: u64 = 5120;
/// As in the field.
const RETRY_DELAY_MAX: Duration = Duration::from_millis(500);
/// A link that died silently is noticed after this long at the latest.
const POLL_TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// The budget without parameters.
#[derive(Debug)]
pub struct AdaptiveBudget {
    memory_max_bytes: u64,
    op_bytes: f64,
    /// None until a read showed for the first time that the leader has more than that read returned.
    controller: Option<Adaptive>,
    was_behind: bool,
}

impl AdaptiveBudget {
    fn new(memory_max_bytes: u64) -> Self {
        AdaptiveBudget {
            memory_max_bytes,
            op_bytes: FIRST_OP_BYTES,
            controller: None,
            was_behind: false,
        }
    }

    /// Bytes that the next read asks for.
    fn read_bytes(&self) -> u64 {
        let bytes = self.controller.as_ref().map_or(POLL_BYTES, Adaptive::chunk_bytes);
        bytes.min((self.memory_max_bytes / 4).max(1))
    }

    /// Whether there is memory for so many bytes more.
    fn fits(&self, outstanding: &Outstanding, bytes: u64) -> bool {
        let held = outstanding.reading_bytes + outstanding.buffer_bytes + outstanding.writing_bytes;
        held + bytes <= self.memory_max_bytes || held == 0
    }

    /// As [`ReadWriteBudget::may_read`].
    fn may_read(&self, now: Time, outstanding: &Outstanding) -> Option<(u64, u64)> {
        let bytes = self.read_bytes();
        let fits = self.fits(outstanding, bytes);
        let path_has_room = match &self.controller {
            None => outstanding.reads == 0,
            Some(path) => {
                let len = u32::try_from(bytes).unwrap_or(u32::MAX);
                path.may_start(now, len, outstanding.reading_bytes, outstanding.reads)
            }
        };
        let ops = ((bytes as f64 / self.op_bytes) as u64).clamp(1, READ_OPS_MAX);
        // Operations differ in size: an answer may have twice the estimated bytes before it is cut.
        (fits && path_has_room).then_some((ops, bytes * 2))
    }
}

impl ReadWriteBudget {
    /// The adaptive budget, with which the shard holds no more than `memory_max_bytes`.
    pub fn adaptive(memory_max_bytes: u64) -> ReadWriteBudget {
        ReadWriteBudget::Adaptive(Box::new(AdaptiveBudget::new(memory_max_bytes)))
    }

    /// Operations and bytes that a read may ask for now; none if none may.
    pub(super) fn may_read(&self, now: Time, outstanding: &Outstanding) -> Option<(u64, u64)> {
        match self {
            ReadWriteBudget::Field(limits) => {
                let may = (outstanding.reads as u64) < limits.max_outstanding_read_requests
                    && outstanding.buffer_bytes < limits.max_write_buffer_size
                    && outstanding.buffer_ops < limits.max_write_buffer_count;
                may.then_some((
                    limits.max_read_request_operation_count.max(1),
                    limits.max_read_request_size,
                ))
            }
            ReadWriteBudget::Adaptive(budget) => budget.may_read(now, outstanding),
        }
    }

    /// Operations and bytes that a write may hold beside `writes` others of `writing_bytes`; none if none may.
    pub(super) fn may_write(&self, writes: usize, writing_bytes: u64) -> Option<(u64, u64)> {
        match self {
            ReadWriteBudget::Field(limits) => {
                let may = (writes as u64) < limits.max_outstanding_write_requests;
                may.then_some((
                    limits.max_write_request_operation_count.max(1),
                    limits.max_write_request_size,
                ))
            }
            ReadWriteBudget::Adaptive(budget) => {
                let bytes = WRITE_BYTES_MAX.min(budget.memory_max_bytes / 4);
                let may = writes == 0
                    || (writes < WRITES_MAX
                        && writing_bytes + bytes <= budget.memory_max_bytes / 2);
                may.then_some((WRITE_OPS_MAX, bytes))
            }
        }
    }

    /// Estimated bytes of so many operations; the field does not estimate.
    pub(super) fn expected_bytes(&self, ops: u64) -> u64 {
        match self {
            ReadWriteBudget::Field(_) => 0,
            ReadWriteBudget::Adaptive(budget) => (ops as f64 * budget.op_bytes) as u64,
        }
    }

    /// When a read may start although no answer has come.
    pub(super) fn wake_at(&self, outstanding: &Outstanding) -> Option<Time> {
        let ReadWriteBudget::Adaptive(budget) = self else { return None };
        let bytes = budget.read_bytes();
        if !budget.fits(outstanding, bytes) {
            return None;
        }
        let len = u32::try_from(bytes).unwrap_or(u32::MAX);
        budget.controller.as_ref()?.wake_at(len, outstanding.reading_bytes, outstanding.reads)
    }

    /// A read was answered; `outstanding` is what is held after it, and `is_behind` whether the leader has more.
    pub(super) fn read_done(
        &mut self,
        now: Time,
        trip: ReadTrip,
        outstanding: &Outstanding,
        is_behind: bool,
    ) {
        let ReadWriteBudget::Adaptive(budget) = self else { return };
        if trip.ops > 0 {
            let found = trip.bytes as f64 / trip.ops as f64;
            budget.op_bytes += OP_BYTES_STEP * (found - budget.op_bytes);
        }
        if let Some(controller) = &mut budget.controller
            && trip.was_full
        {
            let delivery = Delivery {
                requested_at: trip.began,
                throttled: Duration::ZERO,
                foreground_pressure: trip.pressure,
            };
            let took = (now - trip.began).saturating_sub(trip.waited);
            let cost = |reads: usize, bytes: u64| bytes + reads as u64 * REQUEST_COST_BYTES;
            let of_path = Trip { at: now, took, bytes: cost(1, trip.bytes) };
            let flying = cost(outstanding.reads + 1, outstanding.reading_bytes + trip.bytes);
            controller.delivered(of_path, &delivery, flying);
        }
        match &mut budget.controller {
            None if is_behind => {
                budget.controller = Some(Adaptive::new(budget.memory_max_bytes, now))
            }
            Some(controller) if is_behind && !budget.was_behind => controller.resume(now),
            _ => {}
        }
        budget.was_behind = is_behind;
    }

    pub(super) fn set_memory_max_bytes(&mut self, memory_max_bytes: u64) {
        if let ReadWriteBudget::Adaptive(budget) = self {
            budget.memory_max_bytes = memory_max_bytes;
            if let Some(controller) = &mut budget.controller {
                controller.set_memory_max_bytes(memory_max_bytes);
            }
        }
    }

    pub(super) fn max_retry_delay(&self) -> Duration {
        match self {
            ReadWriteBudget::Field(limits) => limits.max_retry_delay,
            ReadWriteBudget::Adaptive(_) => RETRY_DELAY_MAX,
        }
    }

    /// `read_poll_timeout`. Where nobody set it, it grows with the time since the last operation, so that an idle index
    /// is not polled every minute.
    pub(super) fn read_poll_timeout(&self, nothing_for: Duration) -> Duration {
        let limits = match self {
            ReadWriteBudget::Field(limits) => *limits,
            ReadWriteBudget::Adaptive(_) => Limits::default(),
        };
        match limits.may_rest {
            true => nothing_for.clamp(limits.read_poll_timeout, POLL_TIMEOUT_MAX),
            false => limits.read_poll_timeout,
        }
    }
}
