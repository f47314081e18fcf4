//! Runs beside each other: the figures that they have in common, lap by lap, and what the laps support.

mod figures;
mod remarks;

use record::RunDir;

use crate::difference::{Difference, can_support};
use crate::headline::Headline;
use crate::summary::Summary;
use crate::words::counted;

pub use figures::{Compared, Contender};

use figures::{draw_alike, figures, has_others};
use remarks::remarks;

/// The target of a race that Rally wrote: it has no figures of administration, and counts documents and pages where we
/// count requests.
pub const RALLY: &str = "rally";

/// Runs beside the first of them.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    /// The runs; at least two.
    pub contenders: Vec<Contender<'a>>,
    /// Every figure that one of them has, in the order of the first run.
    pub figures: Vec<Compared>,
    /// What a reader must know to read the table right, a sentence each.
    pub remarks: Vec<String>,
}

/// A figure that is worse than it may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Worse {
    /// The run, by its label.
    pub label: String,
    /// What is worse, and by how much, in words.
    pub text: String,
}

impl<'a> Runs<'a> {
    /// Compares runs, at least two, with the first of them.
    pub fn of(runs: &[&'a RunDir]) -> Self {
        let contender = |(at, run): (usize, &&'a RunDir)| Contender {
            label: label(at),
            run,
            summary: Summary::of(run),
        };
        let contenders: Vec<Contender<'a>> = runs.iter().enumerate().map(contender).collect();
        let figures = figures(&contenders);
        let remarks = remarks(&contenders, &figures);
        Runs { contenders, figures, remarks }
    }

    /// Whether there is a figure that the first run and another one have.
    pub fn has_common_figures(&self) -> bool {
        self.figures.iter().any(|figure| figure.differences.iter().any(Option::is_some))
    }

    /// What differs as far as the laps support it.
    pub fn headline(&self) -> Headline {
        let changes = || {
            self.figures.iter().flat_map(|figure| {
                let others = self.contenders[1..].iter().zip(&figure.differences);
                others.filter_map(move |(other, found)| Some((figure, other, (*found)?)))
            })
        };
        let size = |(figure, _, difference): &(&Compared, &Contender<'_>, Difference)| {
            figure.worse_percent(difference).abs()
        };
        let largest = |supported: bool| {
            changes()
                .filter(|(_, _, difference)| difference.is_supported() || !supported)
                .max_by(|a, b| size(a).total_cmp(&size(b)))
        };
        let words = |(figure, other, difference): (&Compared, &Contender<'_>, Difference)| {
            let worse = figure.worse_percent(&difference);
            let which = if worse > 0.0 { "worse" } else { "better" };
            let by = match worse.abs() {
                size if !size.is_finite() => "above zero, and was zero".to_owned(),
                // Rounded to a tenth, it would be shown as 0.0 %.
                size if size < 0.05 => format!("less than 0.1 % {which} than"),
                size => format!("{size:.1} % {which} than"),
            };
            let base = &self.contenders[0].label;
            let name = figure.name;
            let sentence =
                format!("{name} of {} in {} is {by} in {base}", figure.of(), other.label);
            vec![format!("The largest difference: {sentence}.")]
        };
        let several = changes().count();
        let supported = changes().filter(|(_, _, found)| found.is_supported()).count();
        let (text, details) = match (largest(true), largest(false)) {
            (Some(found), _) => {
                let are = if supported == 1 { "is" } else { "are" };
                let differences = counted(several, "difference", "differences");
                (format!("{supported} of {differences} {are} more than chance"), words(found))
            }
            (None, Some(found)) if size(&found) > 0.0 => {
                let text = if self.can_support_any() {
                    "No difference that the laps support".to_owned()
                } else if self.has_no_noise() {
                    let differ = changes().filter(|change| size(change) > 0.0).count();
                    let figures = counted(several, "figure", "figures");
                    let verb = if differ == 1 { "differs" } else { "differ" };
                    format!("{differ} of {figures} {verb}: virtual time with one seed has no noise")
                } else if self.figures.iter().any(|figure| figure.copies.contains(&true)) {
                    "Laps in virtual time are copies, and say nothing of chance".to_owned()
                } else {
                    "Too few laps to tell a difference from chance".to_owned()
                };
                (text, words(found))
            }
            (None, Some(_)) => ("The figures are the same".to_owned(), Vec::new()),
            (None, None) => ("These runs have no figure in common".to_owned(), Vec::new()),
        };
        Headline { text, details }
    }

    /// Whether all runs had the same chances, and every figure tells of one draw of them.
    fn has_no_noise(&self) -> bool {
        let draws_alike = |other: &Contender<'_>| draw_alike(&self.contenders[0], other);
        let is_one =
            |figure: &Compared| (0..self.contenders.len()).all(|at| figure.lap_count(at) <= 1);
        self.contenders.iter().all(draws_alike) && self.figures.iter().all(is_one)
    }

    /// Whether a figure has laps enough for a difference to be more than chance, were they as far apart as can be.
    fn can_support_any(&self) -> bool {
        self.figures.iter().any(|figure| {
            let base = figure.lap_count(0);
            (1..figure.laps.len()).any(|at| can_support(base, figure.lap_count(at)))
        })
    }

    /// The figures that are worse by more than so many per cent, as far as the laps support it. Where there are too few
    /// laps to support anything, the medians alone decide. What the first run has and another one lacks is worse, but
    /// for single figures of an operation: it had too few requests for them, or they are counted otherwise there.
    pub fn worse_by(&self, percent: f64) -> Vec<Worse> {
        let mut found = Vec::new();
        for (at, other) in self.contenders.iter().enumerate().skip(1) {
            let mut add = |text: String| found.push(Worse { label: other.label.clone(), text });
            for figure in &self.figures {
                let (base, laps) = (figure.laps[0].len(), figure.laps[at].len());
                let Some(difference) = &figure.differences[at - 1] else {
                    if base > 0 && laps == 0 && self.is_missed(figure, at) {
                        add(format!("{} of {} is missing", figure.name, figure.of()));
                    }
                    continue;
                };
                let worse = figure.worse_percent(difference);
                let can = can_support(figure.lap_count(0), figure.lap_count(at));
                let decided = difference.is_supported() || !can;
                if worse > percent && decided {
                    let by = match worse.is_finite() {
                        true => format!("by {worse:.1} %"),
                        false => "from nothing".to_owned(),
                    };
                    add(format!("{} of {} is worse {by}", figure.name, figure.of()));
                }
            }
        }
        found
    }

    /// Whether a run counts as worse because it lacks a figure. It does not where it has other figures of the same
    /// operation, and a race of Rally does not where it lacks the operation.
    fn is_missed(&self, figure: &Compared, at: usize) -> bool {
        let is_of_rally = self.contenders[at].run.manifest.target == RALLY;
        figure.operation.is_none() || !(is_of_rally || has_others(&self.figures, figure, at))
    }
}

/// `A` to `Z`, then `A2`, ...
fn label(at: usize) -> String {
    let letter = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{}", round + 1),
    }
}

#[cfg(test)]
mod tests {
    use record::{LoadFigures, Manifest, Percentiles, Row, Status, Throughput};

    use super::figures::VIRTUAL;
    use super::*;

    fn run(seconds: &[f64], laps: impl Fn(f64, u32) -> Row) -> RunDir {
        let manifest = Manifest {
            plan: "p".to_owned(),
            target: "embedded".to_owned(),
            seed: 7,
            status: Status::Complete,
            ..Manifest::unknown("r", record::FORMAT)
        };
        let rows = seconds.iter().zip(1..).map(|(seconds, lap)| laps(*seconds, lap)).collect();
        RunDir { manifest, lines: Vec::new(), rows, damage: Vec::new() }
    }

    pub(super) fn recovery(seconds: &[f64]) -> RunDir {
        run(seconds, |seconds, lap| Row::measured("a", lap, seconds, 1_000_000))
    }

    pub(super) fn in_virtual_time(seconds: &[f64]) -> RunDir {
        let mut run = recovery(seconds);
        run.manifest.target = VIRTUAL.to_owned();
        run
    }

    fn load(latencies_ms: &[f64]) -> RunDir {
        run(latencies_ms, |p50_ms, lap| {
            let times = Percentiles { p50_ms, ..Percentiles::default() };
            let load = LoadFigures {
                operation: "term".to_owned(),
                requests: 10,
                seconds: 1.0,
                throughput: Throughput { median_per_s: 1e3 / p50_ms, ..Throughput::default() },
                latency: Some(times),
                service_time: Some(times),
                ..LoadFigures::default()
            };
            Row { loads: vec![load], ..Row::measured("a", lap, 1.0, 1) }
        })
    }

    #[test]
    fn a_slower_run_is_worse_and_a_faster_one_is_not() {
        let (a, b) =
            (recovery(&[10.0, 10.1, 10.2, 10.3, 10.4]), recovery(&[12.0, 12.1, 12.2, 12.3, 12.4]));
        let slower = Runs::of(&[&a, &b]);
        let worse = slower.worse_by(5.0);
        assert_eq!(worse.len(), 2, "time and rate: {worse:?}");
        assert!(worse[0].text.starts_with("time of a is worse by 19."), "{worse:?}");
        assert_eq!(slower.worse_by(25.0), []);
        let said = slower.headline();
        assert!(said.text.starts_with("2 of 2 differences"), "{said:?}");
        assert!(said.details[0].starts_with("The largest difference: time of a in B"), "{said:?}");
        assert_eq!(Runs::of(&[&b, &a]).worse_by(5.0), []);
    }

    #[test]
    fn laps_of_virtual_time_that_are_copies_count_as_one() {
        let of = in_virtual_time;
        let (a, b) = (of(&[10.0; 4]), of(&[12.0; 4]));
        let runs = Runs::of(&[&a, &b]);
        let found = runs.figures[0].differences[0].unwrap();
        assert_eq!((found.p, found.percent_interval), (None, None));
        let no_noise = "2 of 2 figures differ: virtual time with one seed has no noise";
        assert_eq!(runs.headline().text, no_noise);
        let mut other_seed = b.clone();
        other_seed.manifest.seed += 1;
        let copies = Runs::of(&[&a, &other_seed]).headline().text;
        assert_eq!(copies, "Laps in virtual time are copies, and say nothing of chance");
        let said = runs.remarks.join(" ");
        assert!(said.starts_with("Laps of A and B are copies of one: "), "{said}");
        assert!(!said.contains("--laps"), "more laps are more copies: {said}");
        assert_eq!(runs.worse_by(5.0).len(), 2, "the medians alone decide");
        // Laps that differ are laps, also in virtual time; and a real clock makes no copies.
        let drawn = (of(&[10.0, 10.1, 10.2, 10.3]), of(&[12.0, 12.1, 12.2, 12.3]));
        for (a, b) in [drawn, (recovery(&[10.0; 4]), recovery(&[12.0; 4]))] {
            let runs = Runs::of(&[&a, &b]);
            assert!(runs.figures[0].differences[0].unwrap().is_supported());
            assert_eq!(runs.remarks, [""; 0]);
        }
    }

    #[test]
    fn one_lap_of_virtual_time_with_one_seed_needs_no_more_laps() {
        let (a, b) = (in_virtual_time(&[10.0]), in_virtual_time(&[12.0]));
        let runs = Runs::of(&[&a, &b]);
        assert!(
            runs.headline().text.starts_with("2 of 2 figures differ: "),
            "{:?}",
            runs.headline()
        );
        let said = runs.remarks.join(" ");
        assert!(said.starts_with("A and B ran in virtual time with seed 7: "), "{said}");
        assert!(!said.contains("--laps"), "{said}");
        assert_eq!(Runs::of(&[&a, &a]).headline().text, "The figures are the same");
        // Twice the bytes in twice the time are the same rate.
        let mut twice = in_virtual_time(&[20.0]);
        twice.rows[0].bytes *= 2;
        twice.rows[0].bytes_per_s = a.rows[0].bytes_per_s;
        let said = Runs::of(&[&a, &twice]).headline().text;
        assert!(said.starts_with("1 of 2 figures differs: "), "{said}");
    }

    #[test]
    fn what_chance_may_have_done_is_not_worse() {
        let a = recovery(&[10.0, 14.0, 9.0, 13.0, 11.0]);
        let b = recovery(&[12.0, 10.5, 14.0, 11.5, 13.0]);
        let runs = Runs::of(&[&a, &b]);
        assert_eq!(runs.worse_by(5.0), []);
        assert!(runs.headline().text.starts_with("No difference that the laps support"));
    }

    #[test]
    fn a_difference_that_rounds_to_nothing_is_not_said_to_be_nothing() {
        let (a, b) = (recovery(&[10.0]), recovery(&[10.003]));
        let headline = Runs::of(&[&a, &b]).headline();
        let details = headline.details.join(" ");
        assert!(details.contains(" is less than 0.1 % worse than in "), "{details}");
    }

    #[test]
    fn with_one_lap_of_each_the_figures_decide_and_that_is_said() {
        let (a, b) = (recovery(&[10.0]), recovery(&[12.0]));
        let runs = Runs::of(&[&a, &b]);
        assert_eq!(runs.worse_by(5.0).len(), 2);
        assert!(runs.headline().text.starts_with("Too few laps to tell"), "{:?}", runs.headline());
        assert!(runs.remarks.iter().any(|said| said.contains("--laps 5")), "{:?}", runs.remarks);
        assert_eq!(runs.figures[0].differences[0].unwrap().p, None);
    }

    #[test]
    fn a_load_is_compared_by_operation_and_service_time_where_it_says_more() {
        let (a, b) = (load(&[1.0, 1.1, 1.2, 1.3]), load(&[2.0, 2.1, 2.2, 2.3]));
        let runs = Runs::of(&[&a, &b]);
        let names: Vec<&str> = runs.figures.iter().map(|figure| figure.name).collect();
        assert!(names.contains(&"50th percentile latency"), "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with("service time")), "{names:?}");
        assert_eq!(runs.figures[0].of(), "a, term");
        let worse: Vec<String> = runs.worse_by(5.0).into_iter().map(|worse| worse.text).collect();
        assert!(worse.iter().any(|text| text.starts_with("Median Throughput")), "{worse:?}");
    }

    #[test]
    fn what_one_run_lacks_is_said_and_counts_as_worse() {
        let (a, mut b) = (recovery(&[10.0; 5]), recovery(&[]));
        b.manifest.status = Status::Failed;
        b.manifest.target = "virtual".to_owned();
        let runs = Runs::of(&[&a, &b]);
        assert!(!runs.has_common_figures());
        assert_eq!(runs.worse_by(5.0)[0].text, "time of a is missing");
        let said = runs.remarks.join(" ");
        assert!(
            said.contains("B failed") && said.contains("target embedded and virtual"),
            "{said}"
        );
        assert!(said.contains("In A and not in B: a."), "{said}");
    }

    #[test]
    fn a_figure_that_needs_more_requests_is_no_loss_and_an_operation_is_one() {
        let of = |requests: u64| {
            let mut run = load(&[1.0; 4]);
            run.rows.iter_mut().for_each(|row| row.loads[0].requests = requests);
            run
        };
        let (many, few) = (of(100), of(99));
        let runs = Runs::of(&[&many, &few]);
        assert_eq!(runs.worse_by(5.0), []);
        let said = runs.remarks.join(" ");
        assert!(said.contains("In A and not in B: 99th percentile latency of a, term."), "{said}");
        let mut other = of(100);
        other.rows.iter_mut().for_each(|row| row.loads[0].operation = "phrase".to_owned());
        let worse = Runs::of(&[&many, &other]).worse_by(5.0);
        assert!(worse[0].text.ends_with("of a, term is missing"), "{worse:?}");
        other.manifest.target = RALLY.to_owned();
        let runs = Runs::of(&[&many, &other]);
        assert_eq!(runs.worse_by(5.0), [], "Rally leaves administration out");
        assert!(runs.remarks.contains(&"In A and not in B: a, term.".to_owned()));
    }

    #[test]
    fn the_only_request_of_a_lap_is_compared_by_its_time() {
        let of = |p100_ms: f64| {
            let mut run = load(&[1.0; 4]);
            for row in &mut run.rows {
                row.loads[0].requests = 1;
                row.loads[0].latency = Some(Percentiles { p100_ms, ..Percentiles::default() });
            }
            run
        };
        let worse = Runs::of(&[&of(100.0), &of(200.0)]).worse_by(5.0);
        let said: Vec<&str> = worse.iter().map(|worse| worse.text.as_str()).collect();
        assert_eq!(said, ["100th percentile latency of a, term is worse by 100.0 %"]);
    }

    #[test]
    fn errors_that_appear_are_worse_than_none() {
        let a = load(&[1.0; 4]);
        let mut b = load(&[1.0; 4]);
        for row in &mut b.rows {
            row.loads[0].errors.insert("timeout".to_owned(), 1);
        }
        let worse = Runs::of(&[&a, &b]).worse_by(5.0);
        assert_eq!(worse.len(), 1);
        assert_eq!(worse[0].text, "error rate of a, term is worse from nothing");
    }
}
