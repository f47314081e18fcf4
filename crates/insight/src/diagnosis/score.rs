//! Scores of verdicts on cases whose causes are known.
//!
//! Thresholds are chosen by looking at even seeds; scores come from the odd ones ([`held_out`]). The measures are
//! those of the literature on root causes (AC@k, macro-F1), with one difference: of two causes the one that holds must
//! come first to count for AC@1.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::class::Class;
use crate::stats::{mean, median};

/// How far down AC@3 looks.
const TOP: usize = 3;

/// What simpler tools say of a case; none is healthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guesses {
    /// A lint that reads settings alone.
    pub lint: Option<Class>,
    /// The resource that is used most.
    pub utilisation: Option<Class>,
}

/// A case with its verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// Where it ran: `virtual`, `embedded`, `opensearch`.
    pub target: String,
    /// What was injected, in words.
    pub name: String,
    /// The classes that are right, the one that holds first; none where nothing is to be found.
    pub classes: Vec<Class>,
    /// How strong the cause was, 1 to 3.
    pub severity: u32,
    /// What the case was drawn from.
    pub seed: u64,
    /// Classes of the findings in their order, by looking alone.
    pub verdicts: Vec<Class>,
    /// The same with probes; none where none was made.
    pub probed: Option<Vec<Class>>,
    /// The class that the first finding by looking alone names as the next limit; none where it names none.
    pub next: Option<Class>,
    /// What was said by looking alone, in a sentence.
    pub sentence: String,
    /// Where that names another cause than the one that is right, why.
    pub reason: Option<String>,
    /// How many times the rate the first finding promised, where it named a setting.
    pub promised: Option<f64>,
    /// How many times the rate the setting brought.
    pub got: Option<f64>,
    /// From when on the first finding was right, in seconds of looking; none where it was not in the end.
    pub seconds: Option<f64>,
    /// The same with probes, in seconds of looking and probing; none where none was made.
    pub probed_seconds: Option<f64>,
    /// What simpler tools say.
    pub guesses: Guesses,
}

/// The class of a verdict; none is healthy.
pub type Label = Option<Class>;

/// How often which first verdict came where which class was right: (right, said).
pub type Confusion = BTreeMap<(Label, Label), usize>;

/// What a tool says of a case, best first.
pub type Verdicts<'a> = &'a dyn Fn(&Scored) -> Vec<Class>;

/// Figures over some cases; shares are 0 to 1. A figure of no case is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scores {
    /// Share of the cases whose first verdict is the cause that holds.
    pub ac1: Option<f64>,
    /// Share of the causes that are among the first three verdicts, averaged over cases.
    pub ac3: Option<f64>,
    /// Mean over labels of the harmonic mean of precision and recall.
    pub macro_f1: Option<f64>,
    /// Share of the healthy cases with any verdict.
    pub false_alarms: Option<f64>,
    /// Share of the cases with a known cause whose first verdict is `unknown`.
    pub unknown: Option<f64>,
    /// Median of the relative difference between the gain that was promised and the one that came.
    pub gain_error_median: Option<f64>,
    /// Of the cases with two causes whose first verdict is the one that holds, the share in which looking alone named
    /// the other as the next limit. It is no verdict, and counts for nothing above.
    pub next: Option<f64>,
}

/// The cases that no threshold was chosen by.
pub fn held_out(cases: &[Scored]) -> Vec<&Scored> {
    cases.iter().filter(|case| case.seed % 2 == 1).collect()
}

/// What looking alone said.
pub fn passive(case: &Scored) -> Vec<Class> {
    case.verdicts.clone()
}

/// What was said in the end, with probes where some were made.
pub fn probed(case: &Scored) -> Vec<Class> {
    case.probed.clone().unwrap_or_else(|| case.verdicts.clone())
}

/// From when on looking alone was right.
pub fn passive_seconds(case: &Scored) -> Option<f64> {
    case.seconds
}

/// From when on it was right in the end, with probes where some were made.
pub fn probed_seconds(case: &Scored) -> Option<f64> {
    if case.probed.is_some() { case.probed_seconds } else { case.seconds }
}

/// The class that is right most often among `cases`: what a tool that knows nothing else would always say.
pub fn majority(cases: &[&Scored]) -> Label {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    for case in cases {
        *counts.entry(case.classes.first().copied()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count)?.0
}

/// Scores what a tool says of some cases.
pub fn scores(cases: &[&Scored], verdicts: Verdicts<'_>) -> Scores {
    let share = |all: Vec<f64>| mean(&all);
    let yes = |is: bool| if is { 1.0 } else { 0.0 };
    let is_known = |case: &&&Scored| case.classes.first().is_some_and(|c| *c != Class::Unknown);
    let says_unknown = |case: &&Scored| yes(verdicts(case).first() == Some(&Class::Unknown));
    let healthy = cases.iter().filter(|case| case.classes.is_empty());
    let first_of_two =
        cases.iter().filter(|case| case.classes.len() > 1 && is_right(case, &verdicts(case)));
    let errors: Vec<f64> = cases
        .iter()
        .filter_map(|case| Some((case.promised? / case.got.filter(|got| *got > 0.0)? - 1.0).abs()))
        .collect();
    Scores {
        ac1: share(cases.iter().map(|case| yes(is_right(case, &verdicts(case)))).collect()),
        ac3: share(cases.iter().map(|case| among_first(case, &verdicts(case))).collect()),
        macro_f1: macro_f1(&confusion(cases, verdicts)),
        false_alarms: share(healthy.map(|case| yes(!verdicts(case).is_empty())).collect()),
        unknown: share(cases.iter().filter(is_known).map(says_unknown).collect()),
        gain_error_median: median(&errors),
        next: share(
            first_of_two.map(|case| yes(case.next == case.classes.get(1).copied())).collect(),
        ),
    }
}

/// Whether the first verdict is the cause that holds, or nothing was found where nothing was to be found.
pub fn is_right(case: &Scored, verdicts: &[Class]) -> bool {
    case.classes.first() == verdicts.first()
}

fn among_first(case: &Scored, verdicts: &[Class]) -> f64 {
    if case.classes.is_empty() {
        return if verdicts.is_empty() { 1.0 } else { 0.0 };
    }
    let top = &verdicts[..verdicts.len().min(TOP)];
    let found = case.classes.iter().filter(|class| top.contains(class)).count();
    found as f64 / case.classes.len().min(TOP) as f64
}

/// The name of a class in tables; `healthy` where there is none.
pub fn label(class: Label) -> &'static str {
    class.map_or("healthy", Class::label)
}

/// Counts first verdicts.
pub fn confusion(cases: &[&Scored], verdicts: Verdicts<'_>) -> Confusion {
    let mut counts = Confusion::new();
    for case in cases {
        let said = verdicts(case).first().copied();
        *counts.entry((case.classes.first().copied(), said)).or_default() += 1;
    }
    counts
}

/// Over the labels that are right at least once.
fn macro_f1(counts: &Confusion) -> Option<f64> {
    let mut labels: Vec<Label> = counts.keys().map(|(right, _)| *right).collect();
    labels.dedup();
    let f1 = |label: &Label| {
        let (mut hits, mut both) = (0, 0);
        for ((right, said), count) in counts {
            hits += if right == label && said == label { *count } else { 0 };
            both += count * (usize::from(right == label) + usize::from(said == label));
        }
        2.0 * hits as f64 / both as f64
    };
    mean(&labels.iter().map(f1).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(seed: u64, classes: &[Class], verdicts: &[Class]) -> Scored {
        Scored {
            target: "virtual".to_owned(),
            classes: classes.to_vec(),
            severity: 1,
            seed,
            verdicts: verdicts.to_vec(),
            ..Scored::default()
        }
    }

    #[test]
    fn every_figure_is_that_of_its_definition() {
        use Class::{Disk, Latency, RateLimit, Unknown};
        let mut all = vec![
            case(1, &[RateLimit], &[RateLimit]),
            case(3, &[RateLimit, Disk], &[RateLimit]),
            case(5, &[Latency, Disk], &[Disk, Latency]),
            case(7, &[Latency], &[Unknown, Latency]),
            case(9, &[], &[]),
            case(11, &[], &[Unknown]),
            case(13, &[Unknown], &[Unknown]),
        ];
        (all[0].promised, all[0].got) = (Some(2.0), Some(4.0));
        (all[3].promised, all[3].got) = (Some(3.0), Some(0.0));
        let cases = held_out(&all);
        let found = scores(&cases, &passive);
        let near = |found: Option<f64>, wanted: f64| {
            assert!((found.unwrap() - wanted).abs() < 1e-9, "{found:?} {wanted}");
        };
        near(found.ac1, 4.0 / 7.0);
        // One of two, two of two, and one behind an unknown; an alarm on a healthy case counts nothing.
        near(found.ac3, (1.0 + 0.5 + 1.0 + 1.0 + 1.0 + 0.0 + 1.0) / 7.0);
        near(found.false_alarms, 0.5);
        near(found.unknown, 0.25);
        near(found.gain_error_median, 0.5);
        // Rate limit 1, latency 0, healthy 2/3, unknown 1/2.
        near(found.macro_f1, (1.0 + 0.0 + 2.0 / 3.0 + 0.5) / 4.0);
        assert_eq!(confusion(&cases, &passive)[&(Some(Latency), Some(Disk))], 1);
    }

    #[test]
    fn the_next_limit_is_scored_where_the_first_of_two_causes_is_named_and_nowhere_else() {
        use Class::{Disk, Latency, RateLimit};
        let mut all = vec![
            case(1, &[RateLimit, Disk], &[RateLimit]),
            case(3, &[RateLimit, Disk], &[RateLimit]),
            case(5, &[RateLimit, Disk], &[RateLimit]),
            case(7, &[RateLimit, Disk], &[Latency]),
            case(9, &[RateLimit], &[RateLimit]),
            case(11, &[], &[]),
        ];
        let without = scores(&held_out(&all), &passive);
        assert_eq!(without.next, Some(0.0));
        // The right one, another one, and none; where the first is wrong or alone, nothing comes next.
        (all[0].next, all[1].next) = (Some(Disk), Some(Latency));
        (all[3].next, all[4].next) = (Some(Disk), Some(Disk));
        let with = scores(&held_out(&all), &passive);
        assert!((with.next.unwrap() - 1.0 / 3.0).abs() < 1e-9, "{with:?}");
        assert_eq!(Scores { next: without.next, ..with }, without);
        assert_eq!(scores(&[&all[4], &all[5]], &passive).next, None);
    }

    #[test]
    fn what_is_chosen_on_even_seeds_is_scored_on_odd_ones() {
        let all: Vec<Scored> = (0..10).map(|seed| case(seed, &[Class::Gc], &[])).collect();
        assert!(held_out(&all).iter().all(|case| case.seed % 2 == 1));
        assert_eq!(held_out(&all).len(), 5);
        assert_eq!(scores(&[], &passive), Scores::default());
    }

    #[test]
    fn probes_count_where_some_were_made_and_the_majority_is_that_of_others() {
        let mut one = case(1, &[Class::Disk], &[Class::Unknown]);
        one.seconds = Some(1.0);
        assert_eq!(probed_seconds(&one), Some(1.0));
        one.probed = Some(vec![Class::Disk]);
        one.probed_seconds = Some(9.0);
        assert_eq!((passive_seconds(&one), probed_seconds(&one)), (Some(1.0), Some(9.0)));
        let all = [&one];
        assert_eq!(scores(&all, &passive).ac1, Some(0.0));
        assert_eq!(scores(&all, &probed).ac1, Some(1.0));
        let (a, b, c) = (case(0, &[], &[]), case(2, &[], &[]), case(4, &[Class::Gc], &[]));
        assert_eq!(majority(&[&a, &b, &c]), None);
        assert_eq!(majority(&[&a, &c, &c]), Some(Class::Gc));
    }
}
