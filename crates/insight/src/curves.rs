//! What charts draw: values over the time since a variant began, thinned to what can be seen.

use record::{FollowSample, LoadFigures, NodeSample, RecoverySample, Row, RunDir};

use crate::shades::{Shade, shades};
use crate::summary::Summary;
use crate::trace::{Trace, traces};
use crate::variant::{Progress, Variant};

/// Most points of a curve that has a chart of its own.
pub const POINTS: usize = 400;
/// Most points of a curve of the link's rate.
pub const LINK_POINTS: usize = 300;
/// Most points of a node's curve.
pub const NODE_POINTS: usize = 150;

/// Nodes of the field look at their disks and collectors once a second at most. A count that stands still for less than
/// this may be the one of the look before, and all that came since would seem to come at once.
const OLD_COUNT_S: f64 = 2.0;

/// Samples over which a rate of indexing is taken.
const INDEXED_SAMPLES: usize = 4;

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds since the variant began.
    pub t_s: f64,
    /// The value; its unit is the curve's.
    pub value: f64,
}

/// The curves of one variant: of the lap nearest the median, or of the last one that began.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Name of the variant.
    pub variant: String,
    /// The lap shown, from 1.
    pub lap: u32,
    /// Seconds from the variant's start to its end.
    pub seconds: f64,
    /// Bytes recovered since the variant began, over all shards.
    pub recovered: Vec<Point>,
    /// Documents a second that were indexed meanwhile; empty where nobody wrote.
    pub indexed: Vec<Point>,
    /// Operations that a follower lacked; empty where nobody follows.
    pub lag: Vec<Point>,
    /// When a follower had caught up that was waited for, in seconds since the variant began.
    pub caught_up_s: Vec<f64>,
    /// Mean latency of each operation of a load, in ms, by its name.
    pub latency: Vec<(String, Vec<Point>)>,
    /// Bytes a second that left the link towards the follower; empty without a link.
    pub link: Vec<Point>,
    /// What each node used.
    pub nodes: Vec<NodeCurve>,
    /// When something was wrong, or set otherwise.
    pub shades: Vec<Shade>,
}

/// What one node used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeCurve {
    /// Its cluster.
    pub cluster: String,
    /// Its name.
    pub node: String,
    /// Cores in use since the point before.
    pub cores: Vec<Point>,
    /// Mean cores over the variant.
    pub mean_cores: f64,
    /// Most cores that one sample showed, before thinning.
    pub max_cores: f64,
    /// Bytes of heap in use; empty where it has none.
    pub heap: Vec<Point>,
    /// Share of the time that it spent in garbage collections; empty where it has no heap.
    pub collecting: Vec<Point>,
    /// Bytes a second read from its disks; empty where it does not say.
    pub disk_read: Vec<Point>,
    /// Bytes a second written to its disks; empty where it does not say.
    pub disk_written: Vec<Point>,
    /// Share of the time in which its disks were busy; empty where it does not say. Of several disks it is the sum.
    pub disk_busy: Vec<Point>,
    /// Bytes a second that it received by transport.
    pub received: Vec<Point>,
    /// Bytes a second that it sent by transport.
    pub sent: Vec<Point>,
}

/// The curves of every variant that left samples, in the order of the plan.
pub fn curves(run: &RunDir, summary: &Summary<'_>) -> Vec<Curves> {
    let traces = traces(run);
    let one = |variant: &Variant| {
        let lap = match &variant.progress {
            Progress::Finished(figures) => figures.shown_lap,
            _ => traces
                .keys()
                .filter(|(name, _)| *name == variant.name)
                .map(|(_, lap)| *lap)
                .max()?,
        };
        let trace = traces.get(&(variant.name.as_str(), lap))?;
        let of_lap = |row: &&Row| row.variant == variant.name && row.lap == lap && row.took_time();
        let row = run.rows.iter().find(of_lap);
        let mut curves = match row.filter(|row| row.loads.is_empty()) {
            Some(row) => of_trace(&variant.name, lap, trace, Some((row.seconds, row.bytes))),
            // The time of a load is that of what was measured, without its warm-up.
            None => of_trace(&variant.name, lap, trace, None),
        }?;
        let (begins_ms, _) = trace.span_ms()?;
        curves.latency = latency(row, trace, begins_ms);
        curves.shades = shades(&run.lines, &variant.name, begins_ms, curves.seconds);
        Some(curves)
    };
    summary.variants.iter().filter_map(one).collect()
}

/// `end` is the time and the bytes of the finished row.
fn of_trace(name: &str, lap: u32, trace: &Trace<'_>, end: Option<(f64, u64)>) -> Option<Curves> {
    let (begins_ms, ends_ms) = trace.span_ms()?;
    let seconds = end.map_or((ends_ms - begins_ms) / 1000.0, |(seconds, _)| seconds);
    let within = |t_ms: f64| {
        let t_s = (t_ms - begins_ms) / 1000.0;
        (t_s > 0.0 && t_s <= seconds).then_some(t_s)
    };
    let counted = |samples: &[(f64, &NodeSample)], of: fn(&NodeSample) -> Option<u64>| {
        let since = |t_ms: f64| (t_ms - begins_ms) / 1000.0;
        let count = |(t_ms, sample): &(f64, &NodeSample)| Some((since(*t_ms), of(sample)?));
        samples.iter().filter_map(count).collect::<Vec<(f64, u64)>>()
    };
    let drawn = |counted: &[(f64, u64)]| thin_rates(&rates(counted, seconds), NODE_POINTS);
    let looked_at =
        |samples: &[(f64, &NodeSample)], of: fn(&NodeSample) -> Option<u64>, unit: f64| {
            let mut counted = counted(samples, of);
            if samples.iter().any(|(_, sample)| sample.heap_used_bytes.is_some()) {
                counted.dedup_by(|now, last| now.1 == last.1 && now.0 - last.0 < OLD_COUNT_S);
            }
            let points = drawn(&counted).into_iter();
            points.map(|point| Point { value: point.value / unit, ..point }).collect::<Vec<Point>>()
        };
    let nodes = trace
        .nodes
        .iter()
        .filter_map(|((cluster, node), samples)| {
            let values = samples
                .iter()
                .filter_map(|(t_ms, sample)| Some((within(*t_ms)?, sample.cpu_cores)))
                .filter(|(_, cores)| cores.is_finite());
            let heap = samples.iter().filter_map(|(t_ms, sample)| {
                Some(Point { t_s: within(*t_ms)?, value: sample.heap_used_bytes? as f64 })
            });
            Some(NodeCurve {
                cluster: (*cluster).to_owned(),
                node: (*node).to_owned(),
                heap: thin(heap.collect(), NODE_POINTS),
                collecting: looked_at(samples, |sample| sample.gc_ms, 1000.0),
                disk_read: looked_at(samples, |sample| sample.disk_read_bytes, 1.0),
                disk_written: looked_at(samples, |sample| sample.disk_written_bytes, 1.0),
                disk_busy: looked_at(samples, |sample| sample.disk_busy_ms, 1000.0),
                received: drawn(&counted(samples, |sample| Some(sample.transport_rx_bytes))),
                sent: drawn(&counted(samples, |sample| Some(sample.transport_tx_bytes))),
                ..cores(values.collect())?
            })
        })
        .collect();
    let counted: Vec<(f64, u64)> = trace
        .link
        .iter()
        .map(|(t_ms, sample)| ((t_ms - begins_ms) / 1000.0, sample.to_follower_bytes))
        .collect();
    Some(Curves {
        variant: name.to_owned(),
        lap,
        seconds,
        recovered: recovered(&trace.recovery, begins_ms, within, end),
        indexed: indexed(trace, begins_ms, seconds),
        lag: lag(&trace.following, within),
        caught_up_s: caught_up(&trace.following, within),
        latency: Vec::new(),
        link: thin_rates(&rates(&counted, seconds), LINK_POINTS),
        nodes,
        shades: Vec::new(),
    })
}

/// Documents a second that were acknowledged: beside a recovery, or to be followed. Each value is over several samples,
/// as between two of them there may be only few bulk requests.
fn indexed(trace: &Trace<'_>, begins_ms: f64, seconds: f64) -> Vec<Point> {
    let since = |t_ms: f64| (t_ms - begins_ms) / 1000.0;
    let beside = trace.recovery.iter().filter_map(|(t, s)| Some((since(*t), s.indexed_documents?)));
    let followed = trace.following.iter().map(|(t, s)| (since(*t), s.leader_operations));
    let counted: Vec<(f64, u64)> = beside.chain(followed).collect();
    if counted.last().is_none_or(|(_, all)| *all == counted[0].1) {
        return Vec::new();
    }
    let over: Vec<Span> = counted
        .windows(INDEXED_SAMPLES + 1)
        .filter_map(|samples| rates(&[samples[0], samples[INDEXED_SAMPLES]], seconds).pop())
        .collect();
    thin_rates(&over, POINTS)
}

/// Latencies of a load's operations, window by window. The last window ends with the operation's phase, give or take
/// what was less than a window.
fn latency(row: Option<&Row>, trace: &Trace<'_>, begins_ms: f64) -> Vec<(String, Vec<Point>)> {
    let loads = row.map_or(&[][..], |row| &row.loads);
    let one = |(load, ends_ms): (&LoadFigures, &f64)| {
        let began_s = (ends_ms - begins_ms) / 1000.0 - load.seconds;
        let windows = load.throughput.latency_ms.iter().enumerate();
        let points = windows.filter_map(|(at, mean_ms)| {
            let t_s = began_s + (at + 1) as f64 * load.throughput.window_s;
            Some(Point { t_s: t_s.max(0.0), value: (*mean_ms)? })
        });
        (load.operation.clone(), thin(points.collect(), POINTS))
    };
    loads.iter().zip(&trace.loads_end_ms).map(one).collect()
}

/// Keeps, of neighbours that are drawn as one, those with the least and the most, so that peaks stay.
fn thin(points: Vec<Point>, most: usize) -> Vec<Point> {
    if points.len() <= most {
        return points;
    }
    let group = points.len().div_ceil(most / 2);
    points.chunks(group).flat_map(|chunk| extremes(chunk.iter().copied())).collect()
}

/// The points with the least and the most, in the order of time.
fn extremes(points: impl Iterator<Item = Point> + Clone) -> Vec<Point> {
    let by_value = |a: &Point, b: &Point| a.value.total_cmp(&b.value);
    let mut found: Vec<Point> = points.clone().min_by(by_value).into_iter().collect();
    found.extend(points.max_by(by_value).filter(|most| found[0].t_s != most.t_s));
    found.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    found
}

/// Operations that the follower lacked, over time.
fn lag(samples: &[(f64, &FollowSample)], within: impl Fn(f64) -> Option<f64>) -> Vec<Point> {
    let points: Vec<Point> = samples
        .iter()
        .filter_map(|(t_ms, sample)| {
            Some(Point { t_s: within(*t_ms)?, value: sample.lag_operations as f64 })
        })
        .collect();
    thin(points, POINTS)
}

/// When a wait for the follower ended.
fn caught_up(samples: &[(f64, &FollowSample)], within: impl Fn(f64) -> Option<f64>) -> Vec<f64> {
    let ends = samples.iter().filter(|(_, sample)| sample.caught_up);
    ends.filter_map(|(t_ms, _)| within(*t_ms)).collect()
}

/// Bytes recovered over time. The curve starts at zero, since what was there when the variant began does not count, and
/// ends with the row, which is more exact than the last sample.
fn recovered(
    samples: &[(f64, &RecoverySample)],
    begins_ms: f64,
    within: impl Fn(f64) -> Option<f64>,
    end: Option<(f64, u64)>,
) -> Vec<Point> {
    let before = samples.iter().take_while(|(t_ms, _)| *t_ms <= begins_ms).last();
    let there = before.map_or(0, |(_, sample)| sample.recovered_bytes);
    let values: Vec<(f64, u64)> = samples
        .iter()
        .filter_map(|(t_ms, sample)| {
            Some((within(*t_ms)?, sample.recovered_bytes.saturating_sub(there)))
        })
        .collect();
    let Some(&(last_s, last_bytes)) = values.last() else { return Vec::new() };
    let room = POINTS - 2;
    let group = values.len().div_ceil(room).max(1);
    let mut points = vec![Point { t_s: 0.0, value: 0.0 }];
    points.extend(values.chunks(group).map(|chunk| {
        let (t_s, bytes) = chunk[chunk.len() - 1];
        Point { t_s, value: bytes as f64 }
    }));
    if let Some((seconds, bytes)) = end.filter(|(seconds, _)| *seconds > last_s) {
        points.push(Point { t_s: seconds, value: bytes.max(last_bytes) as f64 });
    }
    points
}

/// A span of time and what it carried.
struct Span {
    ends_s: f64,
    lasts_s: f64,
    amount: f64,
}

/// Differences of a counter. A counter that falls began anew; the span across is left out.
fn rates(counted: &[(f64, u64)], until_s: f64) -> Vec<Span> {
    counted
        .windows(2)
        .filter(|pair| pair[1].0 > 0.0 && pair[0].0 < until_s && pair[1].1 >= pair[0].1)
        .map(|pair| Span {
            ends_s: pair[1].0.min(until_s),
            lasts_s: pair[1].0 - pair[0].0,
            amount: (pair[1].1 - pair[0].1) as f64,
        })
        .collect()
}

/// Keeps, of neighbouring spans that are drawn as one, only those with the least and the most rate, so that peaks stay.
/// A value stands where its span ends; the first also where it begins, so that a curve covers all that was measured.
fn thin_rates(spans: &[Span], most: usize) -> Vec<Point> {
    let group = if spans.len() < most { 1 } else { spans.len().div_ceil((most - 1) / 2) };
    let point = |span: &Span| Point { t_s: span.ends_s, value: span.amount / span.lasts_s };
    let mut points: Vec<Point> =
        spans.chunks(group).flat_map(|chunk| extremes(chunk.iter().map(point))).collect();
    if let Some(first) = spans.first() {
        let begins_s = (first.ends_s - first.lasts_s).max(0.0);
        points.insert(0, Point { t_s: begins_s, ..point(first) });
    }
    points
}

/// The cores that a node used; none where nothing is known.
fn cores(values: Vec<(f64, f64)>) -> Option<NodeCurve> {
    let mut before_s = 0.0;
    let spans: Vec<Span> = values
        .iter()
        .map(|&(t_s, cores)| {
            let lasts_s = t_s - before_s;
            before_s = t_s;
            Span { ends_s: t_s, lasts_s, amount: cores * lasts_s }
        })
        .collect();
    let lasted_s = values.last()?.0;
    Some(NodeCurve {
        mean_cores: spans.iter().map(|span| span.amount).sum::<f64>() / lasted_s,
        max_cores: values.iter().map(|(_, cores)| *cores).fold(0.0, f64::max),
        cores: thin_rates(&spans, NODE_POINTS),
        ..NodeCurve::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_peaks_and_the_bound() {
        // A tenth of a second without a byte, and twice as many in the next one.
        let sent = |i: u64| if i == 7000 { i - 1 } else { i } * 700;
        let counted: Vec<(f64, u64)> = (0..=144_000).map(|i| (i as f64 * 0.1, sent(i))).collect();
        let points = thin_rates(&rates(&counted, 14_400.0), LINK_POINTS);
        assert!(points.len() <= LINK_POINTS, "{}", points.len());
        let count = |rate: f64| points.iter().filter(|p| (p.value - rate).abs() < 1e-3).count();
        assert_eq!((count(0.0), count(14_000.0)), (1, 1));
        assert_eq!(count(7000.0), points.len() - 2);
        assert!(points.is_sorted_by(|a, b| a.t_s < b.t_s));
        assert!(points.last().unwrap().t_s > 14_300.0);
    }

    #[test]
    fn a_counter_that_begins_anew_leaves_a_gap_and_no_negative_rate() {
        let points = thin_rates(&rates(&[(0.0, 0), (1.0, 500), (2.0, 100), (3.0, 400)], 9.0), 10);
        let seen: Vec<(f64, f64)> = points.iter().map(|point| (point.t_s, point.value)).collect();
        assert_eq!(seen, [(0.0, 500.0), (1.0, 500.0), (3.0, 300.0)]);
    }

    #[test]
    fn a_node_is_weighed_by_time_not_by_samples() {
        let curve = cores(vec![(1.0, 1.0), (1.1, 4.0), (2.0, 0.0)]).unwrap();
        assert!((curve.mean_cores - 0.7).abs() < 1e-9, "{}", curve.mean_cores);
        assert_eq!(curve.max_cores, 4.0);
        assert!(cores(vec![]).is_none());
    }

    /// The curves of a node that left these samples, so many milliseconds apart.
    fn of_node(samples: &[NodeSample], every_ms: f64) -> NodeCurve {
        let timed = samples.iter().enumerate().map(|(n, sample)| (n as f64 * every_ms, sample));
        let edge = RecoverySample::default();
        let mut trace = Trace::default();
        trace.recovery = vec![(0.0, &edge), ((samples.len() - 1) as f64 * every_ms, &edge)];
        trace.nodes = [(("leader", "leader-0"), timed.collect())].into();
        of_trace("a", 1, &trace, None).unwrap().nodes.remove(0)
    }

    #[test]
    fn disks_are_drawn_as_they_are_told_with_their_peaks_within_the_bound() {
        // 10 kB/s for most of the time, once 500 kB/s, and busy for two fifths of it.
        let sample = |n: u64| NodeSample {
            disk_read_bytes: Some(n * 1000 + if n > 2000 { 49_000 } else { 0 }),
            disk_busy_ms: Some(n * 40),
            ..NodeSample::default()
        };
        let node = of_node(&(0..4000).map(sample).collect::<Vec<_>>(), 100.0);
        assert!(node.disk_read.len() <= NODE_POINTS, "{}", node.disk_read.len());
        let peak = node.disk_read.iter().map(|point| point.value).fold(0.0, f64::max);
        assert!((peak - 500_000.0).abs() < 1.0, "{peak}");
        let busy = |point: &Point| (point.value - 0.4).abs() < 1e-6;
        assert!(!node.disk_busy.is_empty() && node.disk_busy.iter().all(busy));
        // What it does not tell is not drawn.
        assert_eq!((node.disk_written.len(), node.collecting.len()), (0, 0));
    }

    /// A JVM whose counters move once a second, and stand still from the 20th second on, asked four times a second.
    #[test]
    fn a_node_that_looks_at_its_disk_once_a_second_has_no_peaks_of_the_samples() {
        let sample = |n: u64| NodeSample {
            heap_used_bytes: Some(1),
            gc_ms: Some((n / 4).min(20) * 100),
            disk_written_bytes: Some((n / 4).min(20) * 1000),
            ..NodeSample::default()
        };
        let node = of_node(&(0..=120).map(sample).collect::<Vec<_>>(), 250.0);
        let values = |points: &[Point]| {
            let mut values: Vec<f64> = points.iter().map(|point| point.value).collect();
            values.dedup();
            values
        };
        assert_eq!(values(&node.disk_written), [1000.0, 0.0]);
        assert_eq!(values(&node.collecting), [0.1, 0.0]);
    }

    #[test]
    fn recovered_bytes_start_at_nothing_and_end_with_the_row() {
        let sample = |bytes| RecoverySample { recovered_bytes: bytes, ..Default::default() };
        let held: Vec<RecoverySample> = (1..=5000).map(|i| sample(i * 10)).collect();
        let samples: Vec<(f64, &RecoverySample)> =
            held.iter().enumerate().map(|(i, sample)| ((i + 1) as f64 * 100.0, sample)).collect();
        let points = recovered(&samples, 0.0, |t_ms| Some(t_ms / 1000.0), Some((500.05, 50_001)));
        assert!(points.len() <= POINTS, "{}", points.len());
        assert_eq!(points[0], Point { t_s: 0.0, value: 0.0 });
        assert_eq!(*points.last().unwrap(), Point { t_s: 500.05, value: 50_001.0 });
        assert!(points.windows(2).all(|pair| pair[0].value <= pair[1].value));
    }

    #[test]
    fn a_thinned_lag_keeps_its_peak() {
        let of = |n: u64| FollowSample {
            lag_operations: if n == 4321 { 99 } else { 1 },
            ..Default::default()
        };
        let samples: Vec<FollowSample> = (0..5000).map(of).collect();
        let samples: Vec<(f64, &FollowSample)> =
            samples.iter().enumerate().map(|(n, sample)| (n as f64, sample)).collect();
        let points = lag(&samples, |t_ms| Some(t_ms / 1e3));
        assert!(points.len() <= POINTS && points.iter().any(|point| point.value == 99.0));
    }

    #[test]
    fn the_end_of_each_wait_for_a_follower_is_kept_as_far_as_it_is_within_the_variant() {
        let of = |caught_up| FollowSample { caught_up, ..Default::default() };
        let (behind, level) = (of(false), of(true));
        let samples = [(0.0, &behind), (500.0, &level), (900.0, &behind), (2000.0, &level)];
        let within = |t_ms: f64| (t_ms < 1000.0).then_some(t_ms / 1e3);
        assert_eq!(caught_up(&samples, within), [0.5]);
    }
}
