//! A shard that follows another cluster's, for the judges of its causes.

use record::observation::Follower;

use super::finding::{Against, Evidence, Finding};
use super::rule::Rule;
use super::series::Series;
use super::threshold::{CATCHES_UP, LAG_OPS};

/// The API that tells of followers.
pub(crate) const CCR_STATS: &str = "_ccr/stats";

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
    /// How it lags; or what speaks against that.
    pub(crate) fn lagging(&self) -> Result<Lagging<'a>, Against> {
        if self.now.fatal.is_some() {
            return Err(Against::figure("it has stopped, and neither reads nor writes"));
        }
        let untold = || Against::untold("how far it is behind its leader is not told");
        let ops = self.now.lag_ops().ok_or_else(untold)?;
        if (ops as f64) < LAG_OPS.value {
            let least = LAG_OPS.value;
            return Err(Against::figure(format!("{ops} operations behind ({least} would tell)")));
        }
        let untold = || Against::untold("how far it was behind at the first look is not told");
        let then = self.then.ok_or_else(untold)?;
        let was = then.lag_ops().ok_or_else(untold)?;
        if (ops as f64) < was as f64 * CATCHES_UP.value {
            return Err(Against::figure(format!("it catches up: {was} behind then, {ops} now")));
        }
        let field = "leader_global_checkpoint - follower_global_checkpoint";
        let evidence = Evidence::new(CCR_STATS, field, format!("{was} then, {ops} now"));
        Ok(Lagging { then, ops, evidence })
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
