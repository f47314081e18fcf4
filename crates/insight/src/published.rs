//! Published figures beside ours, over several runs.

use record::{Kind, Limit, RunDir};

use crate::load::{METRICS, change_of, total};
use crate::stats::{self, Interval};
use crate::summary::Summary;
use crate::trace;

/// What kind of figure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Seconds of the whole recovery.
    Seconds,
    /// Bytes a second of a node.
    NodeBytesPerS,
    /// A figure of a load: its name and its unit.
    Load(&'static str, &'static str),
    /// The change of such a figure, by its name, against the baseline variant, in per cent. Its error is in percentage
    /// points.
    Change(&'static str),
    /// A figure of a load that stands beside the published one and has no error: see [`BESIDE`].
    Beside(&'static str, &'static str),
    /// Words alone: nothing to compute an error from. Ours is in seconds.
    Words,
}

/// Figures of loads that are shown beside the published ones and judged by no error: an extreme depends on how many
/// searches were sent, and errors are none of the virtual world's.
pub const BESIDE: [&str; 5] = [
    "Min Throughput", "Max Throughput", "99.9th percentile latency", "100th percentile latency",
    "error rate",
];

/// One published figure and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Plan.
    pub plan: String,
    /// Variant.
    pub variant: String,
    /// What is compared.
    pub figure: Figure,
    /// The published number; none for words.
    pub published: Option<f64>,
    /// The published figure as it is printed.
    pub text: String,
    /// The lowest and the highest of the published number over its laps, where these are published.
    pub laps: Option<Interval>,
    /// Ours; none where the variant did not finish.
    pub ours: Option<f64>,
    /// Lowest and highest of ours over the seeds that were drawn; none where one was, or all were the same.
    pub range: Option<Interval>,
    /// What ours is worth.
    pub kind: Kind,
    /// What held ours.
    pub held_by: Option<Limit>,
    /// Why, and what would be next.
    pub verdict: Option<String>,
}

impl Comparison {
    /// Whether it is of a load's throughput or latencies, not of a recovery.
    pub fn is_of_load(&self) -> bool {
        matches!(self.figure, Figure::Load(..) | Figure::Change(_) | Figure::Beside(..))
    }

    /// Whether it only stands beside the published figure: see [`BESIDE`].
    pub fn is_beside(&self) -> bool {
        matches!(self.figure, Figure::Beside(..))
    }

    /// Ours over the published figure, minus one: 0.1 is 10 % too much. For changes the difference between both: 0.1 is
    /// 10 percentage points.
    pub fn error(&self) -> Option<f64> {
        match self.figure {
            Figure::Change(_) => Some((self.ours? - self.published?) / 100.0),
            Figure::Beside(..) => None,
            _ => Some(self.ours? / self.published.filter(|published| *published > 0.0)? - 1.0),
        }
    }

    /// The variant, and the figure where a variant has several.
    pub fn name(&self) -> String {
        match self.figure {
            Figure::Load(metric, _) | Figure::Change(metric) | Figure::Beside(metric, _) => {
                format!("{}, {}", self.variant, metric.to_lowercase())
            }
            _ => self.variant.clone(),
        }
    }

    /// Whether the published figure lies within the range that was drawn.
    pub fn is_within_range(&self) -> bool {
        let inside =
            |range: Interval| self.published.is_some_and(|p| range.low <= p && p <= range.high);
        self.range.is_some_and(inside)
    }

    /// How far off it is: of a figure, how many times the larger of both is the smaller; of a change, the points
    /// between.
    fn distance(&self) -> f64 {
        match (self.figure, self.error()) {
            (_, None) => 0.0,
            (Figure::Change(_), Some(error)) => error.abs(),
            (_, Some(error)) if error > -1.0 => (1.0 + error).max(1.0 / (1.0 + error)),
            _ => f64::INFINITY,
        }
    }
}

/// Every published figure of a run's variants, in the order of the plan.
pub fn comparisons(summary: &Summary<'_>) -> Vec<Comparison> {
    let manifest = summary.manifest;
    let mut rows = Vec::new();
    for info in &manifest.variants {
        let Some(published) = &info.published else { continue };
        let Some(variant) = summary.variants.iter().find(|v| v.name == info.name) else { continue };
        let comparison = |figure, published_number, ours: Option<f64>| Comparison {
            plan: manifest.plan.clone(),
            variant: variant.name.clone(),
            figure,
            published: published_number,
            text: published.text.clone(),
            laps: None,
            ours,
            range: None,
            kind: published.kind,
            held_by: variant.finished().and_then(|f| f.verdict.limit),
            verdict: variant.finished().map(|f| f.verdict.text.clone()),
        };
        if !published.load.is_empty() {
            rows.extend(of_loads(summary, &variant.name, |figure, published, ours| {
                comparison(figure, Some(published), ours)
            }));
            continue;
        }
        let seconds = variant.finished().map(|figures| figures.seconds);
        if let Some(number) = info.published_s {
            rows.push(comparison(Figure::Seconds, Some(number), seconds));
        }
        if let Some(number) = published.node_bytes_per_s {
            let ours = variant.finished().and_then(|figures| figures.node_bytes_per_s);
            rows.push(comparison(Figure::NodeBytesPerS, Some(number), ours));
        }
        if info.published_s.is_none() && published.node_bytes_per_s.is_none() {
            rows.push(comparison(Figure::Words, None, seconds));
        }
    }
    rows
}

/// The figures that loads are compared by: those of a variant itself, or what they change beside the variant that it is
/// compared with; after them those that only stand beside each other.
fn of_loads(
    summary: &Summary<'_>,
    variant: &str,
    comparison: impl Fn(Figure, f64, Option<f64>) -> Comparison,
) -> Vec<Comparison> {
    let info = |name: &str| summary.manifest.variants.iter().find(|info| info.name == name);
    let load = |name: &str| summary.loads.iter().find(|load| load.variant == name);
    let baseline = info(variant).and_then(|info| info.baseline.as_deref());
    let mut rows = Vec::new();
    for metric in crate::load::compared() {
        let Some(own) = summary.published_load(variant, metric) else { continue };
        match baseline.map(|base| (summary.published_load(base, metric), load(base))) {
            None => {
                let ours = load(variant).and_then(|load| total(&load.laps, metric.name));
                rows.push(comparison(Figure::Load(metric.name, metric.unit), own, ours));
            }
            Some((Some(base), base_load)) if base > 0.0 => {
                let both = base_load.zip(load(variant));
                let ours = both.and_then(|(base, own)| change_of(metric, &base.laps, &own.laps, 0));
                let ours = ours.map(|change| change.percent);
                let percent = (own / base - 1.0) * 100.0;
                rows.push(comparison(Figure::Change(metric.name), percent, ours));
            }
            Some(_) => {}
        }
    }
    for metric in METRICS.iter().filter(|metric| BESIDE.contains(&metric.name)) {
        if let Some(own) = summary.published_load(variant, metric) {
            let ours = load(variant).and_then(|load| total(&load.laps, metric.name));
            rows.push(comparison(Figure::Beside(metric.name, metric.unit), own, ours));
        }
    }
    rows
}

/// The same rows of several seeds as one: the median of ours with its range, and the verdict of the seed that is
/// nearest to it. Every seed has the same rows.
pub fn over_seeds(seeds: &[Vec<Comparison>]) -> Vec<Comparison> {
    let Some(first) = seeds.first() else { return Vec::new() };
    let merged = |(at, row): (usize, &Comparison)| {
        let drawn: Vec<&Comparison> = seeds.iter().filter_map(|rows| rows.get(at)).collect();
        let ours: Vec<f64> = drawn.iter().filter_map(|row| row.ours).collect();
        let Some(median) = stats::median(&ours) else { return row.clone() };
        let off = |row: &Comparison| row.ours.map_or(f64::INFINITY, |ours| (ours - median).abs());
        let nearest = drawn.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        Comparison { ours: Some(median), range: range(&ours), ..(*nearest.unwrap_or(&row)).clone() }
    };
    first.iter().enumerate().map(merged).collect()
}

/// Lowest and highest, if they differ.
fn range(values: &[f64]) -> Option<Interval> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    (low < high).then_some(Interval { low, high })
}

/// How well rows of one kind are met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// How many have a number of ours beside a published one.
    pub rows: usize,
    /// Median of the absolute errors; of changes 0.1 is 10 percentage points.
    pub median_error: Option<f64>,
    /// The row that is furthest off, and its error.
    pub worst: Option<(String, f64)>,
    /// Published figures that lie within the range that was drawn.
    pub within_range: usize,
}

/// Judges rows. A row whose variant did not finish has no error and is left out.
pub fn standing<'a>(rows: impl Iterator<Item = &'a Comparison>) -> Standing {
    let with_error: Vec<(&Comparison, f64)> =
        rows.filter_map(|row| Some((row, row.error()?))).collect();
    let errors: Vec<f64> = with_error.iter().map(|(_, error)| error.abs()).collect();
    let worst = with_error.iter().max_by(|a, b| a.0.distance().total_cmp(&b.0.distance()));
    Standing {
        rows: with_error.len(),
        median_error: stats::median(&errors),
        worst: worst.map(|(row, error)| (row.name(), *error)),
        within_range: with_error.iter().filter(|(row, _)| row.is_within_range()).count(),
    }
}

/// How many shards were recovered `seconds` after a variant began; none where its recoveries left no samples until
/// then.
pub fn shards_done(run: &RunDir, variant: &str, seconds: f64) -> Option<u32> {
    let traces = trace::traces(run);
    let trace = traces.get(&(variant, 1))?;
    let (begins_ms, _) = trace.span_ms()?;
    let until = begins_ms + seconds * 1e3;
    trace.recovery.last().filter(|(t_ms, _)| *t_ms >= until)?;
    let at = trace.recovery.iter().take_while(|(t_ms, _)| *t_ms <= until).last();
    Some(at.and_then(|(_, sample)| sample.stages.get("DONE").copied()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(published: f64, ours: f64) -> Comparison {
        Comparison {
            plan: "p".to_owned(),
            variant: format!("{published}"),
            figure: Figure::Seconds,
            published: Some(published),
            text: published.to_string(),
            laps: None,
            ours: Some(ours),
            range: None,
            kind: Kind::Predicted,
            held_by: None,
            verdict: None,
        }
    }

    #[test]
    fn rows_are_judged_by_their_errors() {
        let rows = [
            row(100.0, 110.0),
            row(200.0, 100.0),
            row(300.0, 270.0),
            Comparison { ours: None, ..row(500.0, 0.0) },
            Comparison { published: None, figure: Figure::Words, ..row(600.0, 1.0) },
        ];
        let judged = standing(rows.iter());
        assert_eq!(judged.rows, 3);
        assert!((judged.median_error.unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(judged.worst, Some(("200".to_owned(), -0.5)));
        // Of changes the difference counts, in percentage points.
        let changes = [(-20.0, -27.0), (100.0, 140.0)].map(|(published, ours)| Comparison {
            figure: Figure::Change("p"),
            ..row(published, ours)
        });
        let judged = standing(changes.iter());
        assert!((judged.median_error.unwrap() - 0.235).abs() < 1e-9);
        assert_eq!(judged.worst, Some(("100, p".to_owned(), 0.4)));
        assert_eq!(standing([].iter()), Standing::default());
    }

    #[test]
    fn seeds_become_their_median_and_its_range() {
        let seed = |ours: f64, held_by| {
            vec![Comparison { held_by: Some(held_by), ..row(100.0, ours) }, row(50.0, 60.0)]
        };
        let seeds =
            [seed(80.0, Limit::Cpu), seed(90.0, Limit::Latency), seed(120.0, Limit::Throttle)];
        let rows = over_seeds(&seeds);
        assert_eq!((rows[0].ours, rows[0].held_by), (Some(90.0), Some(Limit::Latency)));
        assert_eq!(rows[0].range, Some(Interval { low: 80.0, high: 120.0 }));
        assert!(rows[0].is_within_range());
        assert_eq!((rows[1].ours, rows[1].range), (Some(60.0), None), "nothing was drawn");
        assert!(!rows[1].is_within_range());
        assert!(!Comparison { published: Some(79.0), ..rows[0].clone() }.is_within_range());
        assert_eq!(standing(rows.iter()).within_range, 1);
        assert_eq!(over_seeds(&[]), []);
    }
}
