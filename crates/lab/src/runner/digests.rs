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

/// How often copies are compared that were written to, until they are found to be the same.
const LOOKS: u32 = 12;
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// What the leader's primaries hold.
    pub(crate) async fn digest_leader(
        &self,
        variant: Option<&Variant>,
    ) -> Result<Vec<ShardDigest>> {
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
        if self.plan.follower.is_some() {
            self.wait_for_primaries().await?;
            let copies = if self.plan.joined { Copies::Replicas } else { Copies::Primaries };
            let follower = self.digest(FOLLOWER, copies).await?;
            self.write_digest(Some(&variant.name), FOLLOWER, &follower)?;
            row.documents = follower.iter().map(|shard| shard.documents).sum();
            row.verified = same(leader, &follower);
        } else {
            let copies = self.digest(LEADER, Copies::All).await?;
            self.write_digest(Some(&variant.name), "copies", &copies)?;
            row.documents = leader.iter().map(|shard| shard.documents).sum();
            row.verified = each_copy_same(leader, &copies);
        }
        Ok(())
    }

    async fn wait_for_primaries(&self) -> Result<()> {
        let names = self.plan.index_names();
        let path = format!("/_cluster/health/{names}?wait_for_status=yellow&timeout=30s");
        self.ask(FOLLOWER, "GET", &path, None).await?;
        Ok(())
    }

    async fn digest(&self, cluster: &str, copies: Copies) -> Result<Vec<ShardDigest>> {
        if self.reads_by_search(cluster).await? {
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

/// Whether every copy holds what the primary of its shard held, and every shard has more than one.
fn each_copy_same(primaries: &[ShardDigest], copies: &[ShardDigest]) -> bool {
    let of = |shard: &ShardDigest| {
        let same = |copy: &&ShardDigest| copy.index == shard.index && copy.shard == shard.shard;
        copies.iter().filter(same).collect::<Vec<_>>()
    };
    !primaries.is_empty()
        && primaries.iter().all(|shard| {
            let copies = of(shard);
            copies.len() > 1 && copies.iter().all(|copy| *copy == shard)
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
    fn a_shard_without_a_second_copy_is_not_recovered() {
        let primaries = [digest(0, 5, "aa"), digest(1, 6, "bb")];
        let copies = [primaries.clone(), primaries.clone()].concat();
        assert!(each_copy_same(&primaries, &copies));
        assert!(!each_copy_same(&primaries, &copies[..3]));
        assert!(!each_copy_same(&primaries, &[&copies[..3], &[digest(1, 6, "bc")]].concat()));
        assert!(!each_copy_same(&[], &[]));
    }
}
