//! A follower that follows no more: a client writes to it, and all of that must be there in the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use record::ledger::{self, Ledger, Rule, Violation};
use serde_json::Value;
use world::Time;

use super::judge::{STAYS_EQUAL, differs, shown};
use super::{Stage, direct, index_of};
use crate::client::{Load, PATIENCE, is_of_follower, write_unfollowed};
use crate::scenario::{Chance, Side, What, Writer};

/// Its draws have a stream of their own, so that no seed draws something else than before.
const OWN_WRITES: u64 = 0x0F0_110E;

impl Stage {
    /// Has a client write to the follower once it follows no more. Where its writes do not wait for the disk, nobody
    /// was promised that they stay.
    pub(super) fn have_unfollowed_written(&self) {
        let faults = &self.scenario.faults;
        let is_async = self.scenario.follower_settings["index.translog.durability"] == "async";
        if is_async || !faults.iter().any(|fault| fault.what == What::Unfollow) {
            return;
        }
        let ends_ms = faults.iter().map(|fault| fault.at_ms + fault.lasts_ms).max();
        let mut chance = Chance::new(self.scenario.seed ^ OWN_WRITES);
        let writer = Writer {
            documents: chance.one_of(&[3, 30]),
            batch: chance.between(1, 5),
            pause_ms: chance.magnitude(1, 500),
            creates_percent: 15,
        };
        let load = Rc::new(Load {
            ledger: RefCell::default(),
            shards: self.scenario.shards,
            site: self.site(Side::Follower).clone(),
            index: index_of(Side::Follower),
            // The operator may wait so long for an answer.
            until: self.env.now() + Duration::from_millis(ends_ms.unwrap_or(0)) + 2 * PATIENCE,
            requests_max: self.scenario.requests_max.min(chance.between(5, 60)),
            patience: PATIENCE,
        });
        let writing = write_unfollowed(self.env.clone(), load.clone(), writer, chance);
        let task = self.env.spawn("writes to what follows no more", writing);
        self.own.replace(Some(load));
        self.own_writing.replace(Some(task));
    }

    /// Copies of an index that was unfollowed in the midst of it become the same: as much of the leader as they have,
    /// and all that was written to them since. Then it is made anew.
    pub(super) async fn leave_unfollowed(
        &self,
        ledger: &Ledger,
        give_up: Time,
    ) -> Result<(), String> {
        let writing = self.own_writing.take();
        if let Some(writing) = writing {
            writing.await.map_err(|_| "a client of the follower ended".to_owned())?;
            // What was sent to a node that stood still must not come once the index is gone.
            self.env.sleep(STAYS_EQUAL).await;
        }
        let own = self.own.borrow().as_ref().map(|load| load.ledger.borrow().clone());
        let own = own.unwrap_or_default();
        let copies = loop {
            let why = match self.copies_of(&[Side::Follower]).await {
                Ok(copies) => match copies.iter().find_map(|copy| differs(copy, &copies)) {
                    None => break copies,
                    Some(why) => why,
                },
                Err(why) => why,
            };
            if self.env.now() >= give_up {
                return Err(format!("never equal after it was unfollowed: {why}"));
            }
            self.env.sleep(Duration::from_secs(10)).await;
            self.help().await;
        };
        let broken = broken_unfollowed(ledger, &own, &copies);
        if !broken.is_empty() {
            return Err(format!("after it was unfollowed:{}", shown(&broken)));
        }
        self.acknowledged_unfollowed.set(own.counts().0);
        self.unfollowed.set(self.unfollowed.get() + 1);
        if let Some(node) = self.site(Side::Follower).node(0) {
            direct(&node, "DELETE", "/b", Value::Null).await;
            // Where that takes longer, whoever helps goes on with it.
            let following = self.follow(Side::Follower, 0);
            let _ = self.env.timeout(Duration::from_secs(60), following).await;
        }
        Ok(())
    }
}

/// The rules that copies of a follower break which follows no more. It had read a part of what its leader has, so that
/// older versions of documents may be there, but nothing that no write put there. What was written to it itself is all
/// there.
fn broken_unfollowed(leader: &Ledger, own: &Ledger, copies: &[ledger::Copy]) -> Vec<Violation> {
    let with = |of_follower: bool| -> Vec<ledger::Copy> {
        let mut part = copies.to_vec();
        let is_kept = |held: &ledger::Held| is_of_follower(&held.id) == of_follower;
        part.iter_mut().for_each(|copy| copy.documents.retain(is_kept));
        part
    };
    let is_strange =
        |violation: &Violation| matches!(violation.rule, Rule::NothingElseIsThere | Rule::OnceEach);
    let strange = leader.check(&with(false)).into_iter().filter(is_strange);
    own.check(&with(true)).into_iter().chain(strange).collect()
}

#[cfg(test)]
mod tests {
    use record::ledger::{Action, Copy, Fate, Held, RunSum};

    use super::*;

    /// Writes one document after another, each as the next operation from `first` on.
    fn written(documents: &[(&str, u64)], first: u64) -> Ledger {
        let mut ledger = Ledger::default();
        for (seq_no, (id, content)) in (first..).zip(documents) {
            let fate = Fate::Acknowledged { seq_no, version: 1 };
            ledger.enter(id, 0, Action::Index { content: *content }, fate);
        }
        ledger
    }

    #[test]
    fn an_unfollowed_copy_has_a_part_of_its_leader_and_all_of_its_own() {
        let leader = written(&[("c0d1", 1), ("c0d2", 2), ("c0d3", 3)], 0);
        let own = written(&[("c9d1", 4)], 2);
        let broken = |documents: &[(&str, u64, u64)]| -> Vec<Rule> {
            let held = |&(id, seq_no, content): &(&str, u64, u64)| Held {
                id: id.to_owned(),
                seq_no,
                version: 1,
                content,
            };
            let copy = Copy {
                name: "copy".to_owned(),
                shard: 0,
                documents: documents.iter().map(held).collect(),
                runs: RunSum::default(),
                max_seq_no: Some(2),
                local_checkpoint: Some(2),
            };
            let broken = broken_unfollowed(&leader, &own, &[copy]);
            broken.into_iter().map(|violation| violation.rule).collect()
        };
        let part = [("c0d1", 0, 1), ("c0d2", 1, 2)];
        assert_eq!(broken(&[part[0], part[1], ("c9d1", 2, 4)]), []);
        assert_eq!(broken(&part), [Rule::AcknowledgedIsThere], "a write of its own is gone");
        let stranger = [part[0], ("c0d2", 1, 7), ("c9d1", 2, 4)];
        assert_eq!(broken(&stranger), [Rule::NothingElseIsThere]);
    }
}
