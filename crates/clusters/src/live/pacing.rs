//! How often each question is asked: with every observation what changes every second, rarely what changes slowly. A
//! pure state machine.
//!
//! Times were chosen by what each question costs nodes of OpenSearch (docs/benchmarks): `_nodes/stats` twice as much
//! as `_recovery`, and that four times as much as the health.

use std::time::Duration;

use world::Time;

/// A question, or a group of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The cluster's health, while recoveries are known to go on.
    Health,
    /// Statistics of nodes.
    Nodes,
    /// Settings that are set, remote clusters, and why copies wait while their number stays the same.
    Slow,
    /// Settings that are set, where one looks for a while.
    Settings,
    /// Defaults of settings.
    Defaults,
    /// Round trips between nodes that were measured before.
    RoundTrips,
    /// Round trips between nodes that were not.
    NewPairs,
    /// Which copies wait, while their number changes all the time: see also `rest_after`.
    Waiting,
}

const QUESTIONS: usize = 8;
/// How many rows of copies a cluster is asked for in a second at most, in the mean: what they cost it and us is in
/// proportion to all of its copies, however few wait.
const ROWS_PER_S: u64 = 1000;
/// How much too early an observation may be and still ask a question.
const EARLY: Duration = Duration::from_millis(250);

impl Question {
    fn every(self) -> Duration {
        Duration::from_secs(match self {
            Question::Health | Question::Waiting | Question::Settings => 3,
            Question::Nodes | Question::NewPairs => 5,
            Question::Slow => 10,
            Question::RoundTrips => 60,
            Question::Defaults => 600,
        })
    }
}

/// How long after an answer of `rows` rows copies are not asked for again.
pub(super) fn rest_after(rows: u64) -> Duration {
    Duration::from_millis(rows.saturating_mul(1000 / ROWS_PER_S))
}

/// When each question was asked last.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacing {
    asked: [Option<Time>; QUESTIONS],
}

impl Pacing {
    /// Whether it is time to ask.
    pub(super) fn is_due(&self, question: Question, now: Time) -> bool {
        self.has_rested(question, now, question.every())
    }

    /// Whether a question was not asked for so long.
    pub(super) fn has_rested(&self, question: Question, now: Time, rest: Duration) -> bool {
        self.asked[question as usize].is_none_or(|last| now - last + EARLY >= rest)
    }

    /// Notes that a question is asked now.
    pub(super) fn ask(&mut self, question: Question, now: Time) {
        self.asked[question as usize] = Some(now);
    }

    /// Whether to ask: if it is time, or if it is `wanted` regardless. If so, it counts as asked.
    pub(super) fn take(&mut self, question: Question, now: Time, wanted: bool) -> bool {
        let asks = wanted || self.is_due(question, now);
        if asks {
            self.ask(question, now);
        }
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_at_once_and_then_in_its_own_time() {
        let at = |ms: u64| Time::default() + Duration::from_millis(ms);
        let mut pacing = Pacing::default();
        let looks = (0..=20_u64).map(|s| at((s * 1000).saturating_sub(3)));
        let asked = looks.filter(|now| pacing.take(Question::Nodes, *now, false)).count();
        assert_eq!(asked, 5, "at 0, 5, 10, 15 and 20 s");
        assert!(pacing.take(Question::Nodes, at(20_100), true));
        assert!(!pacing.is_due(Question::Nodes, at(24_000)));
        assert!(pacing.is_due(Question::Slow, at(24_000)));
    }

    #[test]
    fn a_large_cluster_is_asked_for_its_copies_less_often() {
        let at = |s: u64| Time::default() + Duration::from_secs(s);
        let mut pacing = Pacing::default();
        let rest = rest_after(20_000);
        assert!(pacing.has_rested(Question::Waiting, at(0), rest), "it was never asked");
        pacing.ask(Question::Waiting, at(0));
        assert!(!pacing.has_rested(Question::Waiting, at(19), rest));
        assert!(pacing.has_rested(Question::Waiting, at(20), rest));
        assert!(pacing.has_rested(Question::Waiting, at(1), rest_after(900)));
    }
}
