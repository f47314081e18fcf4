//! How the files of the documents write their conclusions.

use super::conclusion::{Bound, Conclusion, Expected, Figure, Measure, Quantity, RowName};

pub(super) const fn claim(
    place: &'static str,
    claim: &'static str,
    measure: Measure,
    bound: Bound,
    expected: Expected,
) -> Conclusion {
    Conclusion { place, claim, measure, bound, expected }
}

/// What nothing here measures, and why.
pub(super) const fn not_measured(
    place: &'static str,
    what: &'static str,
    why: &'static str,
) -> Conclusion {
    claim(place, what, Measure::NotMeasured, Bound::AtLeast(1.0), Expected::NotMeasured(why))
}

pub(super) const fn figure(plan: &'static str, variant: &'static str, of: Quantity) -> Figure {
    Figure { row: RowName { plan, variant }, of }
}

pub(super) const fn one(plan: &'static str, variant: &'static str, of: Quantity) -> Measure {
    Measure::One(figure(plan, variant, of))
}

/// Seconds of a row over seconds of another one of the same plan.
pub(super) const fn slower(plan: &'static str, slow: &'static str, fast: &'static str) -> Measure {
    Measure::Ratio(figure(plan, slow, Quantity::Seconds), figure(plan, fast, Quantity::Seconds))
}
