//! A shard that follows another cluster's, for the judges of its causes.

use record::observation::Follower;

use super::finding::{Evidence, Finding};
use super::rivals::Against;
use super::rule::Rule;
use super::series::Series;
use super::threshold::{CATCHES_UP, LAG_OPS};
use crate::words;

/// The APIs that tell of followers.
const CCR_STATS: &str = "_ccr/stats";
const PLUGIN_STATS: &str = "_plugins/_replication/follower_stats";

/// A shard that follows, in the first look and in the last.
pub(crate) struct Following<'s, 'a> {
    pub(crate) series: &'s Series<'a>,
    pub(crate) now: &'a Follower,
    /// None where it did not follow yet.
    then: Option<&'a Follower>,
}

/// A follower that is behind its leader and does not catch up.
pub(crate) struct Lagging<'a> {
    pub(crate) then: &'a Follower,
    /// Operations that it lacks.
    pub(crate) ops: u64,
    pub(crate) evidence: Evidence,
}

/// Every shard that follows in the last look.
pub(crate) fn followings<'s, 'a>(series: &'s Series<'a>) -> Vec<Following<'s, 'a>> {
    let (Some((_, first)), Some(last)) = (series.looks().first(), series.last()) else {
        return Vec::new();
    };
    let one = |now: &'a Follower| {
        let is_same = |then: &&Follower| (&then.index, then.shard) == (&now.index, now.shard);
        Following { series, now, then: first.followers.iter().find(is_same) }
    };
    last.followers.iter().map(one).collect()
}

impl<'a> Following<'_, 'a> {
    /// The API that told of it: OpenSearch's plugin tells of indices, and Elasticsearch of shards.
    pub(crate) fn api(&self) -> &'static str {
        if self.now.shard.is_none() { PLUGIN_STATS } else { CCR_STATS }
    }

    /// How it lags; or what speaks against that.
    pub(crate) fn lagging(&self) -> Result<Lagging<'a>, Against> {
        if self.now.is_stopped() {
            return Err(Against::figure("it has stopped, and neither reads nor writes"));
        }
        let untold = || Against::untold("how far it is behind its leader is not told");
        let ops = self.now.lag_ops().ok_or_else(untold)?;
        if (ops as f64) < LAG_OPS.value {
            let least = LAG_OPS.value;
            let ops = words::count(ops);
            return Err(Against::figure(format!("{ops} operations behind ({least} would tell)")));
        }
        let untold = || Against::untold("how far it was behind at the first look is not told");
        let then = self.then.ok_or_else(untold)?;
        let was = then.lag_ops().ok_or_else(untold)?;
        if (ops as f64) < was as f64 * CATCHES_UP.value {
            return Err(Against::figure(format!("it catches up: {was} behind then, {ops} now")));
        }
        let field = match self.now.shard {
            Some(_) => "leader_global_checkpoint - follower_global_checkpoint",
            None => "leader_checkpoint - follower_checkpoint",
        };
        let evidence = Evidence::new(self.api(), field, format!("{was} then, {ops} now"));
        Ok(Lagging { then, ops, evidence })
    }

    /// Operations that were read and are not written, at the first look and at the last one; none where that is not
    /// told.
    pub(crate) fn unwritten(&self, then: &Follower) -> Option<(u64, u64)> {
        let of = |one: &Follower| Some(one.ops_read?.saturating_sub(one.ops_written?));
        Some((of(then)?, of(self.now)?))
    }

    /// A finding on this shard.
    pub(crate) fn finding(&self, rule: &Rule, strength: f64, sentence: String) -> Finding {
        let place = self.now.remote.clone().unwrap_or_default();
        Finding {
            subjects: vec![self.now.shard_name()],
            ..Finding::of(rule, place, strength, sentence)
        }
    }
}
