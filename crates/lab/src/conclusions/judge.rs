//! Judging a conclusion by the figures of rows.

use super::conclusion::{Bound, Conclusion, Figure, Measure, compared};

/// What was found of a conclusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The number that it speaks of; none where a row is missing.
    pub value: Option<f64>,
    /// The same number by the document's figures, where they have it.
    pub published: Option<f64>,
    /// Lowest and highest value with which it holds, where there is such a bound.
    pub within: (Option<f64>, Option<f64>),
    /// Whether it holds; none where a row is missing.
    pub holds: Option<bool>,
    /// Whether the value is within a tenth of the document's own figure; none where it gives none.
    pub is_near: Option<bool>,
}

/// A figure with a tenth more or less than the document's is the document's.
const TENTH: f64 = 0.1;

impl Measure {
    /// The number, by the figures of rows.
    pub fn value(&self, figure: impl Fn(Figure) -> Option<f64>) -> Option<f64> {
        let over = |a: f64, b: f64| (b != 0.0).then(|| a / b);
        match *self {
            Measure::One(one) => figure(one),
            Measure::Ratio(a, b) => over(figure(a)?, figure(b)?),
            Measure::Difference(a, b) => Some(figure(a)? - figure(b)?),
            Measure::RatioOfRatios([a, b], [c, d]) => {
                over(over(figure(a)?, figure(b)?)?, over(figure(c)?, figure(d)?)?)
            }
            Measure::Improved(plan, pairs) => {
                let mut better = Vec::new();
                for ([base, other], more) in compared(plan, pairs) {
                    let (base, other) = (figure(base)?, figure(other)?);
                    better.push(if more { other > base } else { other < base });
                }
                let improved = better.iter().filter(|better| **better).count();
                over(improved as f64, better.len() as f64)
            }
            Measure::NotMeasured => None,
        }
    }
}

impl Conclusion {
    /// Judges `value` of ours beside what the document's figures come to.
    pub fn judge(&self, value: Option<f64>, published: Option<f64>) -> Judged {
        let about = |figure: f64| {
            let off = figure.abs() * TENTH;
            (figure - off, figure + off)
        };
        let (own, effect) = match self.bound {
            Bound::About(figure) => (Some(figure), None),
            Bound::HalfOf(effect) => (Some(effect), Some(effect)),
            Bound::HalfTheEffect => (published, published),
            Bound::Between(..) | Bound::AtLeast(_) | Bound::AtMost(_) => (published, None),
        };
        let within = match (self.bound, effect) {
            (Bound::About(figure), _) => {
                let (low, high) = about(figure);
                (Some(low), Some(high))
            }
            (Bound::Between(low, high), _) => (Some(low), Some(high)),
            (Bound::AtLeast(low), _) => (Some(low), None),
            (Bound::AtMost(high), _) => (None, Some(high)),
            (_, Some(effect)) if effect >= 1.0 => (Some(effect.sqrt()), None),
            (_, Some(effect)) => (None, Some(effect.sqrt())),
            (_, None) => (None, None),
        };
        let (low, high) = within;
        let bounded = low.is_some() || high.is_some();
        let holds = value.filter(|_| bounded).map(|value| {
            low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high)
        });
        let is_near = value.zip(own).map(|(value, own)| {
            let (low, high) = about(own);
            low <= value && value <= high
        });
        Judged { value, published, within, holds, is_near }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::conclusions::{DOCUMENTS, Expected, Quantity, conclusions};
    use crate::plan::{Published, all_resolved};

    /// The published row of every variant of every bundled plan.
    fn published() -> BTreeMap<(String, String), Option<Published>> {
        let mut rows = BTreeMap::new();
        for plan in all_resolved() {
            for variant in plan.variants {
                rows.insert((plan.name.clone(), variant.name), variant.published);
            }
        }
        rows
    }

    #[test]
    fn every_row_is_in_a_plan_and_the_documents_agree_with_themselves() {
        let rows = published();
        let mut judged = 0;
        for conclusion in conclusions() {
            let of = |figure: Figure| {
                let row = figure.row;
                let key = (row.plan.to_owned(), row.variant.to_owned());
                let found = rows.get(&key).unwrap_or_else(|| panic!("{row:?} is in no plan"));
                figure.of.published(found.as_ref()?)
            };
            let published = conclusion.measure.value(of);
            let found = conclusion.judge(published, published);
            assert_ne!(found.holds, Some(false), "{}: {found:?}", conclusion.claim);
            judged += usize::from(found.holds.is_some());
            if conclusion.bound == Bound::HalfTheEffect {
                assert!(found.holds.is_some(), "{}: no effect is published", conclusion.claim);
            }
        }
        assert!(judged > 40, "{judged}");
    }

    #[test]
    fn every_conclusion_is_named_once_and_speaks_of_plans_of_the_documents() {
        let mut seen = BTreeSet::new();
        let all = DOCUMENTS.iter().flat_map(|d| d.conclusions.iter().map(move |c| (d.id, c)));
        for (document, conclusion) in all {
            let said = (document, conclusion.claim);
            assert!(seen.insert(said), "{said:?} is there twice");
            for figure in conclusion.measure.figures() {
                let known = DOCUMENTS.iter().any(|d| d.plans.contains(&figure.row.plan));
                assert!(known, "{said:?}: {} is not run", figure.row.plan);
            }
            let unmeasured = matches!(conclusion.expected, Expected::NotMeasured(_));
            assert_eq!(unmeasured, conclusion.measure == Measure::NotMeasured, "{said:?}");
        }
        assert_eq!(DOCUMENTS.len(), 5);
    }

    #[test]
    fn a_bound_is_the_documents_own_figure() {
        let conclusion = |bound| Conclusion { bound, ..DOCUMENTS[0].conclusions[0] };
        let holds = |bound, value: f64, published: f64| {
            conclusion(bound).judge(Some(value), Some(published)).holds
        };
        // A doubling.
        assert_eq!(holds(Bound::About(2.0), 1.81, 2.1), Some(true));
        assert_eq!(holds(Bound::About(2.0), 1.79, 2.1), Some(false));
        assert_eq!(holds(Bound::About(2.0), 2.21, 2.1), Some(false));
        // Four times, of which half the effect is twice; and a quarter.
        assert_eq!(holds(Bound::HalfTheEffect, 2.0, 4.0), Some(true));
        assert_eq!(holds(Bound::HalfTheEffect, 1.9, 4.0), Some(false));
        assert_eq!(holds(Bound::HalfTheEffect, 0.5, 0.25), Some(true));
        assert_eq!(holds(Bound::HalfTheEffect, 0.6, 0.25), Some(false));
        assert_eq!(holds(Bound::HalfOf(4.0), 2.0, 9.0), Some(true));
        assert_eq!(holds(Bound::HalfOf(4.0), 1.9, 9.0), Some(false));
        assert_eq!(holds(Bound::HalfOf(0.25), 0.6, 0.1), Some(false));
        assert_eq!(holds(Bound::Between(0.9, 1.1), 1.0, 1.0), Some(true));
        assert_eq!(holds(Bound::AtMost(1.0), 1.1, 1.0), Some(false));
        assert_eq!(conclusion(Bound::AtLeast(1.0)).judge(None, Some(1.0)).holds, None);
        assert_eq!(conclusion(Bound::HalfTheEffect).judge(Some(1.0), None).holds, None);
    }

    #[test]
    fn what_holds_by_half_the_effect_may_be_far_from_the_documents_figure() {
        let judged = |bound, value: f64, published: Option<f64>| {
            let conclusion = Conclusion { bound, ..DOCUMENTS[0].conclusions[0] };
            let Judged { holds, is_near, .. } = conclusion.judge(Some(value), published);
            (holds, is_near)
        };
        let (holds, fails) = (Some(true), Some(false));
        assert_eq!(judged(Bound::HalfTheEffect, 2.0, Some(4.0)), (holds, Some(false)));
        assert_eq!(judged(Bound::HalfTheEffect, 3.7, Some(4.0)), (holds, Some(true)));
        assert_eq!(judged(Bound::HalfTheEffect, 9.0, Some(4.0)), (holds, Some(false)));
        assert_eq!(judged(Bound::HalfOf(4.0), 4.3, None), (holds, Some(true)));
        // The figure that is asked is that of the text, whatever the rows come to.
        assert_eq!(judged(Bound::About(2.0), 2.1, Some(2.5)), (holds, Some(true)));
        assert_eq!(judged(Bound::About(2.0), 2.5, Some(2.5)), (fails, Some(false)));
        assert_eq!(judged(Bound::AtLeast(1.5), 9.3, None), (holds, None));
        let none = DOCUMENTS[0].conclusions[0].judge(None, Some(4.0));
        assert_eq!(none.is_near, None);
    }

    #[test]
    fn a_number_is_made_of_figures_and_none_is_missing() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|variant| Figure {
            row: crate::conclusions::RowName { plan: "p", variant },
            of: Quantity::Seconds,
        });
        let figure = |figure: Figure| match figure.row.variant {
            "a" => Some(12.0),
            "b" => Some(3.0),
            "c" => Some(2.0),
            _ => None,
        };
        assert_eq!(Measure::Ratio(a, b).value(figure), Some(4.0));
        assert_eq!(Measure::Difference(a, b).value(figure), Some(9.0));
        assert_eq!(Measure::RatioOfRatios([a, b], [c, c]).value(figure), Some(4.0));
        assert_eq!(Measure::RatioOfRatios([a, b], [c, d]).value(figure), None);
        assert_eq!(Measure::Ratio(a, b).value(|_| Some(0.0)), None);
    }

    #[test]
    fn an_improvement_is_more_throughput_and_less_latency() {
        let improved = |pairs: &'static [[&'static str; 2]]| Measure::Improved("p", pairs);
        let figure = |figure: Figure| match (figure.row.variant, figure.of) {
            ("base", Quantity::Load(_)) => Some(10.0),
            ("other", Quantity::Load("Median Throughput" | "99th percentile latency")) => {
                Some(12.0)
            }
            ("other", Quantity::Load(_)) => Some(8.0),
            _ => None,
        };
        // More throughput, and less of two latencies of three.
        let measure = improved(&[["base", "other"]]);
        assert_eq!(measure.value(figure), Some(0.75));
        assert_eq!(measure.figures().len(), 8);
        assert_eq!(measure.rows(), "p: base; other");
        // What stays as it is did not improve.
        assert_eq!(improved(&[["base", "base"]]).value(figure), Some(0.0));
        assert_eq!(improved(&[["base", "none"]]).value(figure), None);
        let many = improved(&[["a", "b"], ["c", "d"], ["e", "f"]]);
        assert_eq!(many.rows(), "p: 6 rows");
    }

    #[test]
    fn a_change_of_what_holds_shows() {
        let conclusion = |expected| Conclusion { expected, ..DOCUMENTS[0].conclusions[0] };
        assert!(conclusion(Expected::Holds).is_expected(Some(true)));
        assert!(!conclusion(Expected::Holds).is_expected(Some(false)));
        assert!(!conclusion(Expected::Fails("why")).is_expected(Some(true)));
        assert!(conclusion(Expected::Fails("why")).is_expected(Some(false)));
        assert!(conclusion(Expected::Fails("why")).is_expected(None));
        let at_its_bound = conclusion(Expected::AtItsBound("why"));
        assert!(at_its_bound.is_expected(Some(true)) && at_its_bound.is_expected(Some(false)));
        assert_eq!(at_its_bound.why(), "why");
    }
}
