//! The comparison of copies: both sides hold the same documents, by count and by content, shard by shard.
//!
//! It does not trust what a recovery says of itself: each side reads every document that it would serve.

use std::time::Duration;

use record::{Line, Row, ShardDigest};
use serde_json::Value;

use super::background::BackgroundWriters;
use super::base::Runner;
use super::laps::Turn;
use super::scan::Copies;
use crate::error::{Error, Result};
use crate::plan::{FOLLOWER, LEADER, Variant};

/// How often copies that were written to are compared until they are found to be the same.
const LOOKS: u32 = 12;
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// Notes what the leader's primaries hold, which copies are compared with. Fails also if documents are missing
    /// there that were acknowledged: copies of what is left would all be the same.
    pub(crate) async fn hold(&mut self, variant: Option<&Variant>) -> Result<()> {
        self.held = self.digest_leader(variant).await?;
        match self.filled.take() {
            Some(acknowledged) => check_filled(&self.held, acknowledged),
            None => Ok(()),
        }
    }

    async fn digest_leader(&self, variant: Option<&Variant>) -> Result<Vec<ShardDigest>> {
        let shards = self.digest(LEADER, Copies::Primaries).await?;
        self.write_digest(variant.map(|variant| variant.name.as_str()), LEADER, &shards)?;
        Ok(shards)
    }

    /// Compares what recovered with what the leader's primaries held, and where `writers` wrote to them, with that and
    /// what they wrote; the row says what was found.
    pub(crate) async fn verify(
        &self,
        turn: &Turn<'_>,
        writers: Option<&BackgroundWriters>,
        row: &mut Row,
    ) -> Result<()> {
        let Turn { variant, lap, .. } = *turn;
        self.journal.phase("verify", true, Some(&variant.name), lap)?;
        self.watch.begin("verify", Some(&variant.name), None, "");
        match writers {
            None => self.compare(variant, &self.held, row).await?,
            Some(writers) => self.compare_written(variant, writers, row).await?,
        }
        self.watch.end();
        self.journal.phase("verify", false, Some(&variant.name), lap)
    }

    /// Compares copies that were written to until they are the same: writes that got no answer may still be on their
    /// way.
    async fn compare_written(
        &self,
        variant: &Variant,
        writers: &BackgroundWriters,
        row: &mut Row,
    ) -> Result<()> {
        for look in 0..LOOKS {
            if look > 0 {
                self.env.sleep(LOOK_AGAIN).await;
            }
            let primaries = self.digest_leader(Some(variant)).await?;
            let lacks = writers.missing(&self.held, &primaries);
            self.compare(variant, &primaries, row).await?;
            row.verified &= lacks.is_none();
            match lacks.filter(|_| look + 1 == LOOKS) {
                Some(why) => self.note(Some(variant), &why)?,
                None if row.verified => break,
                None => {}
            }
        }
        Ok(())
    }

    /// Compares what recovered with what the leader's primaries held.
    async fn compare(
        &self,
        variant: &Variant,
        leader: &[ShardDigest],
        row: &mut Row,
    ) -> Result<()> {
        if let Some(site) = self.plan.follower {
            self.wait_for_status(FOLLOWER, "yellow").await?;
            let copies = if self.plan.joined { Copies::Replicas } else { Copies::Primaries };
            let follower = self.digest(FOLLOWER, copies).await?;
            self.write_digest(Some(&variant.name), FOLLOWER, &follower)?;
            let (found, verified) = match self.plan.joined {
                true => {
                    let replicas = |index: &str| self.replicas_of(index, variant) + site.nodes;
                    (leader, each_copy_same(leader, &follower, replicas))
                }
                false => (&*follower, same(leader, &follower)),
            };
            row.documents = documents(found);
            row.verified = verified;
        } else {
            let copies = self.digest(LEADER, Copies::All).await?;
            self.write_digest(Some(&variant.name), "copies", &copies)?;
            let all = |index: &str| (1 + self.replicas_of(index, variant)).max(2);
            row.documents = documents(leader);
            row.verified = each_copy_same(leader, &copies, all);
        }
        Ok(())
    }

    /// Replicas that an index was made with.
    fn replicas_of(&self, index: &str, variant: &Variant) -> u32 {
        let known = self.plan.indices.iter().find(|known| known.name == index);
        known.map_or(0, |known| known.replicas.min(known.replicas_of(variant)))
    }

    async fn wait_for_status(&self, cluster: &str, status: &str) -> Result<()> {
        let names = self.plan.index_names();
        let path = format!("/_cluster/health/{names}?wait_for_status={status}&timeout=30s");
        self.ask(cluster, "GET", &path, None).await.map(drop)
    }

    async fn digest(&self, cluster: &str, copies: Copies) -> Result<Vec<ShardDigest>> {
        if self.reads_by_search(cluster).await? {
            if copies != Copies::Primaries {
                // A recovery is done a moment before its copy is started, and only then is the copy read.
                self.wait_for_status(cluster, "green").await?;
            }
            return self.read_copies(cluster, copies).await;
        }
        let query = if copies == Copies::Primaries { "" } else { "?replicas=true" };
        let path = format!("/{}/_narrows/digest{query}", self.plan.index_names());
        let answer = self.ask(cluster, "GET", &path, None).await?;
        let meant = |shard: &&Value| copies.include(shard["primary"] != false);
        let shards = answer["shards"].as_array().into_iter().flatten().filter(meant);
        shards
            .map(|shard| serde_json::from_value(shard.clone()))
            .collect::<Result<_, _>>()
            .map_err(|error| Error::Digest { cluster: cluster.to_owned(), why: error.to_string() })
    }

    fn write_digest(
        &self,
        variant: Option<&str>,
        side: &str,
        shards: &[ShardDigest],
    ) -> Result<()> {
        let (t_ms, variant) = (self.journal.t_ms(), variant.map(str::to_owned));
        let shards = shards.to_vec();
        self.journal.line(&Line::Digest { t_ms, variant, side: side.to_owned(), shards })
    }
}

/// Whether both sides hold the same in every shard.
fn same(leader: &[ShardDigest], follower: &[ShardDigest]) -> bool {
    let held = |shards: &[ShardDigest]| {
        let mut held = shards.to_vec();
        held.sort_by(|a, b| (&a.index, a.shard).cmp(&(&b.index, b.shard)));
        held
    };
    !leader.is_empty() && held(leader) == held(follower)
}

fn documents(shards: &[ShardDigest]) -> u64 {
    shards.iter().map(|shard| shard.documents).sum()
}

/// Refuses a leader that holds fewer documents than it acknowledged. More may be there: a request that got no answer
/// may have been sent again.
fn check_filled(held: &[ShardDigest], acknowledged: u64) -> Result<()> {
    let held = documents(held);
    if held < acknowledged { Err(Error::Lost { held, acknowledged }) } else { Ok(()) }
}

/// Whether every copy holds what the primary of its shard held, and every shard has as many of them as its index should
/// have at least.
fn each_copy_same(
    primaries: &[ShardDigest],
    copies: &[ShardDigest],
    at_least: impl Fn(&str) -> u32,
) -> bool {
    let of = |shard: &ShardDigest| {
        let same = |copy: &&ShardDigest| copy.index == shard.index && copy.shard == shard.shard;
        copies.iter().filter(same).collect::<Vec<_>>()
    };
    !primaries.is_empty()
        && primaries.iter().all(|shard| {
            let copies = of(shard);
            copies.len() >= at_least(&shard.index) as usize
                && copies.iter().all(|copy| *copy == shard)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(shard: u32, documents: u64, content: &str) -> ShardDigest {
        ShardDigest { index: "a".to_owned(), shard, documents, content: content.to_owned() }
    }

    #[test]
    fn one_document_more_or_another_content_is_not_the_same() {
        let leader = [digest(0, 5, "aa"), digest(1, 6, "bb")];
        assert!(same(&leader, &[digest(1, 6, "bb"), digest(0, 5, "aa")]));
        assert!(!same(&leader, &[digest(0, 5, "aa")]));
        assert!(!same(&leader, &[digest(0, 5, "aa"), digest(1, 7, "bb")]));
        assert!(!same(&leader, &[digest(0, 5, "aa"), digest(1, 6, "bc")]));
        assert!(!same(&[], &[]));
    }

    #[test]
    fn a_shard_without_all_its_copies_is_not_recovered() {
        let primaries = [digest(0, 5, "aa"), digest(1, 6, "bb")];
        let copies = [primaries.clone(), primaries.clone()].concat();
        let same =
            |copies: &[ShardDigest], at_least| each_copy_same(&primaries, copies, |_| at_least);
        assert!(same(&copies, 2) && !same(&copies, 3));
        assert!(!same(&copies[..3], 2));
        assert!(!same(&[&copies[..3], &[digest(1, 6, "bc")]].concat(), 2));
        assert!(!each_copy_same(&[], &[], |_| 0));
    }

    #[test]
    fn acknowledged_documents_that_the_leader_lacks_are_told() {
        let held = [digest(0, 5, "aa"), digest(1, 6, "bb")];
        assert!(check_filled(&held, 11).is_ok() && check_filled(&held, 10).is_ok());
        let lost = check_filled(&held, 12);
        assert!(matches!(lost, Err(Error::Lost { held: 11, acknowledged: 12 })), "{lost:?}");
    }
}
