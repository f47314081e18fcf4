//! A run as one JSON object, for scripts.

use insight::{Finished, Progress, Summary, Variant, stats::Interval};
use serde_json::{Value, json};

/// One object: `run`, `plan`, `target`, `status`, `headline`, `details` (what that has no room for), `rows` (one for
/// each variant that finished, medians over its laps), `unfinished`, `changes` (what is not as in the plan) and `gaps`;
/// for a run that watched a live cluster also `watched`, its diagnosis. Rates are bytes a second, shares are 0 to 1,
/// what is not known is `null`.
pub fn json(summary: &Summary<'_>) -> Value {
    let manifest = summary.manifest;
    let unfinished: Vec<Value> = summary.variants.iter().filter_map(unfinished).collect();
    let mut object = json!({
        "run": manifest.run,
        "plan": manifest.plan,
        "target": manifest.target,
        "status": manifest.status,
        "headline": summary.headline,
        "details": summary.details,
        "baseline": summary.baseline,
        "rows": summary.finished().map(|(variant, figures)| row(summary, variant, figures))
            .collect::<Vec<Value>>(),
        "unfinished": unfinished,
        "changes": manifest.changes,
        "gaps": summary.gaps,
    });
    if let Some(diagnosis) = &summary.watched {
        object["watched"] = json!(diagnosis);
    }
    if !summary.following.is_empty() {
        object["following"] = crate::following::json(&summary.following);
    }
    if !summary.loads.is_empty() {
        object["loads"] = summary
            .loads
            .iter()
            .map(|load| {
                let mut value = crate::load::load_json(&load.laps);
                value["variant"] = json!(load.variant);
                value
            })
            .collect();
    }
    object
}

fn row(summary: &Summary<'_>, variant: &Variant, figures: &Finished) -> Value {
    // A load copies nothing, and what only counts keeps nothing: there is nothing to verify.
    let has_copies = summary.loads.is_empty() && !figures.measuring_device();
    let ends = |interval: Option<Interval>| interval.map(|ends| [ends.low, ends.high]);
    json!({
        "variant": variant.name,
        "seconds": figures.seconds,
        "seconds_interval": ends(figures.seconds_interval),
        "laps_s": figures.laps_s,
        "bytes": figures.bytes,
        "bytes_per_s": figures.bytes_per_s,
        "link_share": figures.link_share,
        "gain": figures.gain,
        "gain_interval": ends(figures.gain_interval),
        "limits": figures.limits,
        "held_by": figures.verdict.limit,
        "verdict": figures.verdict.text,
        "verified": has_copies.then_some(figures.verified),
        "documents": has_copies.then_some(figures.documents),
        "refetched_chunks": figures.refetched_chunks,
        "published_s": variant.published_s,
        "published_gain": variant.published_gain,
    })
}

fn unfinished(variant: &Variant) -> Option<Value> {
    match &variant.progress {
        Progress::Finished(_) => None,
        Progress::NotRun => Some(json!({ "variant": variant.name, "seconds": null })),
        Progress::Partial { seconds, recovered_bytes, total_bytes } => Some(json!({
            "variant": variant.name,
            "seconds": seconds,
            "recovered_bytes": recovered_bytes,
            "total_bytes": total_bytes,
        })),
    }
}
