//! How long a producer waits, and for what.
//!
//! The reasons are those of `kv_engine`: `ConnHandler::PausedReason` (`engines/ep/src/connhandler.h`).

use std::time::Duration;

use world::Time;

/// What a producer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PausedReason {
    /// The consumer's window is full: an acknowledgement.
    BufferLogFull,
    /// No stream has a message ready: a write, or what a backfill reads from disk.
    ReadyListEmpty,
}

impl PausedReason {
    /// Both.
    pub const ALL: [PausedReason; 2] = [PausedReason::BufferLogFull, PausedReason::ReadyListEmpty];

    /// The field's name for it.
    pub fn name(self) -> &'static str {
        match self {
            PausedReason::BufferLogFull => "BufferLogFull",
            PausedReason::ReadyListEmpty => "ReadyListEmpty",
        }
    }
}

/// The pauses of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    now: Option<(PausedReason, Time)>,
    ended: [(u64, Duration); 2],
}

impl Pauses {
    /// It begins to wait.
    pub fn begin(&mut self, now: Time, reason: PausedReason) {
        self.now = Some((reason, now));
    }

    /// It goes on.
    pub fn end(&mut self, now: Time) {
        let Some((reason, since)) = self.now.take() else { return };
        let (count, time) = &mut self.ended[reason as usize];
        *count += 1;
        *time += now - since;
    }

    /// What it waits for now, and since when.
    pub fn now(&self) -> Option<(PausedReason, Time)> {
        self.now
    }

    /// How often and how long it waited for something, without a pause that still lasts.
    pub fn ended(&self, reason: PausedReason) -> (u64, Duration) {
        self.ended[reason as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_charged_with_its_own_time() {
        let at = |s: u64| Time(s * 1_000_000_000);
        let mut pauses = Pauses::default();
        pauses.end(at(1));
        pauses.begin(at(1), PausedReason::BufferLogFull);
        assert_eq!(pauses.now(), Some((PausedReason::BufferLogFull, at(1))));
        pauses.end(at(4));
        pauses.begin(at(5), PausedReason::ReadyListEmpty);
        pauses.end(at(6));
        pauses.begin(at(9), PausedReason::BufferLogFull);
        let ended = PausedReason::ALL.map(|reason| pauses.ended(reason));
        assert_eq!(ended, [(1, Duration::from_secs(3)), (1, Duration::from_secs(1))]);
    }
}
