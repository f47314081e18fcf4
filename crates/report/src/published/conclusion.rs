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
    /// Cores.
    Cores,
    /// A whole number of these.
    Count(&'static str),
    /// A number of these: `MB/s`.
    Of(&'static str),
}

impl Unit {
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Unit::Times => words::gain(value),
            Unit::Seconds if value.abs() < 100.0 => format!("{value:.1} s"),
            Unit::Seconds => units::show_seconds(value),
            Unit::Share => words::percent(value),
            Unit::Cores => format!("{} cores", words::cores(value)),
            Unit::Count(what) => format!("{value:.0} {what}"),
            Unit::Of(what) => format!("{} {what}", words::three_digits(value)),
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
    /// Whether ours is within a tenth of the document's own figure; none where it gives none.
    pub is_near: Option<bool>,
    /// What our number is worth: one that was fitted, or that a setting decides, says nothing of the model.
    pub kind: Kind,
    /// Whether `holds` agrees with what `lab::conclusions` expects; if not, something changed since.
    pub expected: bool,
    /// Why it does not hold, or what is to be known of it; may be empty.
    pub why: String,
}

impl Conclusion {
    /// The bound in words: `at least 1.8×`; none where nothing was measured, for there it bounds nothing.
    pub(super) fn asked(&self) -> String {
        if self.holds.is_some() { self.bound_text() } else { "-".to_owned() }
    }

    /// The bound of a conclusion that was measured, here or elsewhere.
    pub(super) fn bound_text(&self) -> String {
        let show = |value| self.unit.show(value);
        match self.within {
            (Some(low), Some(high)) => span(&show(low), &show(high)),
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
        (low != high).then(|| span(&low, &high))
    }

    pub(super) fn holds(&self) -> &'static str {
        verdict(self.holds)
    }
}

/// From one figure to another, with their unit once where they share it: `0.19 to 0.22 cores`.
pub(super) fn span(low: &str, high: &str) -> String {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((low, unit)), Some((_, of_high))) if unit == of_high => format!("{low} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Explanations by their numbers. What explains several conclusions is said at the first and referred to at the others.
pub(super) struct Notes<'a> {
    numbered: Vec<&'a str>,
    said: usize,
}

impl<'a> Notes<'a> {
    /// Numbers each of these once, in their order.
    pub(super) fn of(all: impl Iterator<Item = &'a str>) -> Self {
        Notes { numbered: words::each_once(all), said: 0 }
    }

    /// Numbers only those that stand there again.
    pub(super) fn of_shared(all: &[&'a str]) -> Self {
        let is_shared = |why: &&&str| all.iter().filter(|other| other == why).count() > 1;
        Notes::of(all.iter().filter(is_shared).copied())
    }

    /// The number of an explanation, from 1, where it has one.
    pub(super) fn number(&self, why: &str) -> Option<usize> {
        self.numbered.iter().position(|known| *known == why).map(|at| at + 1)
    }

    /// Its number, and whether it has to be said, as it was not before.
    pub(super) fn say(&mut self, why: &str) -> Option<(usize, bool)> {
        let number = self.number(why)?;
        let is_new = number > self.said;
        self.said = self.said.max(number);
        Some((number, is_new))
    }
}

/// What each kind of bound asks, and why.
pub(super) const BOUNDS: [(&str, &str); 3] = [
    (
        "A range",
        "the document gives a number, and ours has to be within a tenth of it; where it says that nothing changes, within \
         the range that its words allow.",
    ),
    (
        "At least, or at most: half of an effect",
        "it says that something helps or hurts, and its figures say how much. Ours has to go the same way by at least half \
         of that, as a factor: the root of its ratio, and no upper end. Where its own effect is small, so is what is asked: \
         2 % of one of 4 %. Such a row tries the direction, and not the size.",
    ),
    (
        "At least, or at most: in words",
        "the number is that of its words (less than two times, within a quarter), or, where they have none, one of ours: half \
         of the time for what holds a recovery, 1.5 times for progress that the slides draw without a scale. That one \
         says little of the size, too.",
    ),
];

/// Of those that hold and of which the document gives a figure: how many there are, and how many are within a tenth of
/// it.
pub(super) fn near<'a>(conclusions: impl Iterator<Item = &'a Conclusion>) -> (usize, usize) {
    let holding = conclusions.filter(|conclusion| conclusion.holds == Some(true));
    let near: Vec<bool> = holding.filter_map(|conclusion| conclusion.is_near).collect();
    (near.len(), near.iter().filter(|near| **near).count())
}

/// The same in words, for all conclusions of a document or of all of them.
pub(super) fn near_text<'a>(conclusions: impl Iterator<Item = &'a Conclusion> + Clone) -> String {
    let (holding, failing) = holding(conclusions.clone());
    let (figures, near) = near(conclusions);
    format!(
        "{holding} of {} hold, {near} of them within 10 % of the document's own figure, which it gives for {figures} of them",
        holding + failing
    )
}

/// How many hold, and how many do not.
pub(super) fn holding<'a>(conclusions: impl Iterator<Item = &'a Conclusion>) -> (usize, usize) {
    let holds: Vec<bool> = conclusions.filter_map(|conclusion| conclusion.holds).collect();
    let holding = holds.iter().filter(|holds| **holds).count();
    (holding, holds.len() - holding)
}
