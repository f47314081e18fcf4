//! The checker: both sides hold the same documents, by count and by content, shard by shard.
//!
//! It does not trust what a recovery says of itself: each side reads every document that it would serve.

use clusters::Target;
use record::{Line, Row, ShardDigest};

use serde_json::Value;

use super::sampling::Copies;
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::plan::Variant;

impl<T: Target> Runner<'_, T> {
    pub(super) async fn digest_leader(&self) -> Result<Vec<ShardDigest>, Error> {
        let shards = self.digest(LEADER, &self.plan.index.name, Copies::Primaries).await?;
        self.write_digest(None, LEADER, &shards)?;
        Ok(shards)
    }

    /// Compares the follower with the leader; the row says what was found.
    pub(super) async fn verify(
        &self,
        variant: &Variant,
        lap: u32,
        leader: &[ShardDigest],
        row: &mut Row,
    ) -> Result<(), Error> {
        self.journal.phase("verify", true, Some(&variant.name), lap)?;
        self.watch.begin("verify", Some(&variant.name), None, "");
        let index = self.follower_index();
        self.wait_for_primaries(index).await?;
        let copies = if self.plan.joined { Copies::Replicas } else { Copies::Primaries };
        let follower = self.digest(FOLLOWER, index, copies).await?;
        self.write_digest(Some(&variant.name), FOLLOWER, &follower)?;
        row.documents = follower.iter().map(|shard| shard.documents).sum();
        row.verified = same(leader, &follower);
        self.watch.end();
        self.journal.phase("verify", false, Some(&variant.name), lap)
    }

    async fn wait_for_primaries(&self, index: &str) -> Result<(), Error> {
        let path = format!("/_cluster/health/{index}?wait_for_status=yellow&timeout=30s");
        self.ask(FOLLOWER, "GET", &path, None).await?;
        Ok(())
    }

    async fn digest(
        &self,
        cluster: &str,
        index: &str,
        copies: Copies,
    ) -> Result<Vec<ShardDigest>, Error> {
        if !self.is_embedded(cluster).await? {
            return self.read_copies(cluster, index, copies).await;
        }
        let path = format!("/{index}/_narrows/digest?replicas=true");
        let answer = self.ask(cluster, "GET", &path, None).await?;
        let meant = |shard: &&Value| shard["primary"] == (copies == Copies::Primaries);
        let shards = answer["shards"].as_array().into_iter().flatten().filter(meant);
        shards
            .map(|shard| serde_json::from_value(shard.clone()))
            .collect::<Result<_, _>>()
            .map_err(|error| Error::Digest { cluster: cluster.to_owned(), why: error.to_string() })
    }

    /// Whether a cluster is one of the embedded engine, by its own word.
    pub(super) async fn is_embedded(&self, cluster: &str) -> Result<bool, Error> {
        let root = self.ask(cluster, "GET", "/", None).await?;
        Ok(root["version"]["distribution"] == "narrows")
    }

    fn write_digest(
        &self,
        variant: Option<&str>,
        side: &str,
        shards: &[ShardDigest],
    ) -> Result<(), Error> {
        let (t_ms, variant) = (self.journal.t_ms(), variant.map(str::to_owned));
        let shards = shards.to_vec();
        self.journal.line(&Line::Digest { t_ms, variant, side: side.to_owned(), shards })
    }
}

/// Whether both sides hold the same in every shard. The index may have another name there.
fn same(leader: &[ShardDigest], follower: &[ShardDigest]) -> bool {
    let held = |shards: &[ShardDigest]| {
        let mut held: Vec<(u32, u64, String)> =
            shards.iter().map(|s| (s.shard, s.documents, s.content.clone())).collect();
        held.sort();
        held
    };
    !leader.is_empty() && held(leader) == held(follower)
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
}
