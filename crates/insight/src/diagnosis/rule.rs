//! How a cause is recognised and what lifts it, for operators.

use super::class::Class;
use super::threshold::Threshold;

/// The rule of a cause: a row of what `narrows explain --rules` prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The class.
    pub class: Class,
    /// Its name for people.
    pub label: &'static str,
    /// How it shows, in words.
    pub signature: &'static str,
    /// The APIs and fields that are read.
    pub reads: &'static str,
    /// Every number that its judges compare with.
    pub thresholds: &'static [Threshold],
    /// The setting or action that lifts it.
    pub lift: &'static str,
    /// The setting's default; empty where there is no setting.
    pub default: &'static str,
    /// The experiment that tells it from its neighbours.
    pub probe: &'static str,
}
