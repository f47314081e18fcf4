//! What a follower is asked, through whichever API it has: to begin, to pause, to end, and how far it is.

use clusters::FollowApi;
use serde_json::{Value, json};

use super::base::Runner;
use crate::error::Result;
use crate::plan::{FOLLOWER, LEADER, Variant};

/// What is read of `_stats`: up to which operation each copy has all.
const CHECKPOINTS: &str =
    "level=shards&filter_path=indices.*.shards.*.routing.primary,indices.*.shards.*.seq_no";

impl Runner<'_> {
    /// Has the follower follow an index of the leader under the same name, with these settings of its own and the
    /// variant's parameters.
    pub(crate) async fn begin_following(
        &self,
        index: &str,
        settings: Option<Value>,
        variant: &Variant,
    ) -> Result<()> {
        let (path, alias) = match self.clusters.follow_api() {
            FollowApi::Ccr => {
                (format!("/{index}/_ccr/follow?wait_for_active_shards=0"), "remote_cluster")
            }
            FollowApi::Plugin => (format!("/_plugins/_replication/{index}/_start"), "leader_alias"),
        };
        let mut body = json!({ alias: LEADER, "leader_index": index });
        if let Some(settings) = settings {
            body["settings"] = settings;
        }
        for (name, value) in variant.follow_parameters() {
            body[name] = json!(value);
        }
        self.ask(FOLLOWER, "PUT", &path, Some(&body)).await.map(drop)
    }

    /// Has the follower read no operations for now.
    pub(crate) async fn pause_following(&self, index: &str) -> Result<()> {
        let (path, body) = match self.clusters.follow_api() {
            FollowApi::Ccr => (format!("/{index}/_ccr/pause_follow"), None),
            FollowApi::Plugin => {
                (format!("/_plugins/_replication/{index}/_pause"), Some(json!({})))
            }
        };
        self.ask(FOLLOWER, "POST", &path, body.as_ref()).await.map(drop)
    }

    /// Has the follower forget whom it follows, where it does not by itself once the index is deleted.
    pub(crate) async fn end_following(&self, index: &str) -> Result<()> {
        if self.clusters.follow_api() == FollowApi::Plugin {
            let path = format!("/_plugins/_replication/{index}/_stop");
            self.ask(FOLLOWER, "POST", &path, Some(&json!({}))).await?;
        }
        Ok(())
    }

    /// How far the followers of these indices are, in the shape of `_ccr/stats`: of the plugin, which says that of
    /// whole indices alone, the checkpoints of the primaries are told, and no figures of reads and writes.
    pub(crate) async fn following_stats(&self, indices: &str) -> Result<Value> {
        match self.clusters.follow_api() {
            FollowApi::Ccr => {
                self.ask(FOLLOWER, "GET", &format!("/{indices}/_ccr/stats"), None).await
            }
            FollowApi::Plugin => {
                let path = format!("/{indices}/_stats?{CHECKPOINTS}");
                Ok(as_ccr(&self.ask(FOLLOWER, "GET", &path, None).await?))
            }
        }
    }

    /// Why an index does not follow, in the follower's words; none where it does not say.
    pub(crate) async fn following_failure(&self, indices: &str) -> Option<String> {
        match self.clusters.follow_api() {
            FollowApi::Ccr => {
                let stats = self.following_stats(indices).await.ok()?;
                let indices = stats["indices"].as_array().into_iter().flatten();
                let mut shards =
                    indices.flat_map(|index| index["shards"].as_array().into_iter().flatten());
                shards.find_map(shard_failure)
            }
            FollowApi::Plugin => {
                for index in indices.split(',') {
                    let path = format!("/_plugins/_replication/{index}/_status");
                    let status = self.ask(FOLLOWER, "GET", &path, None).await.ok()?;
                    if let Some(why) = status["reason"].as_str().filter(|why| !why.is_empty()) {
                        let status = status["status"].as_str().unwrap_or("?");
                        return Some(format!("{status}: {why}"));
                    }
                }
                None
            }
        }
    }
}

fn shard_failure(shard: &Value) -> Option<String> {
    let read = &shard["read_exceptions"][0]["exception"]["reason"];
    let reasons = [&shard["fatal_exception"]["reason"], read];
    reasons.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// The checkpoints of an answer of `_stats`, of the primaries that have told one.
fn as_ccr(stats: &Value) -> Value {
    let shard = |(number, copies): (&String, &Value)| {
        let mut copies = copies.as_array()?.iter();
        let primary = copies.find(|copy| copy["routing"]["primary"] == true)?;
        Some(json!({
            "shard_id": number.parse::<u64>().ok()?,
            "follower_global_checkpoint": primary["seq_no"]["global_checkpoint"].as_i64()?,
        }))
    };
    let index = |(name, index): (&String, &Value)| {
        let shards = index["shards"].as_object().into_iter().flatten();
        json!({ "index": name, "shards": shards.filter_map(shard).collect::<Vec<_>>() })
    };
    let indices = stats["indices"].as_object().into_iter().flatten();
    json!({ "indices": indices.map(index).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkpoints_of_primaries_are_what_the_follower_has() {
        let copy = |primary: bool, checkpoint: i64| json!({ "routing": { "primary": primary }, "seq_no": { "global_checkpoint": checkpoint } });
        let stats = json!({ "indices": { "a": { "shards": {
            "0": [copy(false, 3), copy(true, 7)],
            "1": [copy(true, -1)],
            "2": [{ "routing": { "primary": true } }],
        } } } });
        let shard =
            |id, checkpoint| json!({ "shard_id": id, "follower_global_checkpoint": checkpoint });
        let told = json!({ "indices": [{ "index": "a", "shards": [shard(0, 7), shard(1, -1)] }] });
        assert_eq!(as_ccr(&stats), told);
        assert_eq!(as_ccr(&json!(null)), json!({ "indices": [] }));
    }
}
