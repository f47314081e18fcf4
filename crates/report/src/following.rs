//! Plans that follow, for a terminal: how far behind the follower was, how it caught up, and what the checker found.

use insight::{Summary, VariantFollow, follow, words};
use record::{CatchUp, FollowFigures, units};
use serde_json::{Value, json};

use crate::grid::{dash, grid, painted};
use crate::style::{Paint, Style, paragraph, plain};

/// Headers of the table, and whether a column is of numbers.
pub(crate) const COLUMNS: [(&str, bool); 6] = [
    ("variant", false),
    ("after", false),
    ("lacked", true),
    ("behind", true),
    ("caught up in", true),
    ("of real time", true),
];

/// A line for each wait of each lap.
pub(crate) fn rows(variants: &[VariantFollow]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for variant in variants {
        for wait in variant.laps.iter().flat_map(follow::waits) {
            rows.push(vec![
                variant.variant.clone(),
                wait.after.clone(),
                words::count(wait.lag_operations),
                units::show_seconds(wait.lag_s),
                units::show_seconds(wait.seconds),
                of_real_time(wait),
            ]);
        }
    }
    rows
}

/// The pace of following, which is none of the files before.
fn of_real_time(wait: &CatchUp) -> String {
    let Some(speed) = wait.speed().map(words::gain) else { return dash() };
    if follow::has_copied(wait) { format!("{speed} after files") } else { speed }
}

/// What the checker found in each lap, a sentence each; whether all is well.
pub(crate) fn found(variants: &[VariantFollow]) -> Vec<(bool, String)> {
    let one = |variant: &str, lap: &FollowFigures| {
        let mut said = Vec::new();
        if let Some(lived) = follow::lived_through(lap) {
            said.push((true, format!("{variant}: {lived}.")));
        }
        said.push((lap.violations == 0, format!("{variant}: {}.", follow::verified(lap))));
        said.extend(lap.violations_shown.iter().map(|text| (false, text.clone())));
        said
    };
    let laps = variants.iter().flat_map(|v| v.laps.iter().map(|lap| (v.variant.as_str(), lap)));
    laps.flat_map(|(variant, lap)| one(variant, lap)).collect()
}

/// A run that follows.
pub(crate) fn of_run(summary: &Summary<'_>, style: Style) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(painted(grid(COLUMNS, rows(&summary.following)), style));
    lines.push(String::new());
    for (is_well, text) in found(&summary.following) {
        let paint = (!is_well).then_some(Paint::Warning);
        lines.push(paragraph(style, paint, &plain(&text), 2));
    }
    lines
}

/// One object a variant: `variant`, `laps` as they were measured, and `met`, where follower and leader met: `seconds`
/// since the variant began, and `operations` that both had.
pub(crate) fn json(variants: &[VariantFollow]) -> Value {
    let one = |variant: &VariantFollow| {
        let met =
            variant.met.map(|met| json!({ "seconds": met.seconds, "operations": met.operations }));
        json!({ "variant": variant.variant, "laps": variant.laps, "met": met })
    };
    variants.iter().map(one).collect()
}
