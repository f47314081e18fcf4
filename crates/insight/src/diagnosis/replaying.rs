//! A recovery whose files are there and which replays operations, for the judges of its causes.

use record::units::show_seconds;

use super::finding::{Evidence, NODES_STATS, RECOVERY};
use super::node_span::NodeSpan;
use super::series::{Series, Transfer};
use crate::words;

/// A recovery that replays operations.
pub(crate) struct Replaying<'s, 'a> {
    pub(crate) series: &'s Series<'a>,
    pub(crate) transfer: &'s Transfer<'a>,
    /// What the target did meanwhile, where its node was seen.
    pub(crate) target: Option<NodeSpan<'a>>,
    /// How much merges hold indexing back on the target, 0 to 1; none where it does not tell.
    pub(crate) merges: Option<f64>,
    /// What both judges rest on.
    pub(crate) evidence: Vec<Evidence>,
}

impl<'s, 'a> Replaying<'s, 'a> {
    pub(crate) fn of(series: &'s Series<'a>, transfer: &'s Transfer<'a>) -> Self {
        let last = transfer.last();
        let target = last.target.as_deref().and_then(|name| series.node(name)).cloned();
        let merges = target.as_ref().and_then(merges);
        let replayed =
            last.total_ops.zip(last.recovered_ops).map_or_else(String::new, |(total, done)| {
                let rest = transfer.ops_per_s().filter(|rate| *rate > 0.0).map(|rate| {
                    let left_s = total.saturating_sub(done) as f64 / rate;
                    format!(", the rest takes {} at this rate", show_seconds(left_s.ceil()))
                });
                let rest = rest.filter(|_| done < total).unwrap_or_default();
                format!(", {} of {total} replayed{rest}", done.min(total))
            });
        let share = words::percent(transfer.share_in("TRANSLOG"));
        let mut evidence = vec![Evidence::new(
            RECOVERY,
            "stage, translog.recovered, translog.total",
            format!("TRANSLOG in {share} of the looks{replayed}"),
        )];
        let (merges, merging) = merges.unzip();
        evidence.extend(merging);
        Replaying { series, transfer, target, merges, evidence }
    }
}

/// How much merges hold indexing back, 0 to 1, and what says so.
fn merges(span: &NodeSpan<'_>) -> Option<(f64, Evidence)> {
    let share = span.share(|node| node.merge_throttled_ms);
    let flag = span.latest(|node| node.indexing_throttled);
    if share.is_none() && flag.is_none() {
        return None;
    }
    let share = share.unwrap_or(0.0);
    let is_flagged = flag == Some(true);
    let value = format!(
        "{}: {} of the time{}",
        span.last().name,
        words::percent(share),
        if is_flagged { ", indexing.is_throttled" } else { "" }
    );
    let field = "indices.merges.total_throttled_time_in_millis";
    let strength = if is_flagged { share.max(1.0) } else { share };
    Some((strength, Evidence::new(NODES_STATS, field, value)))
}
