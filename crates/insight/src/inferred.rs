//! What held a variant on a target that does not account for its time: inferred from what was sampled, or unknown.
//!
//! A limit is named only with evidence for it and none against it. The rate is that of the time in which files moved:
//! over the whole recovery, setting up and finishing would hide every limit of a short one.

use record::Limit;

use crate::bounds::{Bounds, TOLERANCE};
use crate::trace::Trace;
use crate::verdict::Verdict;
use crate::words::{self, percent};

/// Throttled for this share of the file phase, the limiter was at work.
const THROTTLED: f64 = 0.2;
/// Throttled for less than this share, it was not what held.
const HARDLY_THROTTLED: f64 = 0.1;
/// From this share of a ceiling on, the ceiling explains the rate.
pub(crate) const NEAR_CEILING: f64 = 0.65;
/// From this share of the link's rate on, the link is full: TCP and the engine's own words take the rest.
const FULL_LINK: f64 = 0.85;

/// What was seen while files moved.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    bytes_per_s: f64,
    /// What the link carried, where it was sampled: files may be compressed on it.
    carried_bytes_per_s: Option<f64>,
    /// Share of that time for which the most throttled node was throttled.
    throttled: Option<f64>,
}

/// Infers what held a variant from its bounds and its samples.
pub(crate) fn inferred(bounds: &Bounds, trace: Option<&Trace<'_>>) -> Verdict {
    match trace.and_then(seen) {
        Some(seen) => judge(bounds, seen),
        None => unknown("files moved for too short a time to tell a rate".to_owned()),
    }
}

fn unknown(why: String) -> Verdict {
    let text = format!("unknown: this target does not say what its time went to, and {why}");
    Verdict { limit: None, share: 0.0, ceiling: None, next: None, text }
}

fn seen(trace: &Trace<'_>) -> Option<Seen> {
    let files = trace.files()?;
    let throttled = trace.throttled_ms().map(|ms| (ms / 1e3 / files.seconds).min(1.0));
    Some(Seen {
        bytes_per_s: files.bytes_per_s(),
        carried_bytes_per_s: files.carried_bytes_per_s,
        throttled,
    })
}

fn judge(bounds: &Bounds, seen: Seen) -> Verdict {
    let rate = words::rate(seen.bytes_per_s);
    let used = |limit: Limit, bytes_per_s: f64| {
        let ceiling = bounds.ceiling(limit)?;
        Some((bytes_per_s / ceiling.rate_bytes_per_s, ceiling))
    };
    let share_of = |limit: Limit| used(limit, seen.bytes_per_s);
    // Files that come faster than the link's rate are compressed on it, and say nothing of what it carried.
    let carried = seen.carried_bytes_per_s.unwrap_or(seen.bytes_per_s);
    let link =
        used(Limit::LinkRate, carried).filter(|(share, _)| (FULL_LINK..=TOLERANCE).contains(share));
    let throttle = share_of(Limit::Throttle).filter(|(share, _)| {
        *share >= NEAR_CEILING && seen.throttled.is_some_and(|share| share >= THROTTLED)
    });
    let latency = share_of(Limit::Latency).filter(|(share, _)| {
        (NEAR_CEILING..=1.1).contains(share)
            && seen.throttled.is_some_and(|share| share < HARDLY_THROTTLED)
    });
    let found = match (throttle, link, latency) {
        (Some(found), _, _) => {
            let throttled = percent(seen.throttled.unwrap_or(0.0));
            let why = format!("a node was throttled for {throttled} of the time, and {rate} is");
            Some((Limit::Throttle, why, found))
        }
        (_, Some(found), _) => {
            let on_line = if seen.carried_bytes_per_s.is_some() { " on the line" } else { "" };
            Some((Limit::LinkRate, format!("{}{on_line} is", words::rate(carried)), found))
        }
        (_, _, Some(found)) => {
            Some((Limit::Latency, format!("no node was throttled, and {rate} is"), found))
        }
        _ => None,
    };
    let Some((limit, why, (share, ceiling))) = found else {
        let seen = match seen.throttled {
            Some(share) => format!("{rate}, throttled for {} of the time,", percent(share)),
            None => rate,
        };
        return unknown(format!("{seen} fits no ceiling that settings and link set"));
    };
    let next = bounds
        .ceilings()
        .into_iter()
        .find(|other| other.limit != limit && other.rate_bytes_per_s > seen.bytes_per_s);
    let next_text = next.as_ref().map_or("nothing that the record shows", |next| &next.text);
    let text = format!(
        "{}, inferred: while files moved, {why} {} of {}; next: {next_text}",
        limit.label(),
        percent(share),
        ceiling.text
    );
    Verdict { limit: Some(limit), share: 0.0, ceiling: Some(ceiling), next, text }
}

#[cfg(test)]
mod tests {
    use record::RecoverySample;

    use super::*;
    use crate::bounds::ocean;

    fn at(bytes_per_s: f64, throttled: Option<f64>) -> Verdict {
        judge(&ocean(), Seen { bytes_per_s, carried_bytes_per_s: None, throttled })
    }

    #[test]
    fn latency_needs_littles_law_and_no_throttle() {
        let verdict = at(9.4e6, Some(0.0));
        assert_eq!(
            verdict.text,
            "latency, inferred: while files moved, no node was throttled, and 9.40 MB/s is 90 % of \
             latency at 10.5 MB/s (512 KiB x 2); next: the throttle at 41.9 MB/s"
        );
        assert_eq!(at(9.4e6, None).limit, None, "nothing is known of the throttle");
        assert_eq!(at(9.4e6, Some(0.15)).limit, None);
        assert_eq!(at(5e6, Some(0.0)).limit, None, "half of the ceiling is something else");
    }

    #[test]
    fn a_throttle_needs_its_own_clock_and_its_rate() {
        let verdict = at(39e6, Some(0.6));
        assert_eq!(verdict.limit, Some(Limit::Throttle));
        assert!(verdict.text.contains("throttled for 60 % of the time"), "{}", verdict.text);
        assert_eq!(at(20e6, Some(0.6)).limit, None, "far below the limiter's rate");
        assert_eq!(at(39e6, Some(0.05)).limit, None, "the limiter hardly paused anyone");
    }

    #[test]
    fn a_full_link_is_a_full_link() {
        assert_eq!(at(112e6, Some(0.0)).limit, Some(Limit::LinkRate));
        assert_eq!(at(90e6, Some(0.0)).limit, None);
    }

    #[test]
    fn files_that_are_compressed_fill_the_link_by_what_it_carries() {
        let seen = |carried_bytes_per_s| Seen {
            bytes_per_s: 180e6,
            carried_bytes_per_s,
            throttled: Some(0.0),
        };
        let of = |carried| judge(&ocean(), seen(carried));
        assert_eq!(of(None).limit, None, "144 % of the link was not carried by it");
        assert_eq!(of(Some(60e6)).limit, None, "half of the link is something else");
        assert_eq!(
            of(Some(118e6)).text,
            "link rate, inferred: while files moved, 118 MB/s on the line is 94 % of the link at 125 MB/s; next: \
             nothing that the record shows"
        );
    }

    #[test]
    fn an_unknown_says_what_was_seen() {
        let text = at(25e6, Some(0.02)).text;
        assert!(text.starts_with("unknown: "), "{text}");
        assert!(text.contains("25.0 MB/s, throttled for 2.0 % of the time,"), "{text}");
    }

    #[test]
    fn the_rate_is_that_of_the_time_in_which_files_moved() {
        let sample = |recovered_bytes| RecoverySample {
            recovered_bytes,
            total_bytes: 4_000_000,
            ..RecoverySample::default()
        };
        // Two seconds of setting up, then 1 MB/s, then finishing.
        let samples = [0, 0, 1_000_000, 2_000_000, 4_000_000, 4_000_000].map(sample);
        let times = [0.0, 1000.0, 2000.0, 3000.0, 5000.0, 9000.0];
        let recovery: Vec<_> = times.into_iter().zip(&samples).collect();
        let trace = |samples: usize| {
            let mut trace = Trace::default();
            trace.recovery.extend_from_slice(&recovery[..samples]);
            trace
        };
        let found = Seen { bytes_per_s: 1e6, carried_bytes_per_s: None, throttled: None };
        assert_eq!(seen(&trace(6)), Some(found));
        let short = trace(4);
        assert_eq!(seen(&short), None);
        let text = inferred(&ocean(), Some(&short)).text;
        assert!(text.contains("too short a time"), "{text}");
        assert_eq!(inferred(&ocean(), None).limit, None);
    }
}
