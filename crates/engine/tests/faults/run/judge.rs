//! The judgement: copies become equal once all is mended, and hold what was acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use record::ledger::{self, Ledger};
use serde_json::Value;

use super::{Stage, direct, index_of};
use crate::scenario::{Fault, LEASE_PERIOD, Side, What};

/// How long two clusters may take to become equal once all is mended, beside the time that the follower needs to read
/// what was written.
const MEND_PATIENCE: Duration = Duration::from_secs(1500);
/// How long copies must stay equal: longer than anything that was sent to a node that stood still takes.
pub(super) const STAYS_EQUAL: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What an operator does that often until all is well.
const HELP_EVERY: u32 = 40;

impl Stage {
    /// Waits until every copy is there and has the same history, and goes on having it: a node that stood still may
    /// carry out late what it was asked. Then the ledger is compared with what they hold.
    pub(super) async fn become_equal(&self, ledger: &Ledger) -> Result<(), String> {
        let (acknowledged, _, unknown) = ledger.counts();
        let reading = self.scenario.reading_takes(acknowledged + unknown);
        let give_up = self.env.now() + MEND_PATIENCE + reading;
        let mut looks = 0;
        let mut before: Option<Vec<Option<u64>>> = None;
        loop {
            if looks % HELP_EVERY == 0 {
                self.help().await;
            }
            looks += 1;
            if self.is_unfollowed() {
                self.leave_unfollowed(ledger, give_up).await?;
                continue;
            }
            let why = match self.copies().await {
                Ok(copies) => match self.unequal(&copies).await {
                    None => {
                        let ends = copies.iter().map(|copy| copy.max_seq_no).collect();
                        if before.as_ref() == Some(&ends) {
                            let broken = ledger.check(&copies);
                            return if broken.is_empty() { Ok(()) } else { Err(shown(&broken)) };
                        }
                        before = Some(ends);
                        self.env.sleep(STAYS_EQUAL).await;
                        continue;
                    }
                    Some(why) => why,
                },
                Err(why) => why,
            };
            before = None;
            if self.is_refused().await {
                self.at_rest.refused.set(true);
                return Ok(());
            }
            if self.env.now() >= give_up {
                let broken = match self.copies().await {
                    Ok(copies) => ledger.check(&copies),
                    Err(_) => ledger.check(&[]),
                };
                return Err(format!("never equal: {why}{}", shown(&broken)));
            }
            self.env.sleep(LOOK_EVERY).await;
        }
    }

    /// A lease keeps operations until it expires: where none can have, no follower recovers from remote again.
    pub(super) async fn leases_kept(&self) -> Result<(), String> {
        let moves_clock = |fault: &Fault| matches!(fault.what, What::MoveClock(..));
        let may_expire = self.scenario.leader_settings.get(LEASE_PERIOD).is_some()
            || self.at_rest.damaged.get() > 0
            || self.scenario.faults.iter().any(moves_clock);
        // A copy that becomes the primary may not know of a lease that is just being spread.
        if may_expire || self.scenario.leader_replicas > 0 {
            return Ok(());
        }
        let stats = self.stats(Side::Follower).await;
        let shards = stats["indices"][0]["shards"].as_array().cloned().unwrap_or_default();
        match shards.iter().find(|s| s["narrows"].get("recovered_from_remote_again").is_some()) {
            Some(shard) => {
                Err(format!("no lease can have expired, and operations were gone: {shard}"))
            }
            None => Ok(()),
        }
    }

    fn is_unfollowed(&self) -> bool {
        let state = self.site(Side::Follower).node(0).map(|node| node.state());
        let index = state.as_ref().and_then(|state| state.indices.get("b"));
        index.is_some_and(|meta| meta.leader.is_none())
    }

    /// Every copy of all indices; an error while one is missing.
    async fn copies(&self) -> Result<Vec<ledger::Copy>, String> {
        let sides: Vec<Side> = [Side::Leader].into_iter().chain(self.followers()).collect();
        self.copies_of(&sides).await
    }

    pub(super) async fn copies_of(&self, sides: &[Side]) -> Result<Vec<ledger::Copy>, String> {
        let mut copies = Vec::new();
        for side in sides {
            let (site, index) = (self.site(*side), index_of(*side));
            let replicas = self.replicas_of(*side);
            let mut read = Vec::new();
            for node in site.nodes() {
                read.extend(node.copies(index).await.map_err(|failure| failure.reason)?);
            }
            let (found, wanted) = (read.len() as u32, self.scenario.shards * (replicas + 1));
            // One too many of a shard does not stand for one that another lacks.
            let is_whole = has_each(&read, self.scenario.shards, replicas + 1);
            copies.extend(read);
            if !is_whole {
                let explain = match site.node(0) {
                    Some(node) => {
                        let path = "/_cluster/allocation/explain";
                        direct(&node, "GET", path, Value::Null).await.1
                    }
                    None => Value::Null,
                };
                let state = site.node(0).map(|node| node.state());
                let routing = state.iter().flat_map(|state| state.shards());
                let copies = routing.flat_map(|(_, number, shard)| {
                    shard.copies.iter().map(move |copy| format!("\n  [{number}] {copy:?}"))
                });
                return Err(format!(
                    "[{index}] has {found} of {wanted} copies: {explain}{}",
                    copies.collect::<String>()
                ));
            }
        }
        Ok(copies)
    }

    /// Why it is too early to compare: a copy's history lacks something, or the follower does not know yet that it
    /// has all.
    async fn unequal(&self, copies: &[ledger::Copy]) -> Option<String> {
        for shard in 0..self.scenario.shards {
            let mut ends = copies.iter().filter(|copy| copy.shard == shard);
            let first = ends.next()?;
            let is_whole = |copy: &ledger::Copy| copy.max_seq_no == copy.local_checkpoint;
            let same = |copy: &ledger::Copy| copy.max_seq_no == first.max_seq_no;
            if !is_whole(first) || !ends.all(|copy| is_whole(copy) && same(copy)) {
                let ends = copies.iter().map(|copy| {
                    format!("\n  {}: {:?} {:?}", copy.name, copy.local_checkpoint, copy.max_seq_no)
                });
                let stats = self.stats(Side::Follower).await;
                return Some(format!("{} {stats}", ends.collect::<String>()));
            }
        }
        for side in self.followers() {
            if let Some(why) = self.does_not_know(side, copies).await {
                return Some(why);
            }
        }
        None
    }

    async fn does_not_know(&self, side: Side, copies: &[ledger::Copy]) -> Option<String> {
        let stats = self.stats(side).await;
        let shards = stats["indices"][0]["shards"].as_array().cloned().unwrap_or_default();
        let knows = |shard: &Value| {
            let max = copies
                .iter()
                .find(|copy| shard["shard_id"] == copy.shard)
                .and_then(|copy| copy.max_seq_no)
                .map_or(-1, |max| max as i64);
            // Not the leader's highest number: as in the field it is the highest that was ever heard of.
            ["leader_global_checkpoint", "follower_global_checkpoint"]
                .iter()
                .all(|name| shard[*name] == max)
                && shard.get("fatal_exception").is_none()
        };
        let all = shards.len() == self.scenario.shards as usize && shards.iter().all(knows);
        (!all).then(|| format!("the copies are equal, and the follower does not know it: {stats}"))
    }
}

/// Whether so many copies of each shard were read, and no other.
fn has_each(read: &[ledger::Copy], shards: u32, wanted: u32) -> bool {
    let of = |shard: u32| read.iter().filter(|copy| copy.shard == shard).count();
    read.len() as u32 == shards * wanted && (0..shards).all(|shard| of(shard) == wanted as usize)
}

/// Where a copy has a hole, or another copy of its shard has something else.
pub(super) fn differs(copy: &ledger::Copy, copies: &[ledger::Copy]) -> Option<String> {
    if copy.max_seq_no != copy.local_checkpoint {
        return Some(format!("{} has a hole below {:?}", copy.name, copy.max_seq_no));
    }
    let held = |copy: &ledger::Copy| -> BTreeMap<String, (u64, u64)> {
        copy.documents.iter().map(|held| (held.id.clone(), (held.seq_no, held.content))).collect()
    };
    let mut others = copies.iter().filter(|other| other.shard == copy.shard);
    let other =
        others.find(|other| other.max_seq_no != copy.max_seq_no || held(other) != held(copy))?;
    Some(format!("{} and {} hold something else", copy.name, other.name))
}

pub(super) fn shown(broken: &[ledger::Violation]) -> String {
    let lines = broken.iter().take(8).map(|violation| format!("\n  {violation}"));
    let more = broken.len().saturating_sub(8);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    lines.collect::<String>() + &more
}

#[test]
fn a_copy_too_many_of_one_shard_stands_for_none_of_another() {
    let read = |shards: &[u32]| -> Vec<ledger::Copy> {
        let copy = |shard: &u32| ledger::Copy {
            name: "copy".to_owned(),
            shard: *shard,
            documents: Vec::new(),
            runs: ledger::RunSum::default(),
            max_seq_no: None,
            local_checkpoint: None,
        };
        shards.iter().map(copy).collect()
    };
    assert!(has_each(&read(&[0, 1, 1, 0]), 2, 2));
    for lacks in [&[0, 0, 0, 1][..], &[0, 0, 1], &[0, 0, 1, 1, 1], &[0, 0, 0, 0], &[]] {
        assert!(!has_each(&read(lacks), 2, 2), "{lacks:?}");
    }
}
