//! Which of the copies that wait are explained in a look: of many, a few.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::WaitingCopy;

/// Explanations that are asked for in one look.
const EXPLAINED_MAX: usize = 3;

/// What an explanation is of: the index, the shard, and whether it is of the primary.
type Key = (String, u32, bool);

fn key(copy: &WaitingCopy) -> Key {
    (copy.index.clone(), copy.shard, copy.primary)
}

/// Whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// What had its turn, until everything had.
    had: BTreeSet<Key>,
}

impl Turns {
    /// The copies to explain now, of those that wait. One explanation is of all copies of a slice: they are next to
    /// each other in `waiting`, and differ only in how they came to wait.
    ///
    /// For each answer in `before`, the copies as last explained, with the deciders that gave it, one copy is explained
    /// again: what was found is found anew, or known to be over. The others take turns: primaries first, for replicas
    /// mostly wait for theirs, and of each index one copy before another.
    pub(super) fn choose<'c>(
        &mut self,
        waiting: &'c mut [WaitingCopy],
        before: &[WaitingCopy],
    ) -> Vec<&'c mut [WaitingCopy]> {
        let is_same = |a: &WaitingCopy, b: &WaitingCopy| {
            (a.shard, a.primary, &a.state) == (b.shard, b.primary, &b.state)
        };
        let mut all: Vec<(usize, &'c mut [WaitingCopy])> = waiting
            .chunk_by_mut(|a, b| a.index == b.index)
            .flat_map(|copies| {
                let same = copies.chunk_by_mut(is_same);
                same.filter(|copies| copies[0].state == "UNASSIGNED").enumerate()
            })
            .collect();
        all.sort_by_key(|(at, copies)| (!copies[0].primary, *at));
        let keys = all.iter().map(|(_, copies)| key(&copies[0]));
        self.had = keys.filter(|key| self.had.contains(key)).collect();
        if self.had.len() == all.len() {
            self.had.clear();
        }
        let earlier = |copy: &WaitingCopy| {
            let answer = copy.can_allocate.clone()?;
            let deciders = copy.decisions.iter().map(|one| one.decider.clone());
            Some((key(copy), (answer, deciders.collect())))
        };
        let earlier: BTreeMap<Key, (String, BTreeSet<String>)> =
            before.iter().filter_map(earlier).collect();
        let mut answers = BTreeSet::new();
        let mut sorted = Vec::new();
        for (_, copies) in all {
            let key = key(&copies[0]);
            // One turn at least is for the others.
            let is_again = answers.len() < EXPLAINED_MAX - 1
                && earlier.get(&key).is_some_and(|answer| answers.insert(answer));
            sorted.push(((!is_again, self.had.contains(&key)), key, copies));
        }
        sorted.sort_by_key(|(place, ..)| *place);
        let mut chosen = Vec::new();
        for (_, key, copies) in sorted.into_iter().take(EXPLAINED_MAX) {
            self.had.insert(key);
            chosen.push(copies);
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use record::observation::Decision;

    use super::*;

    fn waits(index: &str, shard: u32, primary: bool) -> WaitingCopy {
        let (index, state) = (index.to_owned(), "UNASSIGNED".to_owned());
        WaitingCopy { index, shard, primary, state, ..WaitingCopy::default() }
    }

    /// What is explained in one look, after `before`. Copies of `logs` wait for a slot, and all others are refused:
    /// those of `full` by another decider.
    fn explained(
        turns: &mut Turns,
        copies: &[WaitingCopy],
        before: &mut Vec<WaitingCopy>,
    ) -> Vec<String> {
        let mut waiting = copies.to_vec();
        let mut names = Vec::new();
        for same in turns.choose(&mut waiting, before) {
            let one = &same[0];
            let kind = if one.primary { "p" } else { "r" };
            names.push(format!("{}{}{kind}*{}", one.index, one.shard, same.len()));
            let answer = if one.index == "logs" { "throttled" } else { "no" };
            let decider = if one.index == "full" { "disk_threshold" } else { "same_shard" };
            for copy in same {
                copy.can_allocate = Some(answer.to_owned());
                copy.decisions = vec![Decision { decider: decider.into(), ..Decision::default() }];
            }
        }
        *before = waiting;
        names
    }

    #[test]
    fn every_copy_has_its_turn_and_what_was_found_is_asked_again() {
        let logs = (0..4).map(|shard| waits("logs", shard, false));
        let stuck = [waits("stuck", 0, false), waits("stuck", 0, false)];
        let coming = WaitingCopy { state: "INITIALIZING".into(), ..waits("logs", 9, false) };
        let mut copies: Vec<WaitingCopy> = logs.chain([coming]).chain(stuck).collect();
        let (mut turns, mut before) = (Turns::default(), Vec::new());
        let mut look = |copies: &[WaitingCopy]| explained(&mut turns, copies, &mut before);
        // Of each index one, and both replicas of a shard by one explanation.
        assert_eq!(look(&copies), ["logs0r*1", "stuck0r*2", "logs1r*1"]);
        assert_eq!(look(&copies), ["logs0r*1", "stuck0r*2", "logs2r*1"]);
        assert_eq!(look(&copies), ["logs0r*1", "stuck0r*2", "logs3r*1"]);
        // All had their turns. A primary that is lost meanwhile comes before those that had not.
        assert_eq!(look(&copies), ["logs0r*1", "stuck0r*2", "logs1r*1"]);
        copies.push(waits("z", 0, true));
        assert_eq!(look(&copies), ["logs0r*1", "stuck0r*2", "z0p*1"]);
    }

    /// The trap: what two deciders refuse is refused both times, and was found again of one of them alone.
    #[test]
    fn what_two_deciders_refuse_is_asked_again_of_both() {
        let copies: Vec<WaitingCopy> =
            ["full", "s1", "s2", "s3", "s4"].map(|index| waits(index, 0, false)).into();
        let (mut turns, mut before) = (Turns::default(), Vec::new());
        for last in ["s2", "s3", "s4"] {
            let names = explained(&mut turns, &copies, &mut before);
            assert_eq!(names, ["full0r*1", "s10r*1", &*format!("{last}0r*1")]);
        }
    }

    #[test]
    fn few_copies_are_all_explained_in_every_look() {
        let copies: Vec<WaitingCopy> = (0..3).map(|shard| waits("logs", shard, false)).collect();
        let (mut turns, mut before) = (Turns::default(), Vec::new());
        for _ in 0..3 {
            assert_eq!(explained(&mut turns, &copies, &mut before).len(), 3);
        }
        assert!(turns.choose(&mut [], &before).is_empty());
    }
}
