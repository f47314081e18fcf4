//! The samples of one variant and lap, gathered from the lines of a run.

use std::collections::BTreeMap;

use record::{FollowSample, Line, LinkSample, NodeSample, RecoverySample, RunDir};

/// The phases in which a variant's time is taken.
const MEASURED: [&str; 4] = ["recover", "follow", "move", LOAD];
/// The phase of one operation of a load.
const LOAD: &str = "load";

/// Where a follower, which had lacked operations, was level with its leader for the first time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Met {
    /// Seconds since the variant began.
    pub seconds: f64,
    /// Operations that it had then.
    pub operations: u64,
}

/// Samples of one variant and lap, each with milliseconds since the run began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace<'a> {
    begins_ms: Option<f64>,
    ends_ms: Option<f64>,
    /// When each operation of a load ended, in the order in which they were sent.
    pub loads_end_ms: Vec<f64>,
    /// Progress.
    pub recovery: Vec<(f64, &'a RecoverySample)>,
    /// How far a follower was.
    pub following: Vec<(f64, &'a FollowSample)>,
    /// The link.
    pub link: Vec<(f64, &'a LinkSample)>,
    /// Nodes by cluster and name.
    pub nodes: BTreeMap<(&'a str, &'a str), Vec<(f64, &'a NodeSample)>>,
}

/// Traces by variant and lap.
pub(crate) type Traces<'a> = BTreeMap<(&'a str, u32), Trace<'a>>;

/// Gathers the lines of every variant. Lines outside of variants are left out.
pub(crate) fn traces(run: &RunDir) -> Traces<'_> {
    let mut traces = Traces::new();
    for line in &run.lines {
        match line {
            Line::Phase { t_ms, variant: Some(variant), lap, phase }
                if MEASURED.contains(&phase.name.as_str()) =>
            {
                let trace = traces.entry((variant.as_str(), *lap)).or_default();
                match phase.begins {
                    true => trace.begins_ms = trace.begins_ms.or(Some(*t_ms)),
                    false => trace.ends_ms = Some(*t_ms),
                }
                if phase.name == LOAD && !phase.begins {
                    trace.loads_end_ms.push(*t_ms);
                }
            }
            Line::Recovery { t_ms, variant, lap, sample } => {
                let trace = traces.entry((variant.as_str(), *lap)).or_default();
                push(&mut trace.recovery, *t_ms, sample);
            }
            Line::Following { t_ms, variant, lap, sample } => {
                let trace = traces.entry((variant.as_str(), *lap)).or_default();
                push(&mut trace.following, *t_ms, sample);
            }
            Line::Link { t_ms, variant: Some(variant), lap, sample } => {
                let trace = traces.entry((variant.as_str(), *lap)).or_default();
                push(&mut trace.link, *t_ms, sample);
            }
            Line::Node { t_ms, variant: Some(variant), lap, sample } => {
                let trace = traces.entry((variant.as_str(), *lap)).or_default();
                let node = (sample.cluster.as_str(), sample.node.as_str());
                push(trace.nodes.entry(node).or_default(), *t_ms, sample);
            }
            _ => {}
        }
    }
    traces
}

/// Appends a sample if it is later than the last one: a curve must not go back in time.
fn push<T>(samples: &mut Vec<(f64, T)>, t_ms: f64, sample: T) {
    if samples.last().is_none_or(|(last, _)| t_ms > *last) {
        samples.push((t_ms, sample));
    }
}

impl Trace<'_> {
    /// From when to when the variant was measured, in milliseconds since the run began: the phase,
    /// or where its edges are missing the first and last sample.
    pub fn span_ms(&self) -> Option<(f64, f64)> {
        let first = self.begins_ms.or_else(|| self.recovery.first().map(|(t, _)| *t))?;
        let last = self.ends_ms.or_else(|| self.recovery.last().map(|(t, _)| *t))?;
        (last > first).then_some((first, last))
    }

    /// Shards that took part: the most that one sample counted.
    pub fn shards(&self) -> Option<u32> {
        let count = |sample: &RecoverySample| sample.stages.values().sum::<u32>();
        self.recovery.iter().map(|(_, sample)| count(sample)).max().filter(|count| *count > 0)
    }

    /// Where the follower met its leader: where the plan's wait for that ended, or where it said that it lacked none.
    pub fn met(&self) -> Option<Met> {
        let behind = self.following.iter().position(|(_, sample)| sample.lag_operations > 0)?;
        let level = |sample: &FollowSample| {
            sample.answered && (sample.caught_up || sample.lag_operations == 0)
        };
        let (t_ms, sample) = self.following[behind..].iter().find(|(_, sample)| level(sample))?;
        let (begins_ms, _) = self.span_ms()?;
        Some(Met { seconds: (t_ms - begins_ms) / 1000.0, operations: sample.follower_operations })
    }

    /// Mean bytes in flight over the samples that had any.
    pub fn in_flight_bytes(&self) -> Option<f64> {
        let seen: Vec<u64> = self
            .recovery
            .iter()
            .filter_map(|(_, sample)| sample.in_flight_bytes)
            .filter(|bytes| *bytes > 0)
            .collect();
        mean(seen.iter().map(|bytes| *bytes as f64))
    }

    /// How long the most throttled node was throttled, in milliseconds: source and target each count their own
    /// pauses, and pause at the same time. None without samples of nodes.
    pub fn throttled_ms(&self) -> Option<f64> {
        let grown = |samples: &Vec<(f64, &NodeSample)>| {
            let first = samples.first()?.1.throttle_ms;
            Some(samples.last()?.1.throttle_ms.saturating_sub(first) as f64)
        };
        self.nodes.values().filter_map(grown).max_by(f64::total_cmp)
    }

    /// The node that sent and received most, and how much that is of all that nodes received. None where most of what
    /// was copied came from elsewhere, as out of a repository.
    pub fn busiest_limiter(&self, copied_bytes: u64) -> Option<(&str, f64)> {
        // A node that restarts counts from zero.
        let grown = |samples: &Vec<(f64, &NodeSample)>, of: fn(&NodeSample) -> u64| -> u64 {
            samples.windows(2).map(|pair| of(pair[1].1).saturating_sub(of(pair[0].1))).sum()
        };
        let received: u64 =
            self.nodes.values().map(|samples| grown(samples, |node| node.transport_rx_bytes)).sum();
        let passed = |samples: &Vec<(f64, &NodeSample)>| {
            grown(samples, |node| node.transport_rx_bytes + node.transport_tx_bytes)
        };
        let all = self.nodes.iter().map(|((_, node), samples)| (*node, passed(samples)));
        let (node, most) = all.max_by_key(|(_, bytes)| *bytes)?;
        (received > copied_bytes / 2).then(|| (node, (most as f64 / received as f64).min(1.0)))
    }

    /// The node with the highest mean use of cores, and that mean.
    pub fn busiest(&self) -> Option<(&str, f64)> {
        self.nodes
            .iter()
            .filter_map(|((_, node), samples)| {
                let cores = mean(samples.iter().map(|(_, sample)| sample.cpu_cores))?;
                Some((*node, cores))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_meets_its_leader_once_it_was_behind_and_is_level() {
        let of = |follower_operations: u64, lag_operations: u64, answered: bool| FollowSample {
            leader_operations: follower_operations + lag_operations,
            follower_operations,
            lag_operations,
            answered,
            ..Default::default()
        };
        let met = |samples: &[FollowSample]| {
            let following = samples.iter().enumerate().map(|(n, sample)| (n as f64 * 1e3, sample));
            let trace = Trace {
                begins_ms: Some(-500.0),
                ends_ms: Some(9000.0),
                following: following.collect(),
                ..Trace::default()
            };
            trace.met()
        };
        let samples = [
            of(0, 0, true),
            of(0, 900, true),
            of(700, 300, true),
            of(700, 0, false),
            of(1100, 0, true),
            of(1200, 0, true),
        ];
        assert_eq!(met(&samples), Some(Met { seconds: 4.5, operations: 1100 }));
        assert_eq!(met(&samples[..4]), None, "one that does not answer is not level");
        // Level is what the plan waited for, too.
        let enough = FollowSample { caught_up: true, ..of(700, 300, true) };
        let waited = [of(0, 900, true), enough, of(1100, 0, true)];
        assert_eq!(met(&waited), Some(Met { seconds: 1.5, operations: 700 }));
    }

    #[test]
    fn the_busiest_limiter_is_that_of_the_node_which_takes_part_in_most() {
        let sample = |transport_rx_bytes: u64, transport_tx_bytes: u64| NodeSample {
            transport_rx_bytes,
            transport_tx_bytes,
            ..NodeSample::default()
        };
        let begins = sample(7, 7);
        let [a, b, d] = [sample(207, 107), sample(107, 7), sample(7, 207)];
        let of = |node, end| (("c", node), vec![(0.0, &begins), (1.0, end)]);
        let nodes = BTreeMap::from([of("a", &a), of("b", &b), of("d", &d)]);
        let trace = Trace { nodes, ..Trace::default() };
        assert_eq!(trace.busiest_limiter(300), Some(("a", 1.0)), "it receives two, and sends one");
        assert_eq!(trace.busiest_limiter(3000), None, "a repository sent the rest");
    }
}
