//! What a probe measures: rates, or the use of what is busy, from looks within a span of time.

use std::collections::BTreeSet;

use record::observation::{Observation, Recovery};

use crate::diagnosis::knobs::Knobs;
use crate::diagnosis::series::{MS_PER_S, Series, Transfer};
use crate::diagnosis::threshold::{Threshold, at};
use crate::diagnosis::unanswered::tells_of_recoveries;
use crate::stats::Part;

pub(super) const RATE_MS: Threshold = at("ms of a recovery whose own rate counts, at least", 300.0);

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meter {
    /// Bytes a second of recoveries together. `steady` leaves out the steps in which one of them began or ended, and
    /// joins those between one chunk and the next.
    Together { whose: Whose, steady: bool },
    /// Bytes a second of each recovery by itself.
    Each { whose: Whose },
    /// Use of a node's disk or cores.
    Busy { node: String, disk: bool },
}

/// Which recoveries are measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Whose {
    All,
    /// Those that read from a node or write to it.
    Node(String),
    /// Those of them that pass the same limiter there.
    Limiter(String, Knobs),
    /// Those on the path of this one, which share its round trip.
    Path(Box<Recovery>),
}

impl Whose {
    fn counts(&self, recovery: &Recovery, series: &Series<'_>) -> bool {
        let ends = || [recovery.sender(), recovery.target.as_deref()].into_iter().flatten();
        let is_at = |node: &String| ends().any(|end| end == node);
        match self {
            Whose::All => true,
            Whose::Node(node) => is_at(node),
            Whose::Limiter(node, knobs) => {
                is_at(node) && Knobs::of(recovery, series).rate == knobs.rate
            }
            Whose::Path(one) => recovery.is_on_path_of(one),
        }
    }
}

/// A span of time, in milliseconds of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub from_ms: f64,
    pub to_ms: f64,
}

impl Meter {
    /// Names of the recoveries whose rates are measured: of others a result says nothing.
    pub(super) fn measured(&self, series: &Series<'_>) -> BTreeSet<String> {
        let (Meter::Together { whose, .. } | Meter::Each { whose }) = self else {
            return BTreeSet::new();
        };
        let all = series.transfers().iter();
        all.filter(|one| whose.counts(one.last(), series)).map(Transfer::name).collect()
    }

    /// What was measured within a span: bytes and their seconds, or values that count alike. `born` leaves out
    /// recoveries that began before the span.
    pub(super) fn samples(&self, series: &Series<'_>, span: Span, born: bool) -> Vec<Part> {
        let within = |t_ms: f64| t_ms >= span.from_ms && t_ms <= span.to_ms;
        let looks: Vec<_> =
            series.looks().iter().copied().filter(|(t_ms, _)| within(*t_ms)).collect();
        match self {
            Meter::Together { whose, steady } => {
                let counts = |recovery: &Recovery| whose.counts(recovery, series);
                let steps = looks.windows(2).map(|pair| together(pair, &counts, *steady));
                match *steady {
                    true => from_chunk_to_chunk(steps),
                    false => steps.flatten().collect(),
                }
            }
            Meter::Each { whose } => {
                let before = series.looks().iter().filter(|(t_ms, _)| *t_ms < span.from_ms);
                let known: BTreeSet<_> =
                    before.flat_map(|(_, look)| &look.recoveries).map(Recovery::key).collect();
                let mut last: std::collections::BTreeMap<_, &Recovery> = Default::default();
                for recovery in looks.iter().flat_map(|(_, look)| &look.recoveries) {
                    if whose.counts(recovery, series) && !(born && known.contains(&recovery.key()))
                    {
                        last.insert(recovery.key(), recovery);
                    }
                }
                last.into_values().filter_map(own_rate).map(each).collect()
            }
            Meter::Busy { node, disk } => {
                let used = |pair: &[(f64, &Observation)]| {
                    let pair = Series::new(pair.iter().copied());
                    let span = pair.node(node)?;
                    if *disk { span.disk_busy() } else { span.cpu().map(|(share, _)| share) }
                };
                looks.windows(2).filter_map(used).map(each).collect()
            }
        }
    }
}

/// Steps from chunk to chunk. Where chunks are few, nothing comes in most steps from look to look: those until the next
/// chunk are one step with it, as else its rate seems to vary by as much as it is. When the first one began is not
/// known then.
fn from_chunk_to_chunk(steps: impl Iterator<Item = Option<Part>>) -> Vec<Part> {
    let steps: Vec<_> = steps.collect();
    let mut chunks = Vec::new();
    for steady in steps.split(Option::is_none) {
        let is_seldom = steady.iter().flatten().any(|(bytes, _)| *bytes == 0.0);
        let mut taken_s: Option<f64> = (!is_seldom).then_some(0.0);
        for (bytes, s) in steady.iter().flatten() {
            taken_s = taken_s.map(|taken_s| taken_s + s);
            if *bytes > 0.0 {
                chunks.extend(taken_s.map(|s| (*bytes, s)));
                taken_s = Some(0.0);
            }
        }
    }
    chunks
}

/// What came of all recoveries together between two looks; none if no recovery goes on, and with `steady` also none if
/// one began or ended. Where one of the looks does not tell of recoveries, nothing is known of the step.
fn together(
    pair: &[(f64, &Observation)],
    counts: &impl Fn(&Recovery) -> bool,
    steady: bool,
) -> Option<Part> {
    let [(then_ms, then), (now_ms, now)] = pair else { return None };
    if ![then, now].into_iter().all(|look| tells_of_recoveries(look)) {
        return None;
    }
    let (before, after) = (copying(then, counts), copying(now, counts));
    if (before.is_empty() && after.is_empty()) || (steady && before != after) {
        return None;
    }
    let mut bytes: u64 = 0;
    for recovery in now.recoveries.iter().filter(|recovery| counts(recovery)) {
        let before = then.recoveries.iter().find(|other| other.key() == recovery.key());
        let was = before.and_then(|before| before.recovered_bytes).unwrap_or(0);
        bytes += recovery.recovered_bytes?.saturating_sub(was);
    }
    Some((bytes as f64, (now_ms - then_ms) / MS_PER_S))
}

/// The recoveries that copy files, by key.
fn copying<'a>(
    look: &'a Observation,
    counts: &impl Fn(&Recovery) -> bool,
) -> BTreeSet<(&'a str, u32, Option<&'a str>, Option<u64>)> {
    let copies =
        |recovery: &&Recovery| counts(recovery) && recovery.stage == "INDEX" && !recovery.ended;
    look.recoveries.iter().filter(copies).map(Recovery::key).collect()
}

fn each(value: f64) -> Part {
    (value, 1.0)
}

fn own_rate(recovery: &Recovery) -> Option<f64> {
    let (bytes, ms) = (recovery.recovered_bytes?, recovery.total_ms?);
    (bytes > 0 && ms as f64 >= RATE_MS.value).then(|| bytes as f64 / (ms as f64 / 1e3))
}

#[cfg(test)]
mod tests {
    use record::observation::Gap;

    use super::*;

    /// 10 MB/s, for long before anybody looked.
    #[test]
    fn a_look_that_does_not_tell_of_recoveries_is_no_step() {
        let look = |s: u64, is_told: bool| {
            let recovery = Recovery {
                stage: "INDEX".into(),
                recovered_bytes: Some(s * 10_000_000),
                ..Recovery::default()
            };
            let gap = Gap { path: "/_recovery".into(), ..Gap::default() };
            Observation {
                recoveries: is_told.then_some(recovery).into_iter().collect(),
                gaps: (!is_told).then_some(gap).into_iter().collect(),
                ..Observation::default()
            }
        };
        let told = [true, true, false, true, true].into_iter().zip(100_u64..);
        let looks: Vec<_> = told.map(|(told, s)| (s as f64 * 1e3, look(s, told))).collect();
        let series = Series::new(looks.iter().map(|(t_ms, look)| (*t_ms, look)));
        let meter = Meter::Together { whose: Whose::All, steady: false };
        let span = Span { from_ms: 0.0, to_ms: f64::INFINITY };
        assert_eq!(meter.samples(&series, span, false), [(1e7, 1.0); 2]);
    }

    /// The trap: of a megabyte every two seconds, looks a second apart see 0 and 1 MB/s in turn, as if it varied.
    #[test]
    fn steps_in_which_nothing_came_are_one_with_the_next_chunk() {
        let chunks = |steps: &[Option<Part>]| from_chunk_to_chunk(steps.iter().copied());
        let [nothing, chunk] = [Some((0.0, 1.0)), Some((1e6, 1.0))];
        let seldom = [nothing, chunk, nothing, chunk, nothing, nothing, chunk, nothing];
        let expected = [(1e6, 2.0), (1e6, 3.0)];
        assert_eq!(chunks(&seldom), expected, "when the first one began is not known");
        assert_eq!(chunks(&[chunk, chunk]), [(1e6, 1.0); 2]);
        let expected = [(1e6, 2.0), (1e6, 1.0)];
        assert_eq!(chunks(&[chunk, nothing, chunk, None, nothing, chunk, chunk]), expected);
        assert!(chunks(&[nothing, nothing]).is_empty());
    }

    /// A restore and a recovery, each 10 MB/s, pass one limiter.
    #[test]
    fn all_that_pass_a_limiter_are_measured_together() {
        let look = |s: u64| {
            let peer = Recovery {
                stage: "INDEX".into(),
                target: Some("b".into()),
                recovered_bytes: Some(s * 10_000_000),
                ..Recovery::default()
            };
            let restore = Recovery { repository: Some("backup".into()), shard: 1, ..peer.clone() };
            let elsewhere = Recovery { target: Some("c".into()), shard: 2, ..peer.clone() };
            // Its source sends nothing of it.
            let of_snapshot = Recovery {
                shard: 3,
                source: Some("b".into()),
                from_snapshot_bytes: elsewhere.recovered_bytes,
                ..elsewhere.clone()
            };
            let recoveries = vec![peer, restore, elsewhere, of_snapshot];
            Observation { recoveries, ..Observation::default() }
        };
        let looks = [look(1), look(2)];
        let series = Series::new([1e3, 2e3].into_iter().zip(&looks));
        let whose = Whose::Limiter("b".to_owned(), Knobs::PEERS);
        let meter = Meter::Together { whose, steady: true };
        let span = Span { from_ms: 0.0, to_ms: f64::INFINITY };
        assert_eq!(meter.samples(&series, span, false), [(2e7, 1.0)]);
        let whose = Whose::Path(Box::new(looks[0].recoveries[0].clone()));
        let of_path = Meter::Together { whose, steady: true };
        assert_eq!(of_path.samples(&series, span, false), [(1e7, 1.0)]);
    }
}
