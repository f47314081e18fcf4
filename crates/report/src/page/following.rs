//! Plans that follow on the page: the table of waits, what the checker found, and the lag over time.

use insight::{Curves, Summary};
use maud::{Markup, html};
use record::units;

use super::charts::{INDEXED, LAG, SERIES, panels};
use crate::following::{COLUMNS, found, rows};

/// Everything that was measured of following.
pub(super) fn section(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    html! {
        section {
            h2 { "How the follower caught up" }
            div.scroll tabindex="0" role="region" aria-label="Table of waits" { table {
                thead { tr { @for (header, is_number) in COLUMNS { th.n[is_number] scope="col" { (header) } } } }
                tbody { @for row in rows(&summary.following) { tr {
                    @for (n, (cell, (_, is_number))) in row.iter().zip(COLUMNS).enumerate() {
                        @if n == 0 { th scope="row" title=(cell) { (cell) } } @else { td.n[is_number] { (cell) } }
                    }
                } } }
            } }
            @for (is_well, text) in found(&summary.following) {
                @if is_well { p { (text) } } @else { p { b { (text) } } }
            }
        }
        section {
            h2 { "How far behind the follower was" }
            p.hint {
                "Operations that the driver was told are done on the leader, and that not every copy of the follower had."
            }
            @for (number, curves) in overlaid(curves).iter().enumerate() {
                @if curves.len() == 1 { h3 { (curves[0].variant) } }
                (caught_up(curves))
                (panels(&format!("-{number}"), curves, &[INDEXED, LAG]))
            }
        }
    }
}

/// The curves that lie over each other: all, unless they are too many to be told apart.
fn overlaid(curves: &[Curves]) -> Vec<Vec<&Curves>> {
    let drawn: Vec<&Curves> = curves.iter().filter(|curve| curve.lag.len() > 1).collect();
    match drawn.len() {
        0 => Vec::new(),
        count if count <= SERIES.len() => vec![drawn],
        _ => drawn.into_iter().map(|curve| vec![curve]).collect(),
    }
}

/// When the follower had caught up, where it was waited for: what is marked from top to bottom.
fn caught_up(curves: &[&Curves]) -> Markup {
    let drawn = curves.iter().filter(|curve| !curve.caught_up_s.is_empty());
    let told = drawn.map(|curve| {
        let times = curve.caught_up_s.iter().map(|at_s| units::show_seconds(*at_s));
        format!("{} after {}", curve.variant, times.collect::<Vec<_>>().join(", "))
    });
    let told: Vec<String> = told.collect();
    html! {
        @if !told.is_empty() { p.hint { "Vertical lines: the follower had caught up. " (told.join("; ")) "." } }
    }
}
