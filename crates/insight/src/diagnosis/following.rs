//! A shard that follows another cluster's, for the judges of its causes.

use std::collections::BTreeMap;
use std::fmt::Display;

use record::names::listed;
use record::observation::{Follower, Remote};
use record::units::show_seconds;

use super::finding::{Evidence, Finding, LINES_SHOWN};
use super::rivals::Against;
use super::rule::Rule;
use super::series::{MS_PER_S, Series};
use super::threshold::{CATCHES_UP_S, FALLS_BACK, LAG_OPS, LAG_S, SILENT_S, STILL_S};
use super::unanswered::{FOLLOWERS, lacks};
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
    let shard = |one: &'a Follower| (one.index.as_str(), one.shard);
    let then: BTreeMap<_, _> = first.followers.iter().map(|one| (shard(one), one)).collect();
    let one = |now| Following { series, now, then: then.get(&shard(now)).copied() };
    last.followers.iter().map(one).collect()
}

/// Sentences on followers that nothing has to help: those that keep up, and those that catch up.
pub(crate) fn follow_on(series: &Series<'_>) -> Vec<String> {
    let (mut kept_up, mut said) = (Vec::new(), Vec::new());
    let (mut most, mut more): (u64, usize) = (0, 0);
    for following in followings(series) {
        let Some((ops, left_s)) = following.goes_on() else { continue };
        let name = following.now.shard_name();
        let Some(left_s) = left_s else {
            kept_up.push(name);
            most = most.max(ops);
            continue;
        };
        if said.len() == LINES_SHOWN {
            more += 1;
            continue;
        }
        let ops = words::counted(words::count(ops), "operation", "operations");
        let left = show_seconds(left_s);
        said.push(format!("{name} catches up: {ops} behind, {left} at this rate"));
    }
    said.extend((more > 0).then(|| format!("more followers catch up: {more}")));
    let who = match kept_up.len() {
        0 => return said,
        1 => format!("{} keeps", kept_up[0]),
        count if count <= LINES_SHOWN => format!("{} keep", listed(&kept_up)),
        count => format!("{count} followers keep"),
    };
    let behind = match most {
        0 => "nothing".to_owned(),
        1 => "1 operation".to_owned(),
        most => format!("{} operations at most", words::count(most)),
    };
    said.push(format!("{who} up with the leader: {behind} behind"));
    said
}

impl<'a> Following<'_, 'a> {
    /// A field of the follower, as the API tells it: OpenSearch's plugin tells of indices, and Elasticsearch of shards.
    pub(crate) fn evidence(&self, field: &'static str, value: impl Into<String>) -> Evidence {
        let api = if self.now.shard.is_none() { PLUGIN_STATS } else { CCR_STATS };
        Evidence::new(api, field, value)
    }

    /// By how much a field of the follower rose while it was watched.
    pub(crate) fn rose(&self, field: &'static str, by: impl Display) -> Evidence {
        self.evidence(field, format!("rose by {by}"))
    }

    /// How it lags; or what speaks against that.
    pub(crate) fn lagging(&self) -> Result<Lagging<'a>, Against> {
        if self.now.is_stopped() {
            return Err(Against::figure("it has stopped, and neither reads nor writes"));
        }
        let untold = || Against::untold("how far it is behind its leader is not told");
        if self.is_of_before() {
            return Err(untold());
        }
        let ops = self.now.lag_ops().ok_or_else(untold)?;
        if (ops as f64) < LAG_OPS.value {
            let least = LAG_OPS.value;
            let behind = words::counted(words::count(ops), "operation", "operations");
            return Err(Against::figure(format!("{behind} behind ({least} would tell)")));
        }
        let untold = || Against::untold("how far it was behind at the first look is not told");
        let then = self.then.ok_or_else(untold)?;
        let was = then.lag_ops().ok_or_else(untold)?;
        if self.catches_up_in_s(was, ops).is_some() {
            return Err(Against::figure(format!("it catches up: {was} behind then, {ops} now")));
        }
        if let Some(behind_s) = self.keeps_up_at_s(then, was, ops) {
            let (ops, behind) = (words::count(ops), show_seconds(behind_s));
            return Err(Against::figure(format!(
                "it keeps up: its {ops} operations are {behind} of what its leader is written"
            )));
        }
        let field = match self.now.shard {
            Some(_) => "leader_global_checkpoint - follower_global_checkpoint",
            None => "leader_checkpoint - follower_checkpoint",
        };
        let evidence = self.evidence(field, format!("{was} then, {ops} now"));
        Ok(Lagging { then, ops, evidence })
    }

    /// Whether the last look was told nothing of followers, and shows what was told before the first one.
    fn is_of_before(&self) -> bool {
        let last = self.series.last();
        let is_untold = last.is_some_and(|look| FOLLOWERS.iter().any(|path| lacks(look, path)));
        is_untold && self.then == Some(self.now)
    }

    /// Whether no node of its leader's cluster is connected, or may be where its cluster is not told.
    fn may_be_cut_off(&self) -> bool {
        let alias = self.now.remote.as_deref();
        self.series.remotes().iter().any(|remote| {
            remote.connected == Some(false) && alias.is_none_or(|alias| alias == remote.alias)
        })
    }

    /// Whether a node of its leader's cluster is connected, as far as that is told.
    fn is_connected(&self) -> bool {
        let alias = self.now.remote.as_deref();
        let is_reached =
            |one: &Remote| one.connected == Some(true) && alias == Some(one.alias.as_str());
        self.series.remotes().iter().any(is_reached)
    }

    /// When it will have caught up; none where its lag does not fall so fast.
    fn catches_up_in_s(&self, was: u64, ops: u64) -> Option<f64> {
        let fell = was.checked_sub(ops).filter(|fell| *fell > 0)?;
        let left_s = ops as f64 / fell as f64 * (self.series.span_ms() / MS_PER_S);
        (left_s <= CATCHES_UP_S.value).then_some(left_s)
    }

    /// For how long its leader is written what it lacks; none where it does not keep up, or nothing is written there.
    fn keeps_up_at_s(&self, then: &Follower, was: u64, ops: u64) -> Option<f64> {
        let written = self.now.leader_checkpoint?.checked_sub(then.leader_checkpoint?)?;
        let written = u64::try_from(written).ok().filter(|count| *count > 0)? as f64;
        let behind_s = ops as f64 / written * (self.series.span_ms() / MS_PER_S);
        let fell_back = ops.saturating_sub(was) as f64 / written;
        (behind_s < LAG_S.value && fell_back < FALLS_BACK.value).then_some(behind_s)
    }

    /// How many operations one is behind that keeps up or catches up, and for how long where it catches up; none of one
    /// that lags, does not run, whose reads bring nothing and fail, whose leader is cut off, or whose lag is not told.
    fn goes_on(&self) -> Option<(u64, Option<f64>)> {
        let (was, ops) = (self.then?.lag_ops()?, self.now.lag_ops()?);
        let is_read = self.rise(|one| one.ops_read) > Some(0);
        let fails =
            self.now.reason.is_some() || !is_read && self.rise(|one| one.failed_reads) > Some(0);
        let is_far = ops as f64 >= LAG_OPS.value;
        let left_s = self.catches_up_in_s(was, ops).filter(|_| is_far);
        // What its leader has is known by its reads alone.
        let is_untold = self.is_of_before() || !is_read && self.may_be_cut_off();
        let is_well = !self.now.is_stopped() && !fails && !is_untold && self.lagging().is_err();
        is_well.then_some((ops, left_s))
    }

    /// By how much a counter of its own rose while it was watched.
    pub(crate) fn rise(&self, counter: fn(&Follower) -> Option<u64>) -> Option<u64> {
        counter(self.now)?.checked_sub(counter(self.then?)?)
    }

    /// Reads that failed meanwhile, where none brings anything; none where its reads do not fail. Elasticsearch tells
    /// which reads are being tried again, also where one of them hangs for longer than one looks. It is told then
    /// whatever the lag seems to be: what its leader has is known by its reads alone. A read that failed once is told
    /// until it is answered, for which one of an idle leader takes a minute: where it is reached, that is no failure.
    pub(crate) fn failing_reads(&self) -> Option<u64> {
        let failed = self.rise(|one| one.failed_reads)?;
        let is_failing = match self.now.shard {
            Some(_) if failed == 0 && self.is_connected() && self.lagging().is_err() => false,
            Some(_) => self.now.reason.is_some(),
            None => failed > 0 && self.lagging().is_ok(),
        };
        (self.rise(|one| one.ops_read)? == 0 && is_failing).then_some(failed)
    }

    /// For how long it has asked its leader for nothing, where it is behind and has nothing else to do: nothing was
    /// read or written while it was watched, and nothing failed. OpenSearch's plugin tells no such time, so that it is
    /// that of the looks.
    pub(crate) fn still_s(&self) -> Option<f64> {
        let then = self.lagging().ok()?.then;
        let others: &[fn(&Follower) -> Option<u64>] = &[
            |one| one.ops_written,
            |one| one.failed_reads,
            |one| one.failed_writes,
            |one| one.throttled_reads,
            |one| one.throttled_writes,
        ];
        let is_idle = self.rise(|one| one.ops_read)? == 0
            && self.now.follower_checkpoint == then.follower_checkpoint
            && others.iter().all(|counter| self.rise(*counter).is_none_or(|rise| rise == 0));
        let has_to_write = self.now.outstanding_writes > Some(0)
            || self.unwritten(then).is_some_and(|(_, ops)| ops as f64 >= LAG_OPS.value);
        let (still_s, least) = match (self.now.shard, self.now.outstanding_reads) {
            (Some(_), Some(0)) => (self.now.since_read_ms? as f64 / MS_PER_S, STILL_S),
            (Some(_), _) => (self.now.since_read_ms? as f64 / MS_PER_S, SILENT_S),
            (None, _) => (self.series.span_ms() / MS_PER_S, STILL_S),
        };
        (is_idle && !has_to_write && still_s >= least.value).then_some(still_s)
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
