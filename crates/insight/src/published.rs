//! Published figures beside ours, over several runs.

use record::Limit;

use crate::load::{Metric, change_of, figures};
use crate::stats;
use crate::summary::Summary;
use crate::variant::{Finished, Variant, VariantLoad};

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
    /// Words alone: nothing to compute an error from. Ours is in seconds.
    Words,
}

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
    /// Ours; none where the variant did not finish.
    pub ours: Option<f64>,
    /// Whether the virtual world was fitted to this row.
    pub calibrated: bool,
    /// What held ours.
    pub held_by: Option<Limit>,
    /// Why, and what would be next.
    pub verdict: Option<String>,
}

impl Comparison {
    /// Whether it is of a load's throughput or latencies, not of a recovery.
    pub fn is_of_load(&self) -> bool {
        matches!(self.figure, Figure::Load(..) | Figure::Change(_))
    }

    /// Ours over the published figure, minus one: 0.1 is 10 % too much. For changes the difference between both: 0.1 is
    /// 10 percentage points.
    pub fn error(&self) -> Option<f64> {
        if let Figure::Change(_) = self.figure {
            return Some((self.ours? - self.published?) / 100.0);
        }
        Some(self.ours? / self.published.filter(|published| *published > 0.0)? - 1.0)
    }

    /// The variant, and the figure where a variant has several.
    pub fn name(&self) -> String {
        match self.figure {
            Figure::Load(metric, _) | Figure::Change(metric) => {
                format!("{}, {}", self.variant, metric.to_lowercase())
            }
            _ => self.variant.clone(),
        }
    }

    /// How many times the larger of both is the smaller.
    fn factor(&self) -> Option<f64> {
        let ratio = 1.0 + self.error()?;
        Some(if ratio > 0.0 { ratio.max(1.0 / ratio) } else { f64::INFINITY })
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
            ours,
            calibrated: published.calibrated,
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
            let ours = node_rate(variant);
            rows.push(comparison(Figure::NodeBytesPerS, Some(number), ours));
        }
        if info.published_s.is_none() && published.node_bytes_per_s.is_none() {
            rows.push(comparison(Figure::Words, None, seconds));
        }
    }
    rows
}

/// The figures that loads are compared by: those of a variant itself, or what they change beside the variant that it is
/// compared with.
fn of_loads(
    summary: &Summary<'_>,
    variant: &str,
    comparison: impl Fn(Figure, f64, Option<f64>) -> Comparison,
) -> Vec<Comparison> {
    let info = |name: &str| summary.manifest.variants.iter().find(|info| info.name == name);
    let published = |name: &str, metric: &Metric| {
        info(name)?.published.as_ref()?.load.get(metric.name).copied()
    };
    let load = |name: &str| summary.loads.iter().find(|load| load.variant == name);
    let baseline = info(variant).and_then(|info| info.baseline.as_deref());
    let mut rows = Vec::new();
    for metric in crate::load::compared() {
        let Some(own) = published(variant, metric) else { continue };
        match baseline.map(|base| (published(base, metric), load(base))) {
            None => {
                let ours = load(variant).and_then(|load| total(load, metric));
                rows.push(comparison(Figure::Load(metric.name, metric.unit), own, ours));
            }
            Some((Some(base), base_load)) if base > 0.0 => {
                let laps = |load: &VariantLoad| load.laps.clone();
                let both = base_load.map(laps).zip(load(variant).map(laps));
                let ours = both.and_then(|(base, own)| change_of(metric, &base, &own, 0));
                let percent = (own / base - 1.0) * 100.0;
                rows.push(comparison(
                    Figure::Change(metric.name),
                    percent,
                    ours.map(|change| change.percent),
                ));
            }
            Some(_) => {}
        }
    }
    rows
}

fn total(load: &VariantLoad, metric: &Metric) -> Option<f64> {
    figures(&load.laps).iter().find(|figure| figure.metric.name == metric.name)?.total
}

fn node_rate(variant: &Variant) -> Option<f64> {
    variant.finished().and_then(|figures: &Finished| figures.node_bytes_per_s)
}

/// How well the predicted rows are met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Rows that were predicted and have a number.
    pub predicted: usize,
    /// Rows that were calibrated on.
    pub calibrated: usize,
    /// Median of the absolute errors of the predicted rows.
    pub median_error: Option<f64>,
    /// The predicted row that is furthest off, and its factor: 2 is twice or half.
    pub worst: Option<(String, String, f64)>,
    /// Changes that were predicted; they are not counted in `predicted`.
    pub changes: usize,
    /// Median of their absolute errors; 0.1 is 10 percentage points.
    pub median_change_error: Option<f64>,
    /// The change that is furthest off, and its error.
    pub worst_change: Option<(String, String, f64)>,
}

/// Judges the predicted rows. A row whose variant did not finish has no error and is left out.
pub fn standing(rows: &[Comparison]) -> Standing {
    let is_change = |row: &&Comparison| matches!(row.figure, Figure::Change(_));
    let with_error = |row: &&Comparison| row.error().is_some() && !is_change(row);
    let predicted: Vec<&Comparison> =
        rows.iter().filter(|row| !row.calibrated).filter(with_error).collect();
    let errors: Vec<f64> = predicted.iter().filter_map(|row| row.error()).map(f64::abs).collect();
    let changes: Vec<(&Comparison, f64)> = rows
        .iter()
        .filter(|row| is_change(row) && !row.calibrated)
        .filter_map(|row| Some((row, row.error()?)))
        .collect();
    let change_errors: Vec<f64> = changes.iter().map(|(_, error)| error.abs()).collect();
    let worst_change = changes.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let worst = predicted
        .iter()
        .filter_map(|row| Some((row, row.factor()?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    Standing {
        predicted: predicted.len(),
        calibrated: rows.iter().filter(|row| row.calibrated).filter(with_error).count(),
        median_error: stats::median(&errors),
        worst: worst.map(|(row, factor)| (row.plan.clone(), row.name(), factor)),
        changes: changes.len(),
        median_change_error: stats::median(&change_errors),
        worst_change: worst_change.map(|(row, error)| (row.plan.clone(), row.name(), *error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(published: f64, ours: f64, calibrated: bool) -> Comparison {
        Comparison {
            plan: "p".to_owned(),
            variant: format!("{published}"),
            figure: Figure::Seconds,
            published: Some(published),
            text: published.to_string(),
            ours: Some(ours),
            calibrated,
            held_by: None,
            verdict: None,
        }
    }

    #[test]
    fn only_predicted_rows_are_judged() {
        let rows = [
            row(100.0, 110.0, false),
            row(200.0, 100.0, false),
            row(300.0, 270.0, false),
            row(400.0, 4000.0, true),
            Comparison { ours: None, ..row(500.0, 0.0, false) },
            Comparison { published: None, figure: Figure::Words, ..row(600.0, 1.0, false) },
            Comparison { figure: Figure::Change("p"), ..row(-20.0, -27.0, false) },
            Comparison { figure: Figure::Change("p"), ..row(100.0, 140.0, false) },
        ];
        let standing = standing(&rows);
        assert_eq!((standing.predicted, standing.calibrated), (3, 1));
        assert!((standing.median_error.unwrap() - 0.1).abs() < 1e-9);
        let (_, variant, factor) = standing.worst.unwrap();
        assert_eq!((variant.as_str(), factor), ("200", 2.0));
        // Of changes the difference counts, in percentage points.
        assert_eq!(standing.changes, 2);
        assert!((standing.median_change_error.unwrap() - 0.235).abs() < 1e-9);
        let (_, variant, error) = standing.worst_change.unwrap();
        assert_eq!((variant.as_str(), error), ("100, p", 0.4));
    }

    #[test]
    fn nothing_predicted_is_no_error() {
        assert_eq!(standing(&[]), Standing::default());
    }
}
