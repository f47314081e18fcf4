//! What charts draw: values over the time since a variant began, thinned to what can be seen.

mod away;

use std::collections::{BTreeMap, BTreeSet};

use record::{FollowSample, LoadFigures, NodeSample, RecoverySample, Row, RunDir};

use crate::shades::{Shade, shades};
use crate::summary::Summary;
use crate::trace::{Trace, traces};
use crate::variant::{Progress, Variant};

use away::Away;

/// Most points of a curve that has a chart of its own.
pub const POINTS: usize = 400;
/// Most points of a curve of the link's rate.
pub const LINK_POINTS: usize = 300;
/// Most points of a node's curve.
pub const NODE_POINTS: usize = 150;

/// Nodes of the field look at their disks and collectors once a second at most. A count that stands still for less than
/// this may be the one of the look before, and all that came since would seem to come at once.
const OLD_COUNT_S: f64 = 2.0;

/// Nodes count what they use of cores in milliseconds: in a shorter time than this the count tells nothing.
const CORES_TOLD_S: f64 = 0.01;

/// Samples over which a rate of indexing is taken.
const INDEXED_SAMPLES: usize = 4;

/// Writers who wrote nothing for so many times longer than before or after it stood still. Less is the time between two
/// of their requests.
const STOOD_STILL: f64 = 3.0;

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds since the variant began.
    pub t_s: f64,
    /// The value; its unit is the curve's.
    pub value: f64,
}

/// The curves of one variant: of the lap nearest the median, or of the last one that began.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Mean latency of the requests that indexed them, in ms; empty in records that do not say.
    pub index_latency: Vec<Point>,
    /// Operations that a follower lacked; empty where nobody follows.
    pub lag: Vec<Point>,
    /// When a follower had caught up that was waited for, in seconds since the variant began.
    pub caught_up_s: Vec<f64>,
    /// Operations that were done on the leader; empty where nobody follows.
    pub leader_operations: Vec<Point>,
    /// Operations that the follower had; empty where nobody follows.
    pub follower_operations: Vec<Point>,
    /// Where the two meet: when the follower, which had lacked operations, was first level with its leader, and how
    /// many operations it had then.
    pub met: Option<Point>,
    /// The operations of a load, window by window.
    pub loads: Vec<LoadCurves>,
    /// Bytes a second that left the link towards the follower; empty without a link.
    pub link: Vec<Point>,
    /// What each node used.
    pub nodes: Vec<NodeCurve>,
    /// Cores that the nodes of each cluster used together, by the cluster's name.
    pub cores: Vec<(String, Vec<Point>)>,
    /// When something was wrong, or set otherwise.
    pub shades: Vec<Shade>,
}

/// An operation of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadCurves {
    /// Its name.
    pub operation: String,
    /// Answers a second.
    pub per_s: Vec<Point>,
    /// Their mean latency in ms; of windows without an answer there is none.
    pub latency: Vec<Point>,
}

/// What one node used. Where it was away a value that is no number parts its curves.
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
        let own = traces.keys().filter(|(name, _)| *name == variant.name);
        let lap = match &variant.progress {
            Progress::Finished(figures) => figures.shown_lap,
            _ => own.map(|(_, lap)| *lap).max()?,
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
        curves.loads = loads(row, trace, begins_ms);
        curves.shades = shades(&run.lines, &variant.name, begins_ms, curves.seconds);
        Some(curves)
    };
    summary.variants.iter().filter_map(one).collect()
}

/// `end` is the time and the bytes of the finished row.
fn of_trace(name: &str, lap: u32, trace: &Trace<'_>, end: Option<(f64, u64)>) -> Option<Curves> {
    let (begins_ms, ends_ms) = trace.span_ms()?;
    let seconds = end.map_or((ends_ms - begins_ms) / 1000.0, |(seconds, _)| seconds);
    let since = |t_ms: f64| (t_ms - begins_ms) / 1000.0;
    let within = |t_ms: f64| Some(since(t_ms)).filter(|t_s| *t_s > 0.0 && *t_s <= seconds);
    let counted = |samples: &[(f64, &NodeSample)], of: fn(&NodeSample) -> Option<u64>| {
        let count = |(t_ms, sample): &(f64, &NodeSample)| Some((since(*t_ms), of(sample)?));
        samples.iter().filter_map(count).collect::<Vec<(f64, u64)>>()
    };
    let mut all_ms: Vec<f64> = trace.nodes.values().flatten().map(|(t_ms, _)| *t_ms).collect();
    all_ms.sort_by(f64::total_cmp);
    let others = trace.nodes.len().saturating_sub(1);
    let told = |samples: &[(f64, &NodeSample)]| {
        let used = samples.iter().map(|(t_ms, sample)| (since(*t_ms), sample.cpu_cores));
        used.filter(|(t_s, cores)| *t_s <= seconds && cores.is_finite()).collect::<Vec<_>>()
    };
    let is_known = |node: &NodeCurve| {
        [&node.cores, &node.heap, &node.received].iter().any(|points| !points.is_empty())
    };
    let nodes = trace
        .nodes
        .iter()
        .map(|((cluster, node), samples)| {
            let away = Away::of(samples, &all_ms, others, begins_ms);
            let drawn = |counted: &[(f64, u64)]| {
                let spans = while_there(rates(counted, seconds), &away);
                parted(thin_rates(&spans, NODE_POINTS), &away)
            };
            let looked_at = |of: fn(&NodeSample) -> Option<u64>, unit: f64| {
                let mut counted = counted(samples, of);
                if samples.iter().any(|(_, sample)| sample.heap_used_bytes.is_some()) {
                    counted.dedup_by(|now, last| now.1 == last.1 && now.0 - last.0 < OLD_COUNT_S);
                }
                let points = drawn(&counted).into_iter();
                let in_unit = |point: Point| Point { value: point.value / unit, ..point };
                points.map(in_unit).collect::<Vec<Point>>()
            };
            let heap = samples.iter().filter_map(|(t_ms, sample)| {
                Some(Point { t_s: within(*t_ms)?, value: sample.heap_used_bytes? as f64 })
            });
            NodeCurve {
                cluster: (*cluster).to_owned(),
                node: (*node).to_owned(),
                heap: parted(thin(heap.collect(), NODE_POINTS), &away),
                collecting: looked_at(|sample| sample.gc_ms, 1000.0),
                disk_read: looked_at(|sample| sample.disk_read_bytes, 1.0),
                disk_written: looked_at(|sample| sample.disk_written_bytes, 1.0),
                disk_busy: looked_at(|sample| sample.disk_busy_ms, 1000.0),
                received: drawn(&counted(samples, |sample| Some(sample.transport_rx_bytes))),
                sent: drawn(&counted(samples, |sample| Some(sample.transport_tx_bytes))),
                ..cores(&told(samples), &away).unwrap_or_default()
            }
        })
        .filter(is_known)
        .collect();
    let link = trace.link.iter().map(|(t_ms, sample)| (since(*t_ms), sample.to_follower_bytes));
    Some(Curves {
        variant: name.to_owned(),
        lap,
        seconds,
        recovered: match trace.following.is_empty() {
            true => recovered(&trace.recovery, begins_ms, within, end),
            false => recovered_to_follow(&trace.following, within),
        },
        indexed: indexed(trace, begins_ms, seconds),
        index_latency: index_latency(trace, within),
        lag: followed(&trace.following, within, |s| Some(s.lag_operations)),
        caught_up_s: caught_up(&trace.following, within),
        leader_operations: followed(&trace.following, within, |s| Some(s.leader_operations)),
        follower_operations: followed(&trace.following, within, |s| Some(s.follower_operations)),
        met: trace.met().map(|met| Point { t_s: met.seconds, value: met.operations as f64 }),
        loads: Vec::new(),
        link: thin_rates(&rates(&link.collect::<Vec<_>>(), seconds), LINK_POINTS),
        nodes,
        cores: cores_together(trace, told),
        shades: Vec::new(),
    })
}

/// Documents a second that were acknowledged: beside a recovery, or to be followed. Each value is over several samples,
/// as between two of them there may be only few bulk requests, or none.
fn indexed(trace: &Trace<'_>, begins_ms: f64, seconds: f64) -> Vec<Point> {
    let since = |t_ms: f64| (t_ms - begins_ms) / 1000.0;
    let beside = trace.recovery.iter().filter_map(|(t, s)| Some((since(*t), s.indexed_documents?)));
    let followed = trace.following.iter().map(|(t, s)| (since(*t), s.leader_operations));
    let counted: Vec<(f64, u64)> = beside.chain(followed).collect();
    if counted.last().is_none_or(|(_, all)| *all == counted[0].1) {
        return Vec::new();
    }
    let counted = steady(&counted);
    let over: Vec<Span> = counted
        .windows(INDEXED_SAMPLES + 1)
        .filter_map(|samples| rates(&[samples[0], samples[INDEXED_SAMPLES]], seconds).pop())
        .collect();
    thin_rates(&over, POINTS)
}

/// Mean latency of the requests to index that were answered between two samples.
fn index_latency(trace: &Trace<'_>, within: impl Fn(f64) -> Option<f64>) -> Vec<Point> {
    let beside = trace.recovery.iter().map(|(t, s)| (*t, s.indexing_requests, s.indexing_ms));
    let followed = trace.following.iter().map(|(t, s)| (*t, s.indexing_requests, s.indexing_ms));
    let counted: Vec<(f64, u64, f64)> = (beside.chain(followed))
        .filter_map(|(t_ms, requests, ms)| Some((t_ms, requests?, ms?)))
        .collect();
    let mean = |pair: &[(f64, u64, f64)]| {
        let requests = pair[1].1.checked_sub(pair[0].1).filter(|requests| *requests > 0)?;
        Some(Point { t_s: within(pair[1].0)?, value: (pair[1].2 - pair[0].2) / requests as f64 })
    };
    thin(counted.windows(2).filter_map(mean).collect(), POINTS)
}

/// A counter as if what came between two samples at which it changed had come evenly. Its samples may be much finer
/// than the requests that it counts, and a rate between two of them would be nothing or many times what is written.
/// Where it stood still, it stands still here, too. The end is left out if the next request may have been under way.
fn steady(counted: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let first = counted.iter().take(1);
    let changed = counted.windows(2).filter(|pair| pair[1].1 != pair[0].1).map(|pair| &pair[1]);
    let changes: Vec<(f64, u64)> = first.chain(changed).copied().collect();
    let gap = |at: usize| Some(changes.get(at + 1)?.0 - changes.get(at)?.0);
    let mut knots: Vec<(f64, u64)> = changes.iter().take(1).copied().collect();
    for at in 0..changes.len().saturating_sub(1) {
        let ((t_s, count), (next_s, next)) = (changes[at], changes[at + 1]);
        let beside = [at.checked_sub(1).and_then(gap), gap(at + 1)];
        let usual_s = beside.into_iter().flatten().max_by(f64::total_cmp);
        if let Some(usual_s) = usual_s.filter(|usual_s| next_s - t_s > usual_s * STOOD_STILL) {
            knots.push((next_s - usual_s, count));
        }
        knots.push((next_s, next));
    }
    let (Some(&last), Some(&end)) = (knots.last(), counted.last()) else { return Vec::new() };
    let usual_s = changes.len().checked_sub(2).and_then(gap).unwrap_or(0.0);
    if end.0 - last.0 > usual_s {
        knots.push(end);
    }
    let ends_s = knots[knots.len() - 1].0;
    let mut from = 0;
    let even = |&(t_s, _): &(f64, u64)| {
        while knots.get(from + 1).is_some_and(|knot| knot.0 < t_s) {
            from += 1;
        }
        let (a, b) = (knots[from], *knots.get(from + 1).unwrap_or(&knots[from]));
        let part = if b.0 > a.0 { ((t_s - a.0) / (b.0 - a.0)).clamp(0.0, 1.0) } else { 1.0 };
        (t_s, (a.1 as f64 + part * (b.1 as f64 - a.1 as f64)).round() as u64)
    };
    counted.iter().take_while(|(t_s, _)| *t_s <= ends_s).map(even).collect()
}

/// A load's operations, window by window. The last window ends with the operation's phase, give or take what was less
/// than a window.
fn loads(row: Option<&Row>, trace: &Trace<'_>, begins_ms: f64) -> Vec<LoadCurves> {
    let loads = row.map_or(&[][..], |row| &row.loads);
    let one = |(load, ends_ms): (&LoadFigures, &f64)| {
        let began_s = (ends_ms - begins_ms) / 1000.0 - load.seconds;
        let throughput = &load.throughput;
        let point = |(at, value): (usize, Option<f64>)| {
            let t_s = began_s + (at + 1) as f64 * throughput.window_s;
            Some(Point { t_s: t_s.max(0.0), value: value? })
        };
        let per_s = throughput.windows.iter().map(|count| *count as f64 / throughput.window_s);
        let per_s = per_s.map(|value| Some(value).filter(|value| value.is_finite()));
        let latency = throughput.latency_ms.iter().copied();
        LoadCurves {
            operation: load.operation.clone(),
            per_s: thin(per_s.enumerate().filter_map(point).collect(), POINTS),
            latency: thin(latency.enumerate().filter_map(point).collect(), POINTS),
        }
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

/// Operations over time: of the leader, of the follower, or that the follower lacked.
fn followed(
    samples: &[(f64, &FollowSample)],
    within: impl Fn(f64) -> Option<f64>,
    of: fn(&FollowSample) -> Option<u64>,
) -> Vec<Point> {
    let point = |(t_ms, sample): &(f64, &FollowSample)| {
        Some(Point { t_s: within(*t_ms)?, value: of(sample)? as f64 })
    };
    thin(samples.iter().filter_map(point).collect(), POINTS)
}

/// Bytes of files that a follower copied before it followed; empty in records that do not say.
fn recovered_to_follow(
    samples: &[(f64, &FollowSample)],
    within: impl Fn(f64) -> Option<f64>,
) -> Vec<Point> {
    let points = followed(samples, within, |sample| sample.recovered_bytes);
    // Indices that were empty when they were followed bring no files.
    if points.iter().any(|point| point.value > 0.0) { points } else { Vec::new() }
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
    let values: Vec<Point> = samples
        .iter()
        .filter_map(|(t_ms, sample)| {
            let value = sample.recovered_bytes.saturating_sub(there) as f64;
            Some(Point { t_s: within(*t_ms)?, value })
        })
        .collect();
    let Some(&last) = values.last() else { return Vec::new() };
    let mut points = vec![Point { t_s: 0.0, value: 0.0 }];
    // What begins anew falls back to nothing: where it had come to is a peak.
    points.extend(thin(values, POINTS - 2));
    if let Some((seconds, bytes)) = end.filter(|(seconds, _)| *seconds > last.t_s) {
        points.push(Point { t_s: seconds, value: last.value.max(bytes as f64) });
    }
    points
}

/// A span of time and what it carried.
struct Span {
    ends_s: f64,
    lasts_s: f64,
    amount: f64,
}

impl Span {
    /// How much it carried a second, where it ends.
    fn rate(&self) -> Point {
        Point { t_s: self.ends_s, value: self.amount / self.lasts_s }
    }
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
    let mut points: Vec<Point> =
        spans.chunks(group).flat_map(|chunk| extremes(chunk.iter().map(Span::rate))).collect();
    if let Some(first) = spans.first() {
        let begins_s = (first.ends_s - first.lasts_s).max(0.0);
        points.insert(0, Point { t_s: begins_s, ..first.rate() });
    }
    points
}

/// Spans but those across a time in which the node was away: what it used before it went is not what it used meanwhile.
fn while_there(mut spans: Vec<Span>, away: &Away) -> Vec<Span> {
    spans.retain(|span| !away.is_between(span.ends_s - span.lasts_s, span.ends_s));
    spans
}

/// Parts a curve where it would go on across such a time.
fn parted(mut points: Vec<Point>, away: &Away) -> Vec<Point> {
    for t_s in away.middles_s() {
        let at = points.partition_point(|point| point.t_s < t_s);
        if (1..points.len()).contains(&at) {
            points.insert(at, Point { t_s, value: f64::NAN });
        }
    }
    points
}

/// The cores that the nodes of each cluster used together.
fn cores_together(
    trace: &Trace<'_>,
    told: impl Fn(&[(f64, &NodeSample)]) -> Vec<(f64, f64)>,
) -> Vec<(String, Vec<Point>)> {
    let mut clusters: BTreeMap<&str, Vec<(&str, Point)>> = BTreeMap::new();
    for ((cluster, node), samples) in &trace.nodes {
        let spans = cores_used(&told(samples));
        let point = |span: &Span| (*node, span.rate());
        clusters.entry(*cluster).or_default().extend(spans.iter().map(point));
    }
    let together = |(cluster, mut samples): (&str, Vec<(&str, Point)>)| {
        samples.sort_by(|(_, a), (_, b)| a.t_s.total_cmp(&b.t_s));
        (cluster.to_owned(), thin(rounds(&samples), POINTS))
    };
    clusters.into_iter().map(together).collect()
}

/// Sums of samples, in the order of time. Nodes are asked one after another: a round of them ends before the node that
/// is in it already. A node that is down is in none.
fn rounds(samples: &[(&str, Point)]) -> Vec<Point> {
    let mut sums: Vec<Point> = Vec::new();
    let mut asked = BTreeSet::new();
    for (node, point) in samples {
        let begins = !asked.insert(*node);
        if begins {
            asked = BTreeSet::from([*node]);
        }
        match sums.last_mut().filter(|_| !begins) {
            Some(sum) => *sum = Point { t_s: point.t_s, value: sum.value + point.value },
            None => sums.push(*point),
        }
    }
    sums
}

/// The cores that a node used by its samples, each since the one before. A first one of 0 has none before it, and tells
/// nothing.
fn cores_used(samples: &[(f64, f64)]) -> Vec<Span> {
    let mut spans = Vec::new();
    let Some(&(first_s, first)) = samples.first() else { return spans };
    let mut before_s = if first == 0.0 { first_s.max(0.0) } else { 0.0 };
    let (mut from_s, mut amount) = (before_s, 0.0);
    for &(t_s, cores) in samples {
        amount += cores * (t_s - before_s).max(0.0);
        before_s = before_s.max(t_s);
        if t_s - from_s >= CORES_TOLD_S {
            spans.push(Span { ends_s: t_s, lasts_s: t_s - from_s, amount });
            (from_s, amount) = (t_s, 0.0);
        }
    }
    spans
}

/// The cores that a node used; none where nothing is known.
fn cores(samples: &[(f64, f64)], away: &Away) -> Option<NodeCurve> {
    let spans = cores_used(samples);
    let (first, last) = (spans.first()?, spans.last()?);
    let lasted_s = last.ends_s - (first.ends_s - first.lasts_s);
    let spans = while_there(spans, away);
    Some(NodeCurve {
        mean_cores: spans.iter().map(|span| span.amount).sum::<f64>() / lasted_s,
        cores: parted(thin_rates(&spans, NODE_POINTS), away),
        ..NodeCurve::default()
    })
}

#[cfg(test)]
mod tests;
