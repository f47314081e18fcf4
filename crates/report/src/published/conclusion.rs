//! A conclusion of a document beside ours.

use insight::stats::Interval;
use insight::words;
use record::{Kind, units};

use super::place::verdict;

/// What the number of a conclusion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A ratio.
    Times,
    /// Seconds.
    Seconds,
    /// A share, 0 to 1.
    Share,
    /// MB/s.
    Rate,
    /// Cores.
    Cores,
    /// A count of shards.
    Shards,
    /// A count of vbuckets.
    Vbuckets,
    /// GB.
    Gigabytes,
}

impl Unit {
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Unit::Times => words::gain(value),
            Unit::Seconds if value.abs() < 100.0 => format!("{value:.1} s"),
            Unit::Seconds => units::show_seconds(value),
            Unit::Share => words::percent(value),
            Unit::Rate => format!("{} MB/s", words::three_digits(value)),
            Unit::Cores => format!("{} cores", words::cores(value)),
            Unit::Shards => format!("{value:.0} shards"),
            Unit::Vbuckets => format!("{value:.0} vbuckets"),
            Unit::Gigabytes => format!("{} GB", words::three_digits(value)),
        }
    }
}

/// A conclusion of a document, and whether our figures support it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The document's id.
    pub document: String,
    /// Where it stands there.
    pub place: String,
    /// What is claimed.
    pub claim: String,
    /// The rows that speak of it.
    pub rows: String,
    /// What the numbers are.
    pub unit: Unit,
    /// The number by the document's figures, where it has them.
    pub published: Option<f64>,
    /// Lowest and highest number with which it holds.
    pub within: (Option<f64>, Option<f64>),
    /// Our number: the median over seeds.
    pub ours: Option<f64>,
    /// Lowest and highest of ours, where they differ.
    pub range: Option<Interval>,
    /// Whether it holds; none where a row is missing.
    pub holds: Option<bool>,
    /// What our number is worth: one that was fitted, or that a setting decides, says nothing of the model.
    pub kind: Kind,
    /// Whether `holds` agrees with what `lab::conclusions` expects; if not, something changed since.
    pub expected: bool,
    /// Why it does not hold, or what is to be known of it; may be empty.
    pub why: String,
}

impl Conclusion {
    /// The bound in words: `at least 1.8×`.
    pub(super) fn bound_text(&self) -> String {
        let show = |value| self.unit.show(value);
        match self.within {
            (Some(low), Some(high)) => format!("{} to {}", show(low), show(high)),
            (Some(low), None) => format!("at least {}", show(low)),
            (None, Some(high)) => format!("at most {}", show(high)),
            (None, None) => "-".to_owned(),
        }
    }

    pub(super) fn ours(&self) -> String {
        self.ours.map_or_else(|| "-".to_owned(), |ours| self.unit.show(ours))
    }

    /// The range over seeds; none where they agree.
    pub(super) fn range_text(&self) -> Option<String> {
        let show = |value| self.unit.show(value);
        let Interval { low, high } = self.range?;
        let (low, high) = (show(low), show(high));
        (low != high).then(|| format!("{low} to {high}"))
    }

    pub(super) fn holds(&self) -> &'static str {
        verdict(self.holds)
    }
}

/// How many hold, and how many do not.
pub(super) fn holding<'a>(conclusions: impl Iterator<Item = &'a Conclusion>) -> (usize, usize) {
    let holds: Vec<bool> = conclusions.filter_map(|conclusion| conclusion.holds).collect();
    let holding = holds.iter().filter(|holds| **holds).count();
    (holding, holds.len() - holding)
}
