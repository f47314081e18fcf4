//! How fast a recovery goes, and when it will be done: an interval, never a point.

use serde::Serialize;

use super::series::{MS_PER_S, Series, Step, Transfer};
use crate::stats::{mean, standard_errors};

/// A rate that differs from the latest rates by more than this factor is no longer current.
const CHANGE: f64 = 1.5;
/// A rate is never known better than by the first share of itself, nor worse than by the second.
pub(crate) const SPREAD_MIN: f64 = 0.1;
pub(crate) const SPREAD_MAX: f64 = 0.9;
/// The latest rates: so many steps between looks.
const PRESENT_STEPS: usize = 3;

/// The pace of one recovery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pace {
    /// Index.
    pub index: String,
    /// Shard number.
    pub shard: u32,
    /// Node that is read, or the repository.
    pub source: Option<String>,
    /// Node that recovers.
    pub target: Option<String>,
    /// `PEER`, `SNAPSHOT`, ...
    pub kind: String,
    /// Stage.
    pub stage: String,
    /// Whether it is no longer active.
    pub ended: bool,
    /// Bytes that are there, those that were there before included.
    pub done_bytes: Option<u64>,
    /// Bytes to recover.
    pub total_bytes: Option<u64>,
    /// Operations replayed.
    pub done_ops: Option<u64>,
    /// Operations to replay.
    pub total_ops: Option<u64>,
    /// Bytes a second between the last two looks; over some more where a chunk takes longer than that.
    pub now_bytes_per_s: Option<f64>,
    /// Bytes a second since the rate last changed.
    pub bytes_per_s: Option<f64>,
    /// Operations a second since it replays them.
    pub ops_per_s: Option<f64>,
    /// Share of the time paused by limiters, source and target summed; may exceed 1.
    pub paused_share: Option<f64>,
    /// When its stage will be done, in seconds from the last look: earliest and latest.
    pub eta_s: Option<(f64, f64)>,
}

/// The pace of every recovery of the last look.
pub fn paces(series: &Series<'_>) -> Vec<Pace> {
    let Some(last) = series.last() else { return Vec::new() };
    let pace = |recovery: &record::observation::Recovery| {
        let transfer = series.transfer(recovery);
        let steps = transfer.map(Transfer::steps).unwrap_or_default();
        let rates = rates(&steps);
        let since = since_change(&rates);
        let reused = recovery.reused_bytes.unwrap_or(0);
        let done = recovery.recovered_bytes.map(|recovered| recovered + reused);
        let is_copying = recovery.stage == "INDEX" && !recovery.ended;
        let left =
            recovery.total_bytes.zip(done).map(|(total, done)| total.saturating_sub(done) as f64);
        let is_replaying = recovery.stage == "TRANSLOG" && !recovery.ended;
        let ops_per_s = transfer.filter(|_| is_replaying).and_then(Transfer::ops_per_s);
        let ops_left =
            recovery.total_ops.zip(recovery.recovered_ops).map(|(a, b)| a.saturating_sub(b) as f64);
        let eta_s = match is_replaying {
            true => ops_left.zip(ops_per_s).filter(|(_, rate)| *rate > 0.0).map(|(left, rate)| {
                // There is only one mean rate, so the interval is from half of the time to twice.
                (left / rate / 2.0, left / rate * 2.0)
            }),
            false => left.filter(|_| is_copying).and_then(|left| interval(left, since)),
        };
        Pace {
            index: recovery.index.clone(),
            shard: recovery.shard,
            source: recovery.source.clone().or_else(|| recovery.repository.clone()),
            target: recovery.target.clone(),
            kind: recovery.kind.clone(),
            stage: recovery.stage.clone(),
            ended: recovery.ended,
            done_bytes: done,
            total_bytes: recovery.total_bytes,
            done_ops: recovery.recovered_ops,
            total_ops: recovery.total_ops,
            now_bytes_per_s: rates.last().copied().filter(|_| is_copying),
            bytes_per_s: mean(since).filter(|_| is_copying),
            ops_per_s,
            paused_share: transfer.and_then(|t| Some(t.paused_ms()? as f64 / t.wall_ms())),
            eta_s,
        }
    };
    last.recoveries.iter().map(pace).collect()
}

/// The rates at which bytes came. Where a chunk takes longer than from one look to the next, looks that saw nothing
/// belong to the one that saw it come, in parts so long that the look in which it falls changes little. What has not
/// come yet counts as nothing once it is late: later than any before, as chunks of several recoveries at one limiter
/// come unevenly.
fn rates(steps: &[Step]) -> Vec<f64> {
    let (mut rates, mut part, mut late) = (Vec::new(), Vec::new(), 0);
    let (mut waited_ms, mut gap_ms) = (0.0, 0.0);
    for step in steps {
        part.push(step);
        waited_ms += step.wall_ms;
        if step.bytes == 0 {
            late += usize::from(waited_ms > gap_ms * CHANGE);
            continue;
        }
        (gap_ms, waited_ms, late) = (waited_ms.max(gap_ms), 0.0, 0);
        if part.len() == 1 || part.len() >= PRESENT_STEPS {
            rates.push(rate_of(&part));
            part.clear();
        }
    }
    if rates.is_empty() && part.iter().any(|step| step.bytes > 0) {
        rates.push(rate_of(&part));
    }
    rates.extend(std::iter::repeat_n(0.0, late));
    rates
}

fn rate_of(part: &[&Step]) -> f64 {
    let bytes: u64 = part.iter().map(|step| step.bytes).sum();
    bytes as f64 / (part.iter().map(|step| step.wall_ms).sum::<f64>() / MS_PER_S)
}

/// The rates since the last change of the rate.
pub(crate) fn since_change(rates: &[f64]) -> &[f64] {
    let present = &rates[rates.len().saturating_sub(PRESENT_STEPS)..];
    let Some(level) = crate::stats::median(present).filter(|level| *level > 0.0) else {
        return present;
    };
    let differs = |rate: &f64| *rate > level * CHANGE || *rate < level / CHANGE;
    let from = rates.iter().rposition(differs).map_or(0, |last| last + 1);
    // A single odd step at the very end is no change of the rate yet.
    if from == rates.len() { present } else { &rates[from..] }
}

/// Earliest and latest end: the mean rate and what 95 % of such means are within, at least 10 %. One rate tells nothing
/// of how it varies: half of it is taken.
pub(crate) fn interval(left: f64, rates: &[f64]) -> Option<(f64, f64)> {
    let mean = mean(rates).filter(|mean| *mean > 0.0)?;
    let count = rates.len() as f64;
    let spread = match rates.len() {
        1 => 0.5,
        _ => {
            let variance =
                rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0);
            (standard_errors(rates.len()) * (variance / count).sqrt() / mean)
                .clamp(SPREAD_MIN, SPREAD_MAX)
        }
    };
    Some(between(left, mean, spread))
}

/// Earliest and latest end, if a rate is higher or lower by a share of itself.
pub(crate) fn between(left: f64, rate: f64, spread: f64) -> (f64, f64) {
    (left / (rate * (1.0 + spread)), left / (rate * (1.0 - spread)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_begins_where_the_rate_changed() {
        assert_eq!(since_change(&[10.0, 11.0, 40.0, 41.0, 39.0]), [40.0, 41.0, 39.0]);
        assert_eq!(since_change(&[10.0, 11.0, 10.0]), [10.0, 11.0, 10.0]);
        assert_eq!(since_change(&[10.0, 10.0, 10.0, 40.0]), [10.0, 10.0, 40.0]);
        assert!(since_change(&[]).is_empty());
    }

    /// The trap: a chunk of 512 KiB a second or two, and a rate that is 0 or 0.52 MB/s by turns.
    #[test]
    fn chunks_that_take_longer_than_a_look_have_a_rate() {
        let of = |came: &[u64]| {
            let step = |bytes: &u64| Step { t_ms: 0.0, bytes: *bytes, wall_ms: 1e3, shards: 1 };
            rates(&came.iter().map(step).collect::<Vec<_>>())
        };
        assert_eq!(of(&[0, 6, 0, 6, 0, 6, 0, 6, 0]), [3.0, 3.0]);
        assert_eq!(of(&[0, 6, 6, 0, 6, 6]), [4.0, 4.0]);
        assert_eq!(of(&[5, 6, 7]), [5.0, 6.0, 7.0], "each look saw some come");
        // Nothing is late before it is half as late again as any before.
        assert_eq!(of(&[6, 6, 0]), [6.0, 6.0]);
        assert_eq!(of(&[6, 6, 0, 0, 0]), [6.0, 6.0, 0.0, 0.0]);
        assert_eq!(of(&[6, 0, 0, 6, 6, 0, 0, 0]), [6.0, 2.0, 6.0]);
        assert_eq!(of(&[0, 0, 6, 0, 0, 6, 0, 0, 0, 0]), [2.0, 2.0]);
        assert_eq!((of(&[0, 0]), of(&[0, 6])), (vec![0.0, 0.0], vec![3.0]));
    }

    #[test]
    fn an_eta_is_an_interval_around_the_mean() {
        let (soon, late) = interval(100.0, &[10.0, 10.0, 10.0]).unwrap();
        assert!(soon < 10.0 && 10.0 < late && late < 11.2, "{soon} {late}");
        let (soon, late) = interval(100.0, &[5.0, 15.0]).unwrap();
        assert!(soon < 7.0 && late > 20.0, "{soon} {late}");
        assert_eq!(interval(100.0, &[0.0]), None);
    }

    /// Two standard errors of two rates hold their mean in 70 % of cases.
    #[test]
    fn few_rates_leave_more_open() {
        let spread = |rates: &[f64]| {
            let (soon, late) = interval(100.0, rates).unwrap();
            (late / soon - 1.0) / (late / soon + 1.0)
        };
        // 12.706 standard errors of 2 %, and 4.303 of 5.77 %.
        assert!((spread(&[9.8, 10.2]) - 0.254).abs() < 1e-3);
        assert!((spread(&[9.0, 10.0, 11.0]) - 0.248).abs() < 1e-3);
    }
}
