//! What held a variant on a target that accounts for its time, in one sentence with numbers.

use record::{Limit, LimitShare};

use crate::bounds::{Bounds, Ceiling, TOLERANCE};
use crate::verdict::Verdict;
use crate::words::{self, percent};

/// A second limit with at least this share of the time comes next, whatever ceilings say.
const STRONG: f64 = 0.2;
/// Where no ceiling is known, a second limit with at least this share of the time is close.
const NEAR: f64 = 0.1;

/// Judges a variant by its accounting, which has at least one limit, its bounds and the rate that it reached.
pub(crate) fn verdict(
    limits: &[LimitShare],
    bounds: &Bounds,
    bytes_per_s: f64,
    link_share: Option<f64>,
) -> Verdict {
    let held = &limits[0];
    let ceiling = bounds
        .ceiling(held.limit)
        .filter(|ceiling| bytes_per_s <= ceiling.rate_bytes_per_s * TOLERANCE);
    let why = why(held.limit, limits, bounds, bytes_per_s, link_share, ceiling.as_ref());
    let (next, next_text) = next(limits, bounds, bytes_per_s);
    let text = format!("{}: {why}; next: {next_text}", shares(limits));
    Verdict { limit: Some(held.limit), share: held.share, ceiling, next, text }
}

/// `97 % latency`, or the first two where none has half of the time.
pub(crate) fn shares(limits: &[LimitShare]) -> String {
    let one = |share: &LimitShare| format!("{} {}", percent(share.share), share.limit.label());
    match limits {
        [first, second, ..] if first.share < 0.5 => format!("{}, {}", one(first), one(second)),
        [first, ..] => one(first),
        [] => String::new(),
    }
}

pub(crate) fn why(
    limit: Limit,
    limits: &[LimitShare],
    bounds: &Bounds,
    bytes_per_s: f64,
    link_share: Option<f64>,
    ceiling: Option<&Ceiling>,
) -> String {
    match limit {
        Limit::Latency => why_latency(bounds, bytes_per_s, ceiling),
        Limit::LinkRate => why_link(limits, bounds, bytes_per_s, link_share),
        Limit::Loss => {
            "connections waited for what the line had lost, and for windows that losses had reduced"
                .to_owned()
        }
        Limit::Throttle => why_throttle(bounds, ceiling),
        Limit::DiskRead => "the source waited for its disk to read".to_owned(),
        Limit::DiskWrite => "the target waited for its disk to write".to_owned(),
        Limit::Cpu => match &bounds.busiest {
            Some((node, cores)) => format!(
                "chunks waited for a core; {node} was busiest with {} cores on average",
                words::three_digits(*cores)
            ),
            None => "chunks waited for a core to hash, compress, copy or index".to_owned(),
        },
        Limit::Slots => "shards waited for a recovery slot (node_concurrent_recoveries)".to_owned(),
        Limit::Memory => "a bound on memory held chunks back".to_owned(),
        Limit::Proxy => "a proxy between the clusters held chunks back".to_owned(),
        Limit::Coordination => "nodes agreed on what precedes and follows the files".to_owned(),
    }
}

/// Little's law: the rate is what is in flight over the time that it is in flight.
fn why_latency(bounds: &Bounds, bytes_per_s: f64, ceiling: Option<&Ceiling>) -> String {
    let a_shard = bounds.latency_bytes_per_s_a_shard();
    if let (Some(ceiling), Some(a_shard), Some(in_flight), Some(rtt), Some(shards)) =
        (ceiling, a_shard, bounds.in_flight(), bounds.rtt_ms, bounds.shards)
    {
        let over = match shards {
            1 => String::new(),
            n => format!(", {} over {n} shards", words::rate(ceiling.rate_bytes_per_s)),
        };
        let short = ceiling.rate_bytes_per_s > bytes_per_s * 1.25;
        let reached = match (short, bounds.slow_start_after_idle) {
            (false, _) => String::new(),
            (true, false) => format!(" (it reached {})", words::rate(bytes_per_s)),
            (true, true) => format!(
                " (it reached {}: a connection that pauses opens its window anew)",
                words::rate(bytes_per_s)
            ),
        };
        let window = bounds.window_below_chunk().map_or_else(String::new, |window| {
            format!(" through a connection's window of {}", record::units::show_bytes(window))
        });
        return format!(
            "{in_flight} in flight{window} over {} cannot exceed {} a shard (Little's law){over}{reached}",
            words::rtt(rtt),
            words::rate(a_shard)
        );
    }
    match (bounds.mean_in_flight_bytes, bounds.link_holds_bytes()) {
        (Some(mean), Some(full)) if mean < full => format!(
            "{} in flight on average, where the link holds {}",
            record::units::show_bytes(mean as u64),
            record::units::show_bytes(full as u64)
        ),
        _ => "nothing but round trips held chunks: more of them in flight would have cost nothing"
            .to_owned(),
    }
}

fn why_link(
    limits: &[LimitShare],
    bounds: &Bounds,
    bytes_per_s: f64,
    link_share: Option<f64>,
) -> String {
    let used = bounds.link_used(link_share);
    let rest = match limits.get(1) {
        Some(second) if used.is_some_and(|used| used < 0.9) && second.share >= 0.05 => {
            format!("; {} more went to {}", percent(second.share), words::holder(second.limit))
        }
        _ => String::new(),
    };
    match (link_share.zip(used), bounds.link_bytes_per_s) {
        // Files are compressed on the link: its own bytes are fewer.
        (Some((share, used)), Some(rate)) if share > used.min(1.0) * TOLERANCE => {
            let busy = match bounds.link_busy {
                Some(busy) => format!(", busy for {} of the time", percent(busy)),
                None => String::new(),
            };
            format!(
                "{} before compression came over the link's {}{busy}{rest}",
                words::rate(bytes_per_s),
                words::rate(rate)
            )
        }
        (Some((share, _)), Some(rate)) => format!(
            "{} is {} of the link's {}{rest}",
            words::rate(bytes_per_s),
            percent(share),
            words::rate(rate)
        ),
        _ => format!("bytes waited for the link to carry them{rest}"),
    }
}

fn why_throttle(bounds: &Bounds, ceiling: Option<&Ceiling>) -> String {
    let on = match (&bounds.busiest_limiter, bounds.throttled_nodes) {
        (Some((node, share)), _) => {
            format!("{node}, which takes part in {} of what is copied,", percent(*share))
        }
        (None, 1) => "1 node".to_owned(),
        (None, nodes) => format!("{nodes} nodes side by side"),
    };
    match (bounds.throttle_bytes_per_s, ceiling) {
        (Some(rate), Some(ceiling)) => format!(
            "max_bytes_per_sec = {} on {on} allows {}",
            record::units::show_size_setting(rate),
            words::rate(ceiling.rate_bytes_per_s)
        ),
        _ => "a max_bytes_per_sec limiter held chunks back".to_owned(),
    }
}

/// A second limit that already takes much of the time comes next; else the lowest known ceiling
/// above the measured rate; else whatever took the rest of the time.
pub(crate) fn next(
    limits: &[LimitShare],
    bounds: &Bounds,
    bytes_per_s: f64,
) -> (Option<Ceiling>, String) {
    let held = limits[0].limit;
    let second = limits.get(1);
    let charged = |share: &LimitShare| {
        format!("{}, {} of the time already", words::holder(share.limit), percent(share.share))
    };
    let known = |ceiling: Ceiling| {
        let text = ceiling.text.clone();
        (Some(ceiling), text)
    };
    if let Some(strong) = second.filter(|share| share.share >= STRONG) {
        return match bounds.ceiling(strong.limit) {
            Some(ceiling) if ceiling.rate_bytes_per_s > bytes_per_s => known(ceiling),
            _ => (None, charged(strong)),
        };
    }
    let above = bounds
        .ceilings()
        .into_iter()
        .find(|ceiling| ceiling.limit != held && ceiling.rate_bytes_per_s > bytes_per_s);
    match (above, second) {
        (Some(ceiling), _) => known(ceiling),
        (None, Some(second)) if second.share >= NEAR => (None, charged(second)),
        (None, Some(second)) if second.share >= 0.01 => {
            let takes = format!("{} takes {}", words::holder(second.limit), percent(second.share));
            (None, format!("nothing close ({takes})"))
        }
        _ => (None, "nothing else that the record shows".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(shares: &[(Limit, f64)]) -> Vec<LimitShare> {
        shares.iter().map(|&(limit, share)| LimitShare { limit, share }).collect()
    }

    fn ocean(chunk_bytes: u64, chunks: u32) -> Bounds {
        Bounds {
            chunk_bytes: Some(chunk_bytes),
            chunks_in_flight: Some(chunks),
            shards: Some(3),
            throttled_nodes: 3,
            rtt_ms: Some(100.0),
            link_bytes_per_s: Some(125e6),
            ..Bounds::default()
        }
    }

    #[test]
    fn latency_is_explained_by_littles_law_and_the_link_is_next() {
        let limits = limits(&[(Limit::Latency, 0.97), (Limit::LinkRate, 0.03)]);
        let verdict = verdict(&limits, &ocean(65_536, 1), 1.95e6, Some(0.0156));
        assert_eq!(
            verdict.text,
            "97 % latency: 64 KiB x 1 in flight over 100 ms cannot exceed 0.66 MB/s a shard \
             (Little's law), 1.97 MB/s over 3 shards; next: the link at 125 MB/s"
        );
        assert_eq!(verdict.next.unwrap().limit, Limit::LinkRate);
    }

    #[test]
    fn a_window_smaller_than_a_chunk_is_what_is_in_flight() {
        let limits = limits(&[(Limit::Latency, 1.0)]);
        let mut bounds = Bounds { window_bytes: Some(17_000), ..ocean(65_536, 1) };
        assert_eq!(
            verdict(&limits, &bounds, 0.5e6, Some(0.004)).text,
            "100 % latency: 64 KiB x 1 in flight through a connection's window of 17.0 kB over 100 ms cannot exceed \
             0.17 MB/s a shard (Little's law), 0.51 MB/s over 3 shards; next: the link at 125 MB/s"
        );
        bounds.slow_start_after_idle = true;
        let slower = verdict(&limits, &bounds, 0.3e6, Some(0.002)).text;
        assert!(slower.contains("0.30 MB/s: a connection that pauses opens"), "{slower}");
    }

    #[test]
    fn a_ceiling_that_was_exceeded_is_not_claimed() {
        let limits = limits(&[(Limit::Latency, 1.0)]);
        let verdict = verdict(&limits, &ocean(65_536, 1), 5e6, None);
        assert!(verdict.ceiling.is_none());
        assert!(!verdict.text.contains("cannot exceed"), "{}", verdict.text);
    }

    #[test]
    fn a_full_link_would_next_meet_latency_or_the_throttle() {
        let limits = limits(&[(Limit::LinkRate, 0.9), (Limit::Latency, 0.1)]);
        let mut bounds = ocean(1 << 20, 5);
        let full = verdict(&limits, &bounds, 118e6, Some(0.944));
        assert_eq!(
            full.text,
            "90 % link rate: 118 MB/s is 94 % of the link's 125 MB/s; \
             next: latency at 157 MB/s (1 MiB x 5)"
        );
        bounds.throttle_bytes_per_s = Some(40 << 20);
        let throttled = verdict(&limits, &bounds, 118e6, Some(0.944));
        assert_eq!(throttled.next.unwrap().text, "the throttle at 126 MB/s");
    }

    #[test]
    fn what_is_compressed_is_no_share_of_the_link() {
        let limits = limits(&[(Limit::LinkRate, 0.9), (Limit::Cpu, 0.1)]);
        let text = verdict(&limits, &ocean(1 << 20, 5), 180e6, Some(1.44)).text;
        assert!(
            text.starts_with(
                "90 % link rate: 180 MB/s before compression came over the link's 125 MB/s; next: "
            ),
            "{text}"
        );
    }

    /// 118 MB/s of files are 60 on the line: no 94 % of the link.
    #[test]
    fn what_is_compressed_below_the_links_rate_is_told_by_how_busy_it_was() {
        let limits = limits(&[(Limit::LinkRate, 0.48), (Limit::Latency, 0.47)]);
        let bounds = Bounds { link_busy: Some(0.48), ..ocean(1 << 20, 5) };
        let text = verdict(&limits, &bounds, 118e6, Some(0.944)).text;
        let says = "118 MB/s before compression came over the link's 125 MB/s, busy for 48 % of the time; 47 % more";
        assert!(text.contains(says), "{text}");
        // What is not compressed has headers, too.
        let bounds = Bounds { link_busy: Some(0.97), ..ocean(1 << 20, 5) };
        let text = verdict(&limits, &bounds, 118e6, Some(0.944)).text;
        assert!(text.contains("118 MB/s is 94 % of the link's 125 MB/s; next"), "{text}");
    }

    #[test]
    fn a_throttle_names_its_setting() {
        let mut bounds = ocean(1 << 20, 5);
        bounds.throttle_bytes_per_s = Some(20 << 20);
        let limits = limits(&[(Limit::Throttle, 0.8), (Limit::Latency, 0.2)]);
        let verdict = verdict(&limits, &bounds, 60e6, Some(0.48));
        assert_eq!(
            verdict.text,
            "80 % throttle: max_bytes_per_sec = 20mb on 3 nodes side by side allows 62.9 MB/s; \
             next: latency at 157 MB/s (1 MiB x 5)"
        );
    }

    #[test]
    fn a_limiter_that_all_others_wait_for_is_named() {
        let mut bounds = ocean(1 << 20, 5);
        bounds.throttle_bytes_per_s = Some(20 << 20);
        bounds.busiest_limiter = Some(("leader-1".to_owned(), 1.0));
        let limits = limits(&[(Limit::Throttle, 1.0)]);
        let verdict = verdict(&limits, &bounds, 20e6, None);
        assert_eq!(
            verdict.text,
            "100 % throttle: max_bytes_per_sec = 20mb on leader-1, which takes part in 100 % of what is copied, allows \
             21.0 MB/s; next: the link at 125 MB/s"
        );
    }

    #[test]
    fn without_settings_and_link_nothing_is_made_up() {
        let bare = Bounds::default();
        let mixed = limits(&[(Limit::Cpu, 0.4), (Limit::DiskWrite, 0.35), (Limit::Latency, 0.25)]);
        assert_eq!(
            verdict(&mixed, &bare, 1e6, None).text,
            "40 % CPU, 35 % disk write: chunks waited for a core to hash, compress, copy or index; \
             next: the target's disk, 35 % of the time already"
        );
    }
}
