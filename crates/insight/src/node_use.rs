//! What one node used while a variant was measured, as the documents' tables say it.

use std::collections::BTreeMap;

use record::{NodeSample, RunDir};

use crate::trace::{Trace, traces};

/// What was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// Cores.
    Cores,
    /// Bytes a second that it sent by transport.
    Sent,
    /// Bytes a second that it received by transport.
    Received,
}

/// In which part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The ten seconds with the most of it, or all of a shorter lap: Metricbeat, of which the documents have their
    /// figures, has a point for each ten by default.
    Peak,
    /// From when one shard alone is left to the end, in the mean.
    LastShard,
}

const PEAK_MS: f64 = 10_000.0;

/// What a node used of a variant's first lap; none where samples do not say it.
pub fn node_use(run: &RunDir, variant: &str, node: &str, used: Used, when: When) -> Option<f64> {
    of_trace(traces(run).get(&(variant, 1))?, node, used, when)
}

fn of_trace(trace: &Trace<'_>, node: &str, used: Used, when: When) -> Option<f64> {
    let (begins_ms, ends_ms) = trace.span_ms()?;
    let samples = trace.nodes.iter().find(|((_, name), _)| *name == node).map(|(_, all)| all)?;
    // What it had used by the time of each sample.
    let mut cores_ms = 0.0;
    let mut before_ms = None;
    let so_far = |(t_ms, sample): &(f64, &NodeSample)| {
        let since = before_ms.replace(*t_ms).map_or(0.0, |before| t_ms - before);
        cores_ms += sample.cpu_cores.max(0.0) * since;
        let amount = match used {
            Used::Cores => cores_ms / 1000.0,
            Used::Sent => sample.transport_tx_bytes as f64,
            Used::Received => sample.transport_rx_bytes as f64,
        };
        (*t_ms, amount)
    };
    let totals = samples.iter().map(so_far);
    let totals: Vec<(f64, f64)> =
        totals.filter(|(t_ms, _)| (begins_ms..=ends_ms).contains(t_ms)).collect();
    match when {
        When::LastShard => {
            let from_ms = last_shard_ms(trace)?;
            let first = totals.iter().find(|(t_ms, _)| *t_ms >= from_ms)?;
            rate(*first, *totals.last()?)
        }
        When::Peak => {
            let over = |(at, begin): (usize, &(f64, f64))| {
                let end = totals[at..].iter().find(|(t_ms, _)| *t_ms >= begin.0 + PEAK_MS)?;
                rate(*begin, *end)
            };
            let most = totals.iter().enumerate().filter_map(over).reduce(f64::max);
            most.or_else(|| rate(*totals.first()?, *totals.last()?))
        }
    }
}

/// A second's share of what came between.
fn rate((from_ms, before): (f64, f64), (to_ms, after): (f64, f64)) -> Option<f64> {
    (to_ms > from_ms).then(|| (after - before) / (to_ms - from_ms) * 1000.0)
}

/// When all shards but one were done.
fn last_shard_ms(trace: &Trace<'_>) -> Option<f64> {
    let others = trace.shards()?.checked_sub(1)?;
    let done = |stages: &BTreeMap<String, u32>| stages.get("DONE").copied();
    let found = trace.recovery.iter().find(|(_, s)| done(&s.stages).unwrap_or(0) >= others)?;
    Some(found.0)
}

#[cfg(test)]
mod tests {
    use record::RecoverySample;

    use super::*;
    use crate::trace::timed;

    #[test]
    fn a_peak_is_over_ten_seconds_and_the_last_shard_begins_when_the_others_are_done() {
        let recovery = |done: u32| RecoverySample {
            stages: [("DONE".to_owned(), done), ("INDEX".to_owned(), 3 - done)].into(),
            ..RecoverySample::default()
        };
        // 100 a second; in the tenth to the fourteenth second five times as much, on two cores in place of one.
        let busy = |second: u64| (10..15).contains(&second);
        let sent = |until: u64| (0..until).map(|second| if busy(second) { 500 } else { 100 }).sum();
        let node = |second: u64| NodeSample {
            cpu_cores: if second > 0 && busy(second - 1) { 2.0 } else { 1.0 },
            transport_tx_bytes: sent(second),
            transport_rx_bytes: 7 * second,
            ..NodeSample::default()
        };
        let recoveries: Vec<RecoverySample> =
            (0..=40).map(|second| recovery(if second < 20 { 1 } else { 2 })).collect();
        let nodes: Vec<NodeSample> = (0..=40).map(node).collect();
        let mut trace = Trace::default();
        trace.recovery = timed(&recoveries, 1e3);
        trace.nodes = [(("leader", "leader-0"), timed(&nodes, 1e3))].into();
        let used = |used, when| of_trace(&trace, "leader-0", used, when);
        assert_eq!(used(Used::Sent, When::Peak), Some(300.0));
        assert_eq!(used(Used::Sent, When::LastShard), Some(100.0));
        assert_eq!(used(Used::Received, When::Peak), Some(7.0));
        assert_eq!(used(Used::Cores, When::Peak), Some(1.5));
        assert_eq!(used(Used::Cores, When::LastShard), Some(1.0));
        assert_eq!(of_trace(&trace, "leader-1", Used::Cores, When::Peak), None);
        // Of eight seconds there are no ten.
        trace.recovery.retain(|(t_ms, _)| (5000.0..=13_000.0).contains(t_ms));
        assert_eq!(of_trace(&trace, "leader-0", Used::Sent, When::Peak), Some(250.0));
    }
}
