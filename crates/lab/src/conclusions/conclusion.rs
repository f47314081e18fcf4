//! What a conclusion is: where it stands, what it claims, which numbers speak of it, and what they have to be.

use std::collections::BTreeMap;

use record::Limit;

use crate::plan::Published;

/// One of the source documents.
#[derive(Debug)]
pub struct Document {
    /// Its name in file names and in JSON.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Who wrote it, and when.
    pub by: &'static str,
    /// The plans that repeat its experiments.
    pub plans: &'static [&'static str],
    /// Every sentence of it that claims something.
    pub conclusions: &'static [Conclusion],
}

/// A variant of a bundled plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName {
    /// Plan.
    pub plan: &'static str,
    /// Variant.
    pub variant: &'static str,
}

/// What is measured of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// How long it took, in seconds.
    Seconds,
    /// MB/s of each receiving node.
    NodeRate,
    /// MB/s of documents, each counted once, however often it was streamed.
    DocumentRate,
    /// Streams that began again because their producer made them roll back.
    Rollbacks,
    /// GB of documents that were streamed, those that were streamed again too.
    Streamed,
    /// A figure of a load, by its name.
    Load(&'static str),
    /// The share of the time, 0 to 1, for which the thread with this suffix in its name was busy.
    Busy(&'static str),
    /// The share of the time that was charged to a limit, 0 to 1.
    HeldBy(Limit),
    /// Cores that a node used.
    Cores(When, &'static str),
    /// MB/s that a node sent.
    Sent(When, &'static str),
    /// MB/s that a node received.
    Received(When, &'static str),
    /// Shards that were recovered after so many seconds.
    DoneAfter(f64),
    /// Shard searches of this node, divided by the mean of the other nodes that ran any.
    SearchesOf(&'static str),
    /// Shard searches of the busiest node, divided by those of the least busy node that ran any.
    SearchesSpread,
    /// Seconds until all that was streamed was on the destination's disk.
    Persisted,
    /// The most of its bucket's quota that a consumer used, as a share.
    MemoryPeak,
    /// The share of the time, 0 to 1, for which a consumer had stopped because of its memory.
    Stopped,
    /// The longest that a follower took to catch up, in seconds, of all times that it was waited for.
    LongestCatchUp,
    /// The longest time for which a follower lacked a write, in seconds.
    LagMax,
    /// Indices that a rollover made.
    Rollovers,
    /// Millions of documents of an index that was rolled over, in the mean.
    DocumentsAnIndex,
}

/// In which part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The ten seconds with the most: the documents have Metricbeat's figures, which by default are of ten seconds.
    Peak,
    /// While one shard alone was left, in the mean.
    LastShard,
}

/// A number: what is measured of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The row.
    pub row: RowName,
    /// What is measured of it.
    pub of: Quantity,
}

/// The number that a conclusion speaks of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// A figure itself.
    One(Figure),
    /// The first over the second.
    Ratio(Figure, Figure),
    /// The first less the second.
    Difference(Figure, Figure),
    /// The first pair's ratio over the second pair's.
    RatioOfRatios([Figure; 2], [Figure; 2]),
    /// The share of the throughputs and latencies of a plan's loads that are better than those of the rows that they
    /// are compared with, which come first in each pair.
    Improved(&'static str, &'static [[&'static str; 2]]),
    /// Nothing here measures it.
    NotMeasured,
}

/// What tells how good a load is, and whether more of it is better.
const MERITS: &[(&str, bool)] = &[
    ("Median Throughput", true),
    ("50th percentile latency", false),
    ("90th percentile latency", false),
    ("99th percentile latency", false),
];

/// Figures that are compared, those of [`Measure::Improved`], each with whether more of it is better.
pub(super) fn compared(
    plan: &'static str,
    pairs: &'static [[&'static str; 2]],
) -> impl Iterator<Item = ([Figure; 2], bool)> {
    pairs.iter().flat_map(move |&pair| {
        MERITS.iter().map(move |&(name, more)| {
            let of = Quantity::Load(name);
            (pair.map(|variant| Figure { row: RowName { plan, variant }, of }), more)
        })
    })
}

/// What the number has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Within a tenth of the document's figure.
    About(f64),
    /// Between these.
    Between(f64, f64),
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
    /// The document claims a gain or a loss by a factor r. Ours has to be at least √r in the same direction: half the
    /// effect on a log scale.
    HalfTheEffect,
    /// The same of an effect whose figures stand in the text, and not in the rows of a plan.
    HalfOf(f64),
}

/// What becomes of a conclusion here. A run that finds otherwise fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It holds.
    Holds,
    /// It holds, and says less than it seems to.
    HoldsBut(&'static str),
    /// It does not hold, and this is the best explanation.
    Fails(&'static str),
    /// Whether it holds depends on the seed, so that a run fails by neither. The text says why our number is so close
    /// to the bound.
    AtItsBound(&'static str),
    /// Nothing here speaks of it, and this is why.
    NotMeasured(&'static str),
}

/// A conclusion of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conclusion {
    /// Where in the document it stands.
    pub place: &'static str,
    /// What is claimed, in the document's words as far as they are short.
    pub claim: &'static str,
    /// The number that speaks of it.
    pub measure: Measure,
    /// The bound that the number has to keep.
    pub bound: Bound,
    /// What becomes of it here.
    pub expected: Expected,
}

/// A cell of a table has no room for more rows.
const MOST_NAMED: usize = 4;

impl Quantity {
    /// What the published row has of it.
    pub fn published(self, row: &Published) -> Option<f64> {
        match self {
            Quantity::Seconds => row.seconds,
            Quantity::NodeRate => row.info.node_bytes_per_s.map(|rate| rate / 1e6),
            Quantity::Load(name) => row.info.load.get(name).copied(),
            _ => None,
        }
    }
}

impl Measure {
    /// The figures that it is made of.
    pub fn figures(&self) -> Vec<Figure> {
        match *self {
            Measure::One(figure) => vec![figure],
            Measure::Ratio(a, b) | Measure::Difference(a, b) => vec![a, b],
            Measure::RatioOfRatios(a, b) => [a, b].concat(),
            Measure::Improved(plan, pairs) => {
                compared(plan, pairs).flat_map(|(figures, _)| figures).collect()
            }
            Measure::NotMeasured => Vec::new(),
        }
    }

    /// Its rows, each once: `remote-recovery: 1 MB x 1; 1 MB x 5`. How many there are where they are too many to name.
    pub fn rows(&self) -> String {
        let mut plans: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for figure in self.figures() {
            let variants = plans.entry(figure.row.plan).or_default();
            if !variants.contains(&figure.row.variant) {
                variants.push(figure.row.variant);
            }
        }
        let one = |(plan, variants): (&&str, &Vec<&str>)| match variants.len() {
            0..=MOST_NAMED => format!("{plan}: {}", variants.join("; ")),
            many => format!("{plan}: {many} rows"),
        };
        plans.iter().map(one).collect::<Vec<_>>().join(". ")
    }
}

impl Conclusion {
    /// Why it fails, or what is to be known of it; empty where there is nothing to say.
    pub fn why(&self) -> &'static str {
        match self.expected {
            Expected::Holds => "",
            Expected::HoldsBut(why)
            | Expected::Fails(why)
            | Expected::AtItsBound(why)
            | Expected::NotMeasured(why) => why,
        }
    }

    /// Whether `holds` is what is expected; it counts as expected where a row was not run.
    pub fn is_expected(&self, holds: Option<bool>) -> bool {
        let is_either = matches!(self.expected, Expected::AtItsBound(_));
        is_either || holds.is_none_or(|holds| holds != matches!(self.expected, Expected::Fails(_)))
    }
}
