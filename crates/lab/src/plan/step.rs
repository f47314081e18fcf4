//! The steps of a plan.

use std::collections::BTreeMap;

use super::background::Background;

/// A step, in the words of the progress display and the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start the clusters.
    Start,
    /// Index the corpus on the leader, then stop.
    Index,
    /// Go on indexing on the leader while variants are measured.
    IndexInBackground(Background),
    /// Fill the source's bucket.
    Fill,
    /// Measure each variant.
    Measure(Measured),
    /// Compare both sides.
    Verify,
}

impl Step {
    /// Names of the steps of every plan that come before the measured one.
    pub const BEFORE: [&str; 3] = ["start", "index", "index_in_background"];
    /// The name of the step before a measured one that needs a bucket.
    pub const FILL: &str = "fill";
    /// The name of the step after the measured one.
    pub const VERIFY: &str = "verify";

    /// The name in plans.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Start => Step::BEFORE[0],
            Step::Index => Step::BEFORE[1],
            Step::IndexInBackground(_) => Step::BEFORE[2],
            Step::Fill => Step::FILL,
            Step::Measure(measured) => measured.name,
            Step::Verify => Step::VERIFY,
        }
    }
}

/// The step that variants are measured in; a plan has one at most. Its experiment declares it
/// ([`DeclaredStep`](super::DeclaredStep)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The name in plans.
    pub name: &'static str,
    /// The options that the plan gives.
    pub options: BTreeMap<&'static str, u32>,
    /// Whether a variant leaves the indices other than it found them, so that each variant needs them anew.
    pub spoils_indices: bool,
}
