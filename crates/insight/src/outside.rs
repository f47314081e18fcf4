//! What held a variant on a target that does not account for its time: the account of the elapsed time as it is seen
//! from outside; where there is none, what its samples allow to infer.

use record::{Limit, LimitShare, Manifest, Row, units};

use crate::accounted::{next, shares, why};
use crate::bounds::Bounds;
use crate::elapsed::{Elapsed, Stage};
use crate::inferred::{NEAR_CEILING, inferred};
use crate::trace::Trace;
use crate::verdict::Verdict;
use crate::words::{self, percent};

/// A throttle that is named needs at least this share of its rate: pauses of many chunks sum to more than they cost.
const USES_LIMITER: f64 = 0.5;
/// A stage with less of the time than this is not worth a word.
const STAGE: f64 = 0.01;
/// A window is worth a word where it was full for this share of the time.
const WINDOW: f64 = 0.1;

/// The target of clusters that narrows did not start.
const FOREIGN: &str = "url";

/// What held a variant, and the shares of the limits; none of them where there is no account.
pub(crate) struct Seen {
    pub limits: Vec<LimitShare>,
    pub verdict: Verdict,
}

/// The account of the elapsed time; none where the nodes or their link were not started for the run: a link that
/// somebody else owns tells nothing.
pub(crate) fn account(
    manifest: &Manifest,
    bounds: &Bounds,
    trace: Option<&Trace<'_>>,
    row: &Row,
) -> Option<Elapsed> {
    let trace = trace.filter(|_| manifest.target != FOREIGN && !copied_nothing(manifest, row))?;
    let mut account = Elapsed::of(trace, row.seconds)?;
    name_limiter(&mut account, bounds, row.bytes);
    Some(account)
}

/// Judges a variant.
pub(crate) fn seen(
    manifest: &Manifest,
    bounds: &Bounds,
    trace: Option<&Trace<'_>>,
    row: &Row,
) -> Seen {
    if copied_nothing(manifest, row) {
        let text = "nothing was copied".to_owned();
        let verdict = Verdict { limit: None, share: 0.0, ceiling: None, next: None, text };
        return Seen { limits: Vec::new(), verdict };
    }
    let Some(account) = account(manifest, bounds, trace, row) else {
        return Seen { limits: Vec::new(), verdict: inferred(bounds, trace) };
    };
    judged(&account, bounds, row.bytes, row.bytes_per_s)
}

/// Whether a twin had nothing to copy, as where no copy finds a place, or copies come back to their files: then nothing
/// held it, and no setting lifts it.
pub(crate) fn copied_nothing(manifest: &Manifest, row: &Row) -> bool {
    manifest.question.is_some() && row.bytes == 0
}

fn judged(account: &Elapsed, bounds: &Bounds, bytes: u64, bytes_per_s: f64) -> Seen {
    let limits = account.shares();
    let held = limits.first().filter(|held| held.share >= account.unexplained());
    let stages = stages(account, bytes);
    let unexplained = percent(account.unexplained());
    let Some(held) = held else {
        let text = format!(
            "unknown: {stages}; for {unexplained} of the time files moved and neither link nor limiter nor cores were busy"
        );
        let verdict = Verdict { limit: None, share: 0.0, ceiling: None, next: None, text };
        return Seen { limits, verdict };
    };
    let (next, next_text) = next(&limits, bounds, bytes_per_s);
    let rest = match account.unexplained() {
        share if share >= STAGE => format!("; nothing explains {unexplained}"),
        _ => String::new(),
    };
    let text = format!(
        "{}, seen from outside: {}; {stages}{rest}; next: {next_text}",
        shares(&limits),
        because(held.limit, &limits, bounds, account, bytes_per_s)
    );
    let verdict = Verdict {
        limit: Some(held.limit),
        share: held.share,
        ceiling: bounds.ceiling(held.limit),
        next,
        text,
    };
    Seen { limits, verdict }
}

/// A limiter whose pauses no counter tells explains time that nothing else does, where files came at its rate; and one
/// whose pauses are told is not blamed far below its rate.
fn name_limiter(account: &mut Elapsed, bounds: &Bounds, bytes: u64) {
    let files_s = account.stage_s(Stage::Files);
    let Some(ceiling) = bounds.ceiling(Limit::Throttle).filter(|_| files_s > 0.0) else { return };
    let used = bytes as f64 / files_s / ceiling.rate_bytes_per_s;
    if used >= NEAR_CEILING {
        account.explain(Limit::Throttle);
    } else if used < USES_LIMITER {
        account.excuse(Limit::Throttle);
    }
}

/// `1.20 s before the first file, 3.00 s of files at 20.0 MB/s, 0.50 s to finish`.
fn stages(account: &Elapsed, bytes: u64) -> String {
    let shown = |stage: Stage, words: &str| {
        let seconds = account.stage_s(stage);
        let shown = format!("{}{words}", units::show_seconds(seconds));
        (seconds >= STAGE * account.total_s).then_some(shown)
    };
    let rate = words::rate(bytes as f64 / account.stage_s(Stage::Files));
    [
        shown(Stage::Start, " before the first file"),
        shown(Stage::Files, &format!(" of files at {rate}")),
        shown(Stage::Operations, " of operations"),
        shown(Stage::Finish, " to finish"),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join(", ")
}

fn because(
    limit: Limit,
    limits: &[LimitShare],
    bounds: &Bounds,
    account: &Elapsed,
    bytes_per_s: f64,
) -> String {
    let ceiling = bounds.ceiling(limit).filter(|ceiling| bytes_per_s <= ceiling.rate_bytes_per_s);
    let of = |limit: Limit| account.limits.get(&limit).copied().unwrap_or(0.0);
    let while_files = account.while_files.get(&limit).copied().unwrap_or(0.0);
    let is_around_files = while_files < of(limit) / 2.0;
    match limit {
        Limit::Latency if is_around_files => format!(
            "what precedes and follows the files waited for round trips of {}",
            bounds.rtt_ms.map_or_else(|| "the link".to_owned(), words::rtt)
        ),
        Limit::Latency if account.window_full_s >= WINDOW * account.total_s => format!(
            "nothing but round trips held bytes, and for {} of the time a connection's window was full",
            percent(account.window_full_s / account.total_s)
        ),
        Limit::Latency if bounds.in_flight().is_none() => {
            "nothing but round trips held bytes: more of them in flight would have cost nothing"
                .to_owned()
        }
        Limit::LinkRate => {
            let files_s = account.stage_s(Stage::Files);
            format!("the link was full for {} of the time of files", percent(while_files / files_s))
        }
        Limit::Cpu => {
            let nodes = words::cores(account.nodes_cores);
            match account.machine_cpu {
                Some(all) => format!(
                    "the machine's cores were busy for {}, of which all nodes together used {nodes} cores and other work \
                     the rest",
                    percent(all)
                ),
                None => format!("all nodes together used {nodes} cores"),
            }
        }
        _ => why(limit, limits, bounds, bytes_per_s, None, ceiling.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::ocean;

    /// Ten seconds, of which files moved for six; by limit the seconds in all and while files moved.
    fn account(charged: &[(Limit, f64, f64)], unexplained_s: f64) -> Elapsed {
        let stages = [(Stage::Start, 2.5), (Stage::Files, 6.0), (Stage::Finish, 1.5)];
        Elapsed {
            sees_link: true,
            total_s: 10.0,
            stages: stages.into(),
            limits: charged.iter().map(|(limit, all, _)| (*limit, *all)).collect(),
            while_files: charged.iter().map(|(limit, _, files)| (*limit, *files)).collect(),
            unexplained_s,
            window_full_s: 0.0,
            machine_cpu: Some(0.97),
            nodes_cores: 0.4,
        }
    }

    fn text(mut account: Elapsed, bytes: u64) -> String {
        name_limiter(&mut account, &ocean(), bytes);
        judged(&account, &ocean(), bytes, bytes as f64 / 10.0).verdict.text
    }

    #[test]
    fn the_sentence_has_the_stages_and_the_next_limit() {
        let latency = account(&[(Limit::Latency, 9.0, 5.5), (Limit::Cpu, 1.0, 0.5)], 0.0);
        assert_eq!(
            text(latency, 50_000_000),
            "90 % latency, seen from outside: 512 KiB x 2 in flight over 100 ms cannot exceed 10.5 MB/s a shard \
             (Little's law) (it reached 5.00 MB/s); 2.50 s before the first file, 6.00 s of files at 8.33 MB/s, 1.50 s \
             to finish; next: the throttle at 41.9 MB/s"
        );
        let around = account(&[(Limit::Latency, 7.0, 3.0), (Limit::LinkRate, 3.0, 3.0)], 0.0);
        assert!(
            text(around, 50_000_000)
                .contains("precedes and follows the files waited for round trips of 100 ms")
        );
        let full = account(&[(Limit::LinkRate, 6.0, 5.4), (Limit::Latency, 4.0, 0.6)], 0.0);
        assert!(
            text(full, 700_000_000).contains("the link was full for 90 % of the time of files")
        );
        let busy = account(&[(Limit::Cpu, 9.0, 6.0)], 0.0);
        assert!(
            text(busy, 50_000_000)
                .contains("busy for 97 %, of which all nodes together used 0.40 cores")
        );
    }

    #[test]
    fn a_limiter_is_blamed_near_its_rate_alone() {
        // 40 MB/s of 41.9 while files moved, and nothing else was busy: a limiter whose pauses no counter tells.
        let restored = account(&[(Limit::Coordination, 4.0, 0.0)], 6.0);
        assert!(
            text(restored, 240_000_000)
                .starts_with("60 % throttle, seen from outside: max_bytes_per_sec = 40mb")
        );
        // Pauses of many chunks, far below the limit: they do not explain the rate.
        let pauses = account(&[(Limit::Throttle, 6.0, 6.0), (Limit::Coordination, 4.0, 0.0)], 0.0);
        let text = text(pauses, 60_000_000);
        assert!(text.starts_with("unknown: 2.50 s before the first file"), "{text}");
    }

    #[test]
    fn what_is_left_is_said() {
        let partly = account(&[(Limit::Latency, 8.0, 5.0)], 2.0);
        let text = text(partly, 50_000_000);
        assert!(text.contains("; nothing explains 20 %; next:"), "{text}");
    }
}
