//! Takeover: what the producer of a moving vbucket does after the items of the stream are sent.
//!
//! The order (`kv_engine/docs/dcp/rebalance.md`): drain with markers that ask for an answer; SET_VBUCKET_STATE(pending)
//! and its answer; the own copy is dead from here on, so nothing new is written; drain what was written meanwhile;
//! SET_VBUCKET_STATE(active) and its answer; STREAM_END. At no moment are both copies active. A connection that breaks
//! while the own copy is dead and the consumer's is not yet active leaves no active copy; the cluster manager chooses
//! one.

use crate::codec::VbucketState;

/// The phase of a takeover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Items are sent; the own copy takes writes.
    #[default]
    Draining,
    /// SET_VBUCKET_STATE(pending) was sent.
    Pending,
    /// The own copy is dead; the rest is sent.
    DrainingRest,
    /// SET_VBUCKET_STATE(active) was sent.
    Activating,
    /// STREAM_END may be sent.
    Done,
}

/// What the producer does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeoverStep {
    /// Wait for the consumer's answers.
    Await,
    /// Send SET_VBUCKET_STATE with this state.
    SendState(VbucketState),
    /// End the stream.
    End,
}

/// The producer's side of a takeover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Takeover {
    phase: Phase,
    unanswered_markers: u32,
}

impl Takeover {
    /// A marker that asks for an answer was sent.
    pub(crate) fn marker_sent(&mut self) {
        self.unanswered_markers += 1;
    }

    /// The consumer answered a marker.
    pub fn marker_answered(&mut self) {
        self.unanswered_markers = self.unanswered_markers.saturating_sub(1);
    }

    /// Whether the own copy is dead, so that the consumer's may become active.
    pub(crate) fn has_let_go(&self) -> bool {
        !matches!(self.phase, Phase::Draining | Phase::Pending)
    }

    /// The next step, once every item was sent. A state that this asks for counts as sent.
    pub fn step(&mut self) -> TakeoverStep {
        let drained = self.unanswered_markers == 0;
        match self.phase {
            Phase::Draining if drained => {
                self.phase = Phase::Pending;
                TakeoverStep::SendState(VbucketState::Pending)
            }
            Phase::DrainingRest if drained => {
                self.phase = Phase::Activating;
                TakeoverStep::SendState(VbucketState::Active)
            }
            Phase::Done => TakeoverStep::End,
            _ => TakeoverStep::Await,
        }
    }

    /// The consumer's vbucket took the state; answers whether one was sent. The own copy has to be dead from here on.
    pub fn state_answered(&mut self) -> bool {
        self.phase = match self.phase {
            Phase::Pending => Phase::DrainingRest,
            Phase::Activating => Phase::Done,
            _ => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_step_by_step_and_never_has_two_active() {
        let mut takeover = Takeover::default();
        // Answers that nobody waits for change nothing.
        takeover.marker_answered();
        takeover.marker_sent();
        assert_eq!(takeover.step(), TakeoverStep::Await);
        assert!(!takeover.state_answered());
        takeover.marker_answered();
        assert_eq!(takeover.step(), TakeoverStep::SendState(VbucketState::Pending));
        assert_eq!(takeover.step(), TakeoverStep::Await);
        assert!(takeover.state_answered());
        // What was written in between is sent before the other copy is active.
        takeover.marker_sent();
        assert_eq!(takeover.step(), TakeoverStep::Await);
        takeover.marker_answered();
        assert_eq!(takeover.step(), TakeoverStep::SendState(VbucketState::Active));
        assert!(takeover.state_answered());
        assert_eq!(takeover.step(), TakeoverStep::End);
    }
}
