//! Which operations of the history a copy has processed, when they arrive out of order.
//!
//! The local checkpoint is the highest sequence number below which nothing is missing, as in Elasticsearch.

use std::collections::BTreeMap;
use std::ops::Range;

/// Processed sequence numbers: a prefix of the history and islands above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocalCheckpointTracker {
    /// Everything below is processed.
    next: u64,
    /// Processed ranges above, start to end (exclusive); they neither touch nor overlap.
    islands: BTreeMap<u64, u64>,
    max: Option<u64>,
}

impl LocalCheckpointTracker {
    /// The state of a commit: all up to `local_checkpoint` is processed, `max_seq_no` was seen.
    pub(crate) fn new(local_checkpoint: Option<u64>, max_seq_no: Option<u64>) -> Self {
        LocalCheckpointTracker {
            next: local_checkpoint.map_or(0, |c| c + 1),
            islands: BTreeMap::new(),
            max: max_seq_no.max(local_checkpoint),
        }
    }

    pub(crate) fn contains(&self, seq_no: u64) -> bool {
        seq_no < self.next
            || self.islands.range(..=seq_no).next_back().is_some_and(|(_, end)| seq_no < *end)
    }

    /// What of a range was not processed, in order.
    pub(crate) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = range.start.max(self.next);
        let before = self.islands.range(..=at).next_back().map(|(_, end)| *end);
        at = at.max(before.unwrap_or(at));
        for (&start, &end) in self.islands.range(at..range.end.max(at)) {
            missing.push(at..start);
            at = end;
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }

    /// What was processed above the checkpoint, in order.
    pub(crate) fn above(&self) -> Vec<Range<u64>> {
        self.islands.iter().map(|(&start, &end)| start..end).collect()
    }

    /// Marks adjacent operations as processed. Marking one twice changes nothing.
    pub(crate) fn mark_range(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.max = self.max.max(Some(range.end - 1));
        let (mut start, mut end) = (range.start, range.end);
        if start > self.next {
            if let Some((&s, &e)) = self.islands.range(..=start).next_back()
                && e >= start
            {
                (start, end) = (s, end.max(e));
            }
            while let Some((&s, &e)) = self.islands.range(start..=end).next() {
                self.islands.remove(&s);
                end = end.max(e);
            }
            self.islands.insert(start, end);
            return;
        }
        self.next = self.next.max(end);
        while let Some((&s, &e)) = self.islands.first_key_value()
            && s <= self.next
        {
            self.islands.remove(&s);
            self.next = self.next.max(e);
        }
    }

    /// The local checkpoint; none while operation 0 is missing.
    pub(crate) fn checkpoint(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// The highest sequence number seen; none before the first.
    pub(crate) fn max_seq_no(&self) -> Option<u64> {
        self.max
    }

    /// What is missing below the highest sequence number, in order.
    pub(crate) fn gaps(&self) -> Vec<Range<u64>> {
        self.missing(0..self.max.map_or(0, |max| max + 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A small generator, so that the crate needs no random numbers for one test.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *state >> 33
    }

    #[test]
    fn agrees_with_a_plain_set_in_any_order() {
        for seed in 0..200 {
            let mut state = seed;
            let mut tracker = LocalCheckpointTracker::default();
            let mut set = BTreeSet::new();
            for _ in 0..60 {
                let start = next(&mut state) % 50;
                let end = start + next(&mut state) % 5;
                tracker.mark_range(start..end);
                set.extend(start..end);
                let missing = |seq_no: &u64| !set.contains(seq_no);
                let first_gap = (0..).find(missing).unwrap_or(0);
                assert_eq!(tracker.checkpoint(), first_gap.checked_sub(1), "seed {seed}");
                assert_eq!(tracker.max_seq_no(), set.last().copied(), "seed {seed}");
                for seq_no in 0..60 {
                    assert_eq!(tracker.contains(seq_no), set.contains(&seq_no), "seed {seed}");
                }
                let (from, to) = (next(&mut state) % 55, next(&mut state) % 55);
                let found: Vec<u64> = tracker.missing(from..to).into_iter().flatten().collect();
                assert_eq!(found, (from..to).filter(missing).collect::<Vec<_>>(), "seed {seed}");
                let above: Vec<u64> = tracker.above().into_iter().flatten().collect();
                let islands = set.iter().copied().filter(|seq_no| *seq_no > first_gap);
                assert_eq!(above, islands.collect::<Vec<_>>(), "seed {seed}");
                let gaps: Vec<u64> = tracker.gaps().into_iter().flatten().collect();
                let top = set.last().map_or(0, |last| last + 1);
                assert_eq!(gaps, (0..top).filter(missing).collect::<Vec<_>>(), "seed {seed}");
            }
        }
    }
}
