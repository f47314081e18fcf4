//! Recoveries: those that are active, how those ended that were, and the bytes of those that nobody saw.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::{Health, Node, Recovery};

use super::{NAMED_MAX, Sampler};
use crate::Result;
use crate::live::parse;
use crate::live::questions::{RECOVERY_FILTER, escape};

impl Sampler {
    /// The active recoveries, and once more those that were active before, with the bytes of those that never were. Not
    /// asked where none can be active: on a cluster of thousands of shards this request goes to all of them.
    pub(super) async fn recoveries(
        &mut self,
        nodes: &[Node],
        health: Option<&Health>,
    ) -> Result<(Vec<Recovery>, Option<u64>)> {
        let none = |count: Option<u64>| count == Some(0);
        let idle = nodes.iter().all(|node| none(node.as_source) && none(node.as_target))
            && health.is_some_and(|health| none(health.initializing) && none(health.relocating));
        let mut found = Vec::new();
        if idle {
            // This is known without asking, whatever came of the last question.
            self.gaps.remove("/_recovery");
        } else {
            let path = format!("/_recovery?active_only=true&filter_path={RECOVERY_FILTER}");
            let answer: Option<parse::Recoveries> = self.read("/_recovery", &path).await?;
            // Unknown is not none: what was active has not ended, and is looked for again.
            let Some(answer) = answer else { return Ok((Vec::new(), None)) };
            found = answer.0;
            // Some versions still show a recovery for a moment when it is done.
            found.retain(|recovery| recovery.stage != "DONE");
        }
        let active = found.clone();
        let ended: Vec<Recovery> = {
            let now: BTreeSet<_> = active.iter().map(Recovery::key).collect();
            let before = std::mem::take(&mut self.active).into_iter();
            before.filter(|before| !now.contains(&before.key())).collect()
        };
        let (ended, unseen_bytes) = self.ended(ended, &active).await?;
        found.extend(ended);
        self.active = active;
        Ok((found, unseen_bytes))
    }

    /// The final state of recoveries that are no longer active: of a short one only its first moments were observed.
    /// And the bytes of those that are shorter still, of which no moment was.
    async fn ended(
        &mut self,
        mut ended: Vec<Recovery>,
        active: &[Recovery],
    ) -> Result<(Vec<Recovery>, Option<u64>)> {
        let indices: BTreeSet<&str> =
            ended.iter().map(|recovery| recovery.index.as_str()).take(NAMED_MAX).collect();
        let mut last = Vec::new();
        if !indices.is_empty() {
            let names: Vec<String> = indices.into_iter().map(escape).collect();
            let path = format!("/{}/_recovery?filter_path={RECOVERY_FILTER}", names.join(","));
            last = self.try_ask::<parse::Recoveries>(&path).await?.unwrap_or_default().0;
        }
        let unseen_bytes = self.unseen_bytes(&last, &ended, active);
        let last: BTreeMap<_, _> = last.iter().map(|now| (now.key(), now)).collect();
        for recovery in &mut ended {
            let now = last.get(&recovery.key()).map(|now| (*now).clone());
            // A recording may have answered that before.
            if let Some(now) = now.filter(|now| now.recovered_bytes >= recovery.recovered_bytes) {
                *recovery = now;
            }
            recovery.ended = true;
        }
        Ok((ended, unseen_bytes))
    }

    /// Bytes of what ended, and was active in no observation: it began after all that was told of before. Of recoveries
    /// that take less than an observation from the next one these are many, and all the more the faster they are.
    fn unseen_bytes(
        &mut self,
        last: &[Recovery],
        ended: &[Recovery],
        active: &[Recovery],
    ) -> Option<u64> {
        let seen = || ended.iter().chain(active);
        let newest = seen().filter_map(|recovery| recovery.start_ms).max();
        let Some(before) = self.told_to_ms.filter(|_| !last.is_empty()) else {
            // What ended has been told of, also where nobody says how.
            let is_told = self.told_to_ms.is_none() || !ended.is_empty();
            self.told_to_ms = self.told_to_ms.max(newest.filter(|_| is_told));
            return None;
        };
        let known: BTreeSet<_> = seen().map(Recovery::key).collect();
        let is_unseen = |one: &&Recovery| {
            let is_later = one.start_ms.is_some_and(|start_ms| start_ms > before);
            is_later && one.stage == "DONE" && one.copies_files() && !known.contains(&one.key())
        };
        let (mut bytes, mut told_to) = (0u64, newest.map_or(before, |newest| newest.max(before)));
        for recovery in last.iter().filter(is_unseen) {
            bytes = bytes.saturating_add(recovery.recovered_bytes.unwrap_or(0));
            told_to = told_to.max(recovery.start_ms.unwrap_or(0));
        }
        self.told_to_ms = Some(told_to);
        (bytes > 0).then_some(bytes)
    }
}
