//! Synthetic documents: runs of documents that exist only as a count and a sum of hashes.
//!
//! A copy keeps their number and the sum of their hashes, and no list. The writer knows the sum of each run that it
//! sent, so the sums of a copy are right if they equal those of the acknowledged runs: a run that is missing, that was
//! indexed twice, or that was replaced by another of the same length changes the sums. [`Sums`] counts real documents
//! that are only ever added in the same way.

use std::collections::BTreeMap;
use std::ops::Range;

use super::copy::{Copy, RunSum};
use super::fate::Fate;
use super::violation::{Rule, Violation, violation};

/// Up to this many runs without an answer, every subset of them is tried: one must explain what a copy holds. Of more,
/// their number alone is compared, unless none of them is there, or all are.
const UNANSWERED_MAX: usize = 16;

/// The sum of everything that was acknowledged, and each sum that got no answer.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    acknowledged: RunSum,
    unknown: Vec<RunSum>,
}

impl Sums {
    /// Enters what was sent, and what became of it.
    pub fn enter(&mut self, sent: RunSum, fate: Fate) {
        match fate {
            Fate::Acknowledged { .. } => self.acknowledged = self.acknowledged.plus(sent),
            Fate::Unknown => self.unknown.push(sent),
            Fate::Rejected => {}
        }
    }

    /// Counts in what was there before.
    pub fn begin_with(&mut self, there: RunSum) {
        self.acknowledged = self.acknowledged.plus(there);
    }

    /// Whether `held` is what was acknowledged, and any of what got no answer. `name` is the holder's, for the message.
    pub fn check(&self, name: &str, held: RunSum) -> Option<Violation> {
        let acknowledged = self.acknowledged;
        let all = self.unknown.iter().fold(acknowledged, |sum, run| sum.plus(*run));
        let most = all.documents;
        let text = |what: &str| {
            format!(
                "{name} holds {} such documents, of {} that were acknowledged and {most} that were sent: {what}",
                held.documents, acknowledged.documents
            )
        };
        if held.documents < acknowledged.documents {
            return Some(violation(Rule::AcknowledgedIsThere, text("some are gone")));
        }
        if held.documents > most {
            return Some(violation(Rule::NothingElseIsThere, text("some are there twice")));
        }
        // Of none of them, and of all, there is one sum alone, however many they are.
        let is_a_sum = match held.documents {
            documents if documents == acknowledged.documents => held == acknowledged,
            documents if documents == most => held == all,
            _ => self.unknown.len() > UNANSWERED_MAX || some_sum(acknowledged, &self.unknown, held),
        };
        (!is_a_sum).then(|| violation(Rule::AcknowledgedIsThere, text("they are others")))
    }
}

/// The runs of one index.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Vec<Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    shard: u32,
    run: RunSum,
    fate: Fate,
}

impl Entry {
    /// Its sequence numbers, one for each document; none if it was not acknowledged.
    fn seq_nos(&self) -> Option<Range<u64>> {
        match self.fate {
            Fate::Acknowledged { seq_no, .. } => Some(seq_no..seq_no + self.run.documents),
            _ => None,
        }
    }
}

impl Runs {
    pub(super) fn enter(&mut self, shard: u32, run: RunSum, fate: Fate) {
        self.0.push(Entry { shard, run, fate });
    }

    /// Documents that were acknowledged, rejected, and neither.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let mut counts = (0, 0, 0);
        for Entry { run, fate, .. } in &self.0 {
            match fate {
                Fate::Acknowledged { .. } => counts.0 += run.documents,
                Fate::Rejected => counts.1 += run.documents,
                Fate::Unknown => counts.2 += run.documents,
            }
        }
        counts
    }

    /// The highest number that was acknowledged in a shard.
    pub(super) fn highest(&self, shard: u32) -> Option<u64> {
        let of_shard = self.0.iter().filter(|entry| entry.shard == shard);
        of_shard.filter_map(|entry| entry.seq_nos()?.end.checked_sub(1)).max()
    }

    /// Sequence numbers that were given to two runs, or to a run and a document; `single` has those of documents.
    pub(super) fn check_answers(&self, single: &BTreeMap<(u32, u64), &str>) -> Vec<Violation> {
        let places = |entry: &Entry| Some((entry.shard, entry.seq_nos()?));
        let mut given: Vec<(u32, Range<u64>)> = self.0.iter().filter_map(places).collect();
        given.sort_by_key(|(shard, places)| (*shard, places.start, places.end));
        let mut found = Vec::new();
        for pair in given.windows(2) {
            let [(shard, one), (other_shard, other)] = pair else { continue };
            if shard == other_shard && other.start < one.end {
                found.push(violation(
                    Rule::NumbersAreGivenOnce,
                    format!("runs of shard {shard} were acknowledged as operations {one:?} and {other:?}"),
                ));
            }
        }
        for (shard, places) in &given {
            if let Some(((_, seq_no), id)) =
                single.range((*shard, places.start)..(*shard, places.end)).next()
            {
                let text = format!(
                    "[{id}] of shard {shard} was acknowledged as operation {seq_no}, and a run as {places:?}"
                );
                found.push(violation(Rule::NumbersAreGivenOnce, text));
            }
        }
        found
    }

    /// Whether a copy holds the acknowledged runs, and any of those without an answer.
    pub(super) fn check(&self, copy: &Copy) -> Option<Violation> {
        let mut sums = Sums::default();
        for Entry { run, fate, .. } in self.0.iter().filter(|entry| entry.shard == copy.shard) {
            sums.enter(*run, *fate);
        }
        sums.check(&copy.name, copy.runs)
    }
}

/// Whether `start` plus some subset of `parts` is `wanted`.
fn some_sum(start: RunSum, parts: &[RunSum], wanted: RunSum) -> bool {
    match parts.split_first() {
        None => start == wanted,
        Some((first, rest)) => {
            some_sum(start, rest, wanted) || some_sum(start.plus(*first), rest, wanted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Ledger};
    use super::*;

    const ACK: fn(u64) -> Fate = |seq_no| Fate::Acknowledged { seq_no, version: 1 };

    fn sum(documents: u64, content: u64) -> RunSum {
        RunSum { documents, content }
    }

    fn ledger(runs: &[(RunSum, Fate)]) -> Ledger {
        let mut ledger = Ledger::default();
        runs.iter().for_each(|(run, fate)| ledger.enter_run(0, *run, *fate));
        ledger
    }

    fn copy(runs: RunSum) -> Copy {
        let last = runs.documents.checked_sub(1);
        Copy {
            name: "copy".to_owned(),
            shard: 0,
            documents: Vec::new(),
            runs,
            max_seq_no: last,
            local_checkpoint: last,
        }
    }

    fn rules(ledger: &Ledger, copy: Copy) -> Vec<Rule> {
        ledger.check(&[copy]).into_iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn what_was_acknowledged_is_there_once_and_nothing_else() {
        let ledger = ledger(&[(sum(10, 5), ACK(0)), (sum(20, 7), ACK(10))]);
        assert_eq!(ledger.counts(), (30, 0, 0));
        assert_eq!(rules(&ledger, copy(sum(30, 12))), []);
        let lost = Copy { runs: sum(20, 7), ..copy(sum(30, 12)) };
        assert_eq!(rules(&ledger, lost), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, copy(sum(30, 13))), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, copy(sum(40, 17))), [Rule::NothingElseIsThere]);
        // The history must reach as far as the last of the last run.
        let short = Copy { max_seq_no: Some(28), local_checkpoint: Some(28), ..copy(sum(30, 12)) };
        assert_eq!(rules(&ledger, short), [Rule::AcknowledgedIsThere]);
    }

    #[test]
    fn what_got_no_answer_may_be_there_whole_or_not() {
        let unknown = (sum(20, 7), Fate::Unknown);
        let ledger = ledger(&[(sum(10, 5), ACK(0)), unknown, (sum(5, 1), Fate::Rejected)]);
        assert_eq!(ledger.counts(), (10, 5, 20));
        assert_eq!(rules(&ledger, copy(sum(10, 5))), []);
        assert_eq!(rules(&ledger, copy(sum(30, 12))), []);
        assert_eq!(rules(&ledger, copy(sum(20, 7))), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, copy(sum(15, 6))), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, copy(sum(31, 12))), [Rule::NothingElseIsThere]);
    }

    #[test]
    fn of_many_without_an_answer_none_or_all_may_be_there_and_not_others() {
        let unknown = (0..50).map(|content| (sum(1, content), Fate::Unknown));
        let runs: Vec<_> = std::iter::once((sum(10, 5), ACK(0))).chain(unknown).collect();
        let ledger = ledger(&runs);
        assert_eq!(rules(&ledger, copy(sum(10, 5))), []);
        assert_eq!(rules(&ledger, copy(sum(60, 5 + 1225))), []);
        assert_eq!(rules(&ledger, copy(sum(30, 0))), [], "too many to try");
        for wrong in [sum(10, 6), sum(60, 5)] {
            assert_eq!(rules(&ledger, copy(wrong)), [Rule::AcknowledgedIsThere], "{wrong:?}");
        }
    }

    #[test]
    fn numbers_are_given_once() {
        let given = |runs: &[(RunSum, Fate)], documents: u64| {
            let mut ledger = ledger(runs);
            ledger.enter("a", 0, Action::Index { content: 1 }, ACK(documents));
            let found = ledger.check(&[]);
            found.into_iter().map(|violation| violation.rule).collect::<Vec<_>>()
        };
        let (one, other) = ((sum(10, 5), ACK(0)), (sum(10, 7), ACK(10)));
        assert_eq!(given(&[one, other], 20), []);
        assert_eq!(given(&[one, (sum(10, 7), ACK(9))], 20), [Rule::NumbersAreGivenOnce]);
        assert_eq!(given(&[one, other], 19), [Rule::NumbersAreGivenOnce]);
    }
}
