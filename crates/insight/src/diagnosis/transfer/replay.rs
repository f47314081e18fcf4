//! What holds the replay of operations.

use super::super::knobs::today;
use super::super::rules::MERGES;
use super::super::series::{Series, Transfer};
use super::super::{Class, Evidence, Finding, Gain, Lift};
use super::node::{merges, node_finding};
use super::{Judged, RECOVERY};
use crate::words;

pub(super) fn replay(series: &Series<'_>, transfer: &Transfer<'_>) -> Judged {
    let last = transfer.last();
    let share = transfer.share_in("TRANSLOG");
    let name = "indices.recovery.max_concurrent_operations";
    let setting = today(series, name, "1");
    let now: f64 = setting.value.parse().unwrap_or(1.0);
    let to = (now * 2.0).clamp(2.0, 4.0);
    let ops = transfer
        .ops_per_s()
        .map_or_else(String::new, |rate| format!(" at {} a second", words::three_digits(rate)));
    let left = last.total_ops.zip(last.recovered_ops).map_or_else(String::new, |(total, done)| {
        format!(", {} of {total} replayed", done.min(total))
    });
    let mut evidence = vec![Evidence::new(
        RECOVERY,
        "stage, translog.recovered, translog.total",
        format!("TRANSLOG in {} of the looks{left}", words::percent(share)),
    )];
    let target = last.target.as_deref().and_then(|name| series.node(name));
    if let Some(span) = &target
        && let Some(merging) = merges(span)
    {
        evidence.push(merging.1);
        if merging.0 >= MERGES.value {
            let mut finding = node_finding(
                Class::MergeThrottle,
                &transfer.name(),
                span,
                0.5 + merging.0.min(1.0) / 2.0,
            );
            finding.sentence = format!(
                "{} replays operations while merges on {} hold indexing back",
                transfer.name(),
                span.last().name
            );
            finding.evidence = evidence;
            return Judged::Held(Box::new(finding));
        }
    }
    let may_rise = now < 4.0;
    Judged::Held(Box::new(Finding {
        class: Class::OperationReplay,
        subjects: vec![transfer.name()],
        place: last.target.clone().unwrap_or_default(),
        strength: share,
        sentence: format!(
            "{} replays operations{ops}, {} batch{} at a time; the files are there",
            transfer.name(),
            setting.value,
            if now > 1.0 { "es" } else { "" }
        ),
        evidence,
        lift: Some(Lift {
            setting: Some(name.to_owned()),
            now: Some(setting.value),
            set_by: Some(setting.scope),
            to: may_rise.then(|| format!("{to:.0}")),
            action: if may_rise {
                "replay more batches at once; fewer operations are retained where index.translog.retention and \
                 leases are short"
                    .to_owned()
            } else {
                "it is at its maximum: let indexing pause, or let the copy start from files"
                    .to_owned()
            },
        }),
        gain: may_rise.then(|| Gain {
            factor: to / now,
            formula: format!(
                "{to:.0} batches at once / {now:.0}, until the target's cores are busy"
            ),
        }),
        next: Some("the target's cores or disk".to_owned()),
        doubt: None,
    }))
}
