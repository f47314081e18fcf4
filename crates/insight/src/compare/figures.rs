//! The figures that several runs have, lap by lap.

use record::RunDir;

use crate::difference::{Better, Difference};
use crate::lap_figures::values;
use crate::stats::median;
use crate::summary::Summary;

/// The target whose clock is simulated.
pub(super) const VIRTUAL: &str = "virtual";

/// Laps that differ by less than this share of the first are the same: times are rounded to milliseconds.
const ALIKE: f64 = 1e-3;

/// A run among those that are compared.
#[derive(Clone, Debug)]
pub struct Contender<'a> {
    /// `A`, `B`, ...
    pub label: String,
    /// Its record.
    pub run: &'a RunDir,
    /// What it amounts to.
    pub summary: Summary<'a>,
}

/// A figure of all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The variant.
    pub variant: String,
    /// The operation, where it is a figure of a load.
    pub operation: Option<String>,
    /// Its name: `time`, `50th percentile latency`.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which of two is the better one.
    pub better: Better,
    /// Each lap of each run, in the order of the runs; empty where a run does not have the figure.
    pub laps: Vec<Vec<f64>>,
    /// By run, whether its laps are copies of one: virtual time repeats a lap that has no chance in it, which supports
    /// no more than the one does.
    pub copies: Vec<bool>,
    /// From the first run to each of the others; none where one of the two does not have the figure.
    pub differences: Vec<Option<Difference>>,
}

impl Compared {
    /// What the figure is of: the variant, and the operation where it has another name.
    pub fn of(&self) -> String {
        match &self.operation {
            Some(operation) if *operation != self.variant => {
                format!("{}, {operation}", self.variant)
            }
            _ => self.variant.clone(),
        }
    }

    /// Whether it is of the same operation of the same variant.
    fn is_beside(&self, other: &Compared) -> bool {
        (&self.variant, &self.operation) == (&other.variant, &other.operation)
    }

    /// The median over the laps of a run, by its number.
    pub fn median_of(&self, run: usize) -> Option<f64> {
        median(&self.laps[run])
    }

    /// How many laps of a run tell something of chance: copies are one.
    pub(super) fn lap_count(&self, run: usize) -> usize {
        if self.copies[run] { 1 } else { self.laps[run].len() }
    }

    /// By how many per cent it is worse than in the first run; infinite where it was nothing there, negative where it
    /// is better.
    pub fn worse_percent(&self, difference: &Difference) -> f64 {
        let percent = difference.percent.unwrap_or(f64::INFINITY);
        match self.better {
            Better::Less => percent,
            Better::More => -percent,
        }
    }
}

/// Whether two runs were in virtual time with one seed: the same plan would have the same figures, lap by lap.
pub(super) fn draw_alike(one: &Contender<'_>, other: &Contender<'_>) -> bool {
    let (one, other) = (&one.run.manifest, &other.run.manifest);
    one.target == VIRTUAL && other.target == VIRTUAL && one.seed == other.seed
}

/// Whether a run has figures of the same operation of the same variant.
pub(super) fn has_others(figures: &[Compared], of: &Compared, at: usize) -> bool {
    figures.iter().any(|figure| figure.is_beside(of) && !figure.laps[at].is_empty())
}

/// The figures of all contenders, in the order of the first.
pub(super) fn figures(contenders: &[Contender<'_>]) -> Vec<Compared> {
    let mut figures: Vec<Compared> = Vec::new();
    for (at, contender) in contenders.iter().enumerate() {
        for row in &contender.run.rows {
            for value in values(row) {
                let same = |figure: &&mut Compared| {
                    figure.variant == value.variant
                        && figure.operation == value.operation
                        && figure.name == value.name
                };
                let place = match figures.iter_mut().find(same) {
                    Some(figure) => figure,
                    None => {
                        figures.push(Compared {
                            variant: value.variant,
                            operation: value.operation,
                            name: value.name,
                            unit: value.unit,
                            better: value.better,
                            laps: vec![Vec::new(); contenders.len()],
                            copies: Vec::new(),
                            differences: Vec::new(),
                        });
                        figures.last_mut().expect("it was just added")
                    }
                };
                place.laps[at].push(value.value);
            }
        }
    }
    let seed = contenders.first().map_or(0, |contender| contender.run.manifest.seed);
    let copies: Vec<Vec<bool>> =
        figures.iter().map(|figure| copies(contenders, &figures, &figure.variant)).collect();
    for (figure, copies) in figures.iter_mut().zip(copies) {
        figure.copies = copies;
        let between = |at: usize| {
            let found = Difference::between(&figure.laps[0], &figure.laps[at], seed)?;
            Some(match figure.copies[0] || figure.copies[at] {
                true => Difference { percent_interval: None, p: None, ..found },
                false => found,
            })
        };
        figure.differences = (1..figure.laps.len()).map(between).collect();
    }
    figures
}

/// By run, whether the laps of a variant are copies of one: it ran in virtual time, and no figure of it differs.
fn copies(contenders: &[Contender<'_>], figures: &[Compared], variant: &str) -> Vec<bool> {
    let of_run = |(at, contender): (usize, &Contender<'_>)| {
        let own = figures.iter().filter(|figure| figure.variant == variant);
        let several =
            || own.clone().map(move |figure| &figure.laps[at]).filter(|laps| laps.len() > 1);
        contender.run.manifest.target == VIRTUAL
            && several().next().is_some()
            && several().all(|laps| laps.iter().all(|lap| is_alike(*lap, laps[0])))
    };
    contenders.iter().enumerate().map(of_run).collect()
}

fn is_alike(lap: f64, first: f64) -> bool {
    (lap - first).abs() <= first.abs() * ALIKE
}
