//! The samples of one variant and lap, gathered from the lines of a run.

use std::collections::BTreeMap;

use record::stage::{DELAYED, DONE, UNASSIGNED, WAITING};
use record::{FollowSample, Line, LinkSample, NodeSample, RecoverySample, RunDir};

/// The phases in which a variant's time is taken.
const MEASURED: [&str; 4] = ["recover", "follow", "move", LOAD];
/// The phase of one operation of a load.
const LOAD: &str = "load";

/// The phases that make ready what is measured next.
const READY: [&str; 4] = ["index", "fill", "snapshot", "place"];

/// Fewer samples than this show no rate.
const SAMPLES_MIN: usize = 3;

/// Files while they were copied: from the first sample with bytes to the first with all that came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Files {
    /// Seconds of that time.
    pub seconds: f64,
    /// Bytes that came in it, as files have them.
    pub bytes: u64,
    /// Bytes a second that the link carried meanwhile, which are fewer where it compresses; none without its samples.
    pub carried_bytes_per_s: Option<f64>,
}

impl Files {
    /// Bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

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

/// What was noted while a run went on, on the clock that charts have.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted<'a> {
    /// Its variant; where it names none, the one that was under way.
    pub variant: Option<&'a str>,
    /// The lap of it, from 1.
    pub lap: u32,
    /// Seconds since that lap began to be measured; none before it did.
    pub after_s: Option<f64>,
    /// The sentence.
    pub text: &'a str,
}

/// The notes of a run in their order.
pub fn notes(run: &RunDir) -> Vec<Noted<'_>> {
    let mut begun: BTreeMap<Option<&str>, (u32, f64)> = BTreeMap::new();
    let (mut running, mut noted) = (None, Vec::new());
    for line in &run.lines {
        match line {
            Line::Phase { t_ms, variant, lap, phase } if phase.begins => {
                running = variant.as_deref();
                let is_begun = begun.get(&running).is_some_and(|(of, _)| of == lap);
                if READY.contains(&phase.name.as_str()) {
                    begun.remove(&running);
                } else if MEASURED.contains(&phase.name.as_str()) && !is_begun {
                    begun.insert(running, (*lap, *t_ms));
                }
            }
            Line::Note { t_ms, variant, text } => {
                let variant = variant.as_deref().or(running);
                let clock = begun.get(&variant);
                noted.push(Noted {
                    variant,
                    lap: clock.map_or(1, |(lap, _)| *lap),
                    after_s: clock.map(|(_, begins_ms)| ((t_ms - begins_ms) / 1000.0).max(0.0)),
                    text,
                });
            }
            _ => {}
        }
    }
    noted
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
        let followed = self.following.last().map(|(t, _)| *t);
        let last = self.ends_ms.or_else(|| self.recovery.last().map(|(t, _)| *t)).or(followed)?;
        (last > first).then_some((first, last))
    }

    /// The share of the time in which copies were being made: what goes on between two samples is what the earlier one
    /// shows.
    pub fn copying_share(&self) -> Option<f64> {
        let (begins_ms, ends_ms) = self.span_ms()?;
        let ends = self.recovery.iter().skip(1).map(|(t_ms, _)| *t_ms).chain([ends_ms]);
        let copying = self.recovery.iter().zip(ends).filter(|((_, sample), _)| active(sample) > 0);
        let within = |t_ms: f64| t_ms.clamp(begins_ms, ends_ms);
        let lasts = copying.map(|((from_ms, _), to_ms)| within(to_ms) - within(*from_ms));
        Some(lasts.sum::<f64>() / (ends_ms - begins_ms))
    }

    /// Shards that took part: the most that one sample counted.
    pub fn shards(&self) -> Option<u32> {
        let count = |sample: &RecoverySample| sample.stages.values().sum::<u32>();
        self.recovery.iter().map(|(_, sample)| count(sample)).max().filter(|count| *count > 0)
    }

    /// Where the follower met its leader: where the plan's wait for that ended, or where it said that it lacked none.
    pub fn met(&self) -> Option<Met> {
        let (t_ms, sample) = self.following[self.level()?];
        let (begins_ms, _) = self.span_ms()?;
        Some(Met { seconds: (t_ms - begins_ms) / 1000.0, operations: sample.follower_operations })
    }

    /// The first sample at which the follower, which had lacked operations, was level with its leader.
    fn level(&self) -> Option<usize> {
        let behind = self.following.iter().position(|(_, sample)| sample.lag_operations > 0)?;
        let level = |sample: &FollowSample| {
            sample.answered && (sample.caught_up || sample.lag_operations == 0)
        };
        let after = self.following[behind..].iter().position(|(_, sample)| level(sample))?;
        Some(behind + after)
    }

    /// The files while they were copied; none where there are too few samples for a rate.
    pub fn files(&self) -> Option<Files> {
        let copied = self.copied();
        let first = copied.iter().position(|(_, bytes)| *bytes > 0)?;
        // How much there is to copy is known once the last shard has listed its files: before, all that is listed may
        // be there already.
        let all = copied.iter().map(|(_, bytes)| *bytes).max()?;
        let last = copied.iter().position(|(_, bytes)| *bytes == all)?;
        if last < first + SAMPLES_MIN - 1 {
            return None;
        }
        let ((from_ms, from), (to_ms, to)) = (copied[first], copied[last]);
        Some(Files {
            seconds: (to_ms - from_ms) / 1e3,
            bytes: to.saturating_sub(from),
            carried_bytes_per_s: self.carried_bytes_per_s(from_ms, to_ms),
        })
    }

    /// Bytes of files that were there at each sample.
    fn copied(&self) -> Vec<(f64, u64)> {
        if self.following.is_empty() {
            let copied = |(t_ms, sample): &(f64, &RecoverySample)| (*t_ms, sample.recovered_bytes);
            return self.recovery.iter().map(copied).collect();
        }
        // A follower is level only once it follows.
        let until = self.level().map_or(self.following.len(), |level| level + 1);
        let samples = self.following[..until].iter();
        samples.filter_map(|(t_ms, sample)| Some((*t_ms, sample.recovered_bytes?))).collect()
    }

    fn carried_bytes_per_s(&self, from_ms: f64, to_ms: f64) -> Option<f64> {
        let at = |ms: f64| self.link.iter().find(|(t_ms, _)| *t_ms >= ms);
        let (from_ms, from) = at(from_ms)?;
        let (to_ms, to) = at(to_ms).or(self.link.last())?;
        let bytes = to.to_follower_bytes.saturating_sub(from.to_follower_bytes);
        (to_ms > from_ms).then(|| bytes as f64 * 1e3 / (to_ms - from_ms))
    }

    /// Mean bytes in flight over the samples that had any.
    pub fn in_flight_bytes(&self) -> Option<f64> {
        let seen = self.recovery.iter().filter_map(|(_, sample)| sample.in_flight_bytes);
        mean(seen.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64))
    }

    /// How long the most throttled node was throttled, in milliseconds: source and target each count their own
    /// pauses, and pause at the same time. None without samples of nodes.
    pub fn throttled_ms(&self) -> Option<f64> {
        let all = self.nodes.values().map(|samples| grown(samples, |node| node.throttle_ms));
        all.max().map(|ms| ms as f64)
    }

    /// The node that sent and received most, and how much that is of all that nodes received. None where most of what
    /// was copied came from elsewhere, as out of a repository.
    pub fn busiest_limiter(&self, copied_bytes: u64) -> Option<(&str, f64)> {
        let received: u64 =
            self.nodes.values().map(|samples| grown(samples, |node| node.transport_rx_bytes)).sum();
        let passed = |samples: &Vec<(f64, &NodeSample)>| {
            grown(samples, |node| node.transport_rx_bytes + node.transport_tx_bytes)
        };
        let all = self.nodes.iter().map(|((_, node), samples)| (*node, passed(samples)));
        let (node, most) = all.max_by_key(|(_, bytes)| *bytes)?;
        (received > copied_bytes / 2).then(|| (node, (most as f64 / received as f64).min(1.0)))
    }

    /// The node with the highest mean use of cores, and that mean. What a sample says is of the time since the one
    /// before, so that the first says nothing.
    pub fn busiest(&self) -> Option<(&str, f64)> {
        let mean = |samples: &Vec<(f64, &NodeSample)>| {
            let (from_ms, to_ms) = (samples.first()?.0, samples.last()?.0);
            let used = samples.windows(2).map(|pair| pair[1].1.cpu_cores * (pair[1].0 - pair[0].0));
            (to_ms > from_ms).then(|| used.sum::<f64>() / (to_ms - from_ms))
        };
        let all =
            self.nodes.iter().filter_map(|((_, node), samples)| Some((*node, mean(samples)?)));
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Recoveries that go on.
pub(crate) fn active(sample: &RecoverySample) -> u32 {
    let none = [UNASSIGNED, DELAYED, WAITING, DONE];
    let stages = sample.stages.iter().filter(|(stage, _)| !none.contains(&stage.as_str()));
    stages.map(|(_, count)| count).sum()
}

/// By how much a counter of a node grew. A node that restarts counts from zero.
fn grown(samples: &[(f64, &NodeSample)], of: fn(&NodeSample) -> u64) -> u64 {
    samples.windows(2).map(|pair| of(pair[1].1).saturating_sub(of(pair[0].1))).sum()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Samples so many milliseconds apart.
#[cfg(test)]
pub(crate) fn timed<T>(samples: &[T], every_ms: f64) -> Vec<(f64, &T)> {
    samples.iter().enumerate().map(|(n, sample)| (n as f64 * every_ms, sample)).collect()
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
            let trace = Trace {
                begins_ms: Some(-500.0),
                ends_ms: Some(9000.0),
                following: timed(samples, 1e3),
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
    fn the_files_of_a_follower_have_a_time_of_their_own() {
        let of = |recovered_bytes: Option<u64>, lag_operations, to_follower_bytes| {
            let sample = FollowSample {
                recovered_bytes,
                lag_operations,
                answered: recovered_bytes.is_some(),
                ..Default::default()
            };
            (sample, LinkSample { to_follower_bytes, ..Default::default() })
        };
        // Documents are written, files are copied for three seconds, and following goes on for long after.
        let samples = [
            of(None, 900, 0),
            of(Some(0), 900, 0),
            of(Some(10), 900, 4),
            of(Some(40), 900, 16),
            of(Some(70), 900, 28),
            of(Some(70), 900, 40),
            of(Some(70), 0, 50),
            of(Some(99), 30, 60),
            of(Some(99), 0, 70),
        ];
        let mut trace = Trace::default();
        for (second, (sample, link)) in samples.iter().enumerate() {
            trace.following.push((second as f64 * 1e3, sample));
            trace.link.push((second as f64 * 1e3 + 100.0, link));
        }
        let files = Files { seconds: 2.0, bytes: 60, carried_bytes_per_s: Some(12.0) };
        assert_eq!(trace.files(), Some(files), "the link carried less: it compresses");
        trace.link.clear();
        assert_eq!(trace.files(), Some(Files { carried_bytes_per_s: None, ..files }));
        trace.following.truncate(4);
        assert_eq!(trace.files(), None, "two samples with bytes are no rate");
    }

    /// One slot: the second shard lists its files once the first has all of its own.
    #[test]
    fn files_end_with_the_last_shard_however_much_is_listed_at_first() {
        let sample = |(recovered_bytes, total_bytes)| RecoverySample {
            recovered_bytes,
            total_bytes,
            ..RecoverySample::default()
        };
        let samples =
            [(0, 30), (10, 30), (20, 30), (30, 30), (30, 60), (45, 60), (60, 60), (60, 60)]
                .map(sample);
        let trace = Trace { recovery: timed(&samples, 1e3), ..Trace::default() };
        let files = Files { seconds: 5.0, bytes: 50, carried_bytes_per_s: None };
        assert_eq!(trace.files(), Some(files));
    }

    #[test]
    fn what_waits_for_its_node_is_not_being_copied() {
        let sample = |stages: &[(&str, u32)]| RecoverySample {
            stages: stages.iter().map(|(stage, n)| ((*stage).to_owned(), *n)).collect(),
            ..RecoverySample::default()
        };
        let samples = [
            sample(&[(UNASSIGNED, 2), (DELAYED, 2)]),
            sample(&[("INDEX", 1), (UNASSIGNED, 1)]),
            sample(&[(DONE, 2)]),
        ];
        let recovery = timed(&samples, 30e3);
        let trace = Trace { ends_ms: Some(90e3), recovery, ..Trace::default() };
        assert_eq!(trace.copying_share(), Some(1.0 / 3.0));
        assert_eq!(Trace::default().copying_share(), None);
    }

    #[test]
    fn a_node_that_restarts_was_throttled_before_and_after() {
        let samples = [5000, 6000, 0, 3000]
            .map(|throttle_ms| NodeSample { throttle_ms, ..NodeSample::default() });
        let nodes = BTreeMap::from([(("c", "a"), timed(&samples, 1e3))]);
        let trace = Trace { nodes, ..Trace::default() };
        assert_eq!(trace.throttled_ms(), Some(4000.0));
        assert_eq!(Trace::default().throttled_ms(), None);
    }

    #[test]
    fn the_busiest_node_is_weighed_by_time_from_its_first_sample_on() {
        let [none, half, two] =
            [0.0, 0.5, 2.0].map(|cpu_cores| NodeSample { cpu_cores, ..NodeSample::default() });
        let a = vec![(0.0, &none), (9000.0, &half), (10_000.0, &two)];
        let nodes = BTreeMap::from([(("c", "a"), a), (("c", "b"), vec![(0.0, &two)])]);
        let trace = Trace { nodes, ..Trace::default() };
        let (node, cores) = trace.busiest().unwrap();
        assert!(node == "a" && (cores - 0.65).abs() < 1e-9, "{node}: {cores}");
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
