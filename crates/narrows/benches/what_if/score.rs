//! How well all of it was predicted, kind by kind.

use testbed::bench::Table;

use super::case::Kind;

const TABLE: Table = Table {
    page: "what_if",
    name: "kinds",
    columns: &[
        "kind", "cases", "within 10 %", "within 20 %", "in the interval", "median error",
        "nine of ten within",
    ],
};

/// What came of a case.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub kind: Kind,
    /// By how much the prediction differs from what was measured, as a share of that; infinite without an answer.
    pub error: f64,
    pub is_in_interval: bool,
}

/// Writes the table.
pub fn tell(all: &[Outcome]) {
    TABLE.begin();
    for kind in Kind::ALL {
        let of_kind: Vec<Outcome> = all.iter().filter(|one| one.kind == kind).copied().collect();
        if !of_kind.is_empty() {
            row(kind.words(), &of_kind);
        }
    }
    row("all", all);
}

fn row(name: &str, outcomes: &[Outcome]) {
    let mut errors: Vec<f64> = outcomes.iter().map(|one| one.error.abs()).collect();
    errors.sort_by(f64::total_cmp);
    let within = |most: f64| errors.iter().filter(|error| **error <= most).count().to_string();
    // The least error that so large a share of the cases is within.
    let at = |share: f64| {
        let rank = (errors.len() as f64 * share).ceil() as usize;
        format!("{:.1} %", errors[rank.max(1) - 1] * 100.0)
    };
    TABLE.row(&[
        name.to_owned(),
        outcomes.len().to_string(),
        within(0.1),
        within(0.2),
        outcomes.iter().filter(|one| one.is_in_interval).count().to_string(),
        at(0.5),
        at(0.9),
    ]);
}
