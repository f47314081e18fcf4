//! Plans that follow on the page: the table of waits, what the checker found, and the lag over time.

use insight::words::{self, unbroken};
use insight::{Curves, Point, Summary};
use maud::{Markup, html};
use record::units;

use super::charts::{INDEXED_HINT, LAG, Panel, RECOVERED, SERIES, count_unit, indexing, panels};
use crate::following::{COLUMNS, found, rows};

const OPERATIONS: Panel = Panel {
    leader: Some(leader_operations),
    ..Panel::of(
        "operations",
        "Operations of the leader and of the follower",
        |curve| &curve.follower_operations,
        count_unit,
    )
};

fn leader_operations(curves: &Curves) -> &[Point] {
    &curves.leader_operations
}

/// Everything that was measured of following.
pub(super) fn section(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    html! {
        @if !summary.following.is_empty() { section {
            h2 { "How the follower caught up" }
            p.hint {
                "What it lacked when each wait began, in operations and in time; how long it took to catch up; and how "
                "many times as fast as the leader wrote meanwhile."
            }
            div.scroll tabindex="0" role="region" aria-label="Table of waits" { table {
                thead { tr { @for (header, is_number) in COLUMNS { th.n[is_number] scope="col" { (header) } } } }
                tbody { @for row in rows(&summary.following) { tr {
                    @for (n, (cell, (_, is_number))) in row.iter().zip(COLUMNS).enumerate() {
                        @if n == 0 { th scope="row" title=(cell) { (cell) } }
                        @else { td.n[is_number].words[!is_number] { (cell) } }
                    }
                } } }
            } }
            @for (is_well, text) in found(&summary.following) {
                p.remarks { @if is_well { (text) } @else { b { (text) } } }
            }
        } }
        section {
            h2 { "How far behind the follower was" }
            p.hint {
                "It lacks an operation that the leader has acknowledged until all its copies have it. Dotted is what "
                "the leader had, solid what the follower had. " (INDEXED_HINT)
            }
            @for (number, curves) in overlaid(curves).iter().enumerate() {
                @if curves.len() == 1 { h3 { (curves[0].variant) } }
                (met(curves))
                (caught_up(curves))
                (panels(&format!("-{number}"), curves, &measures(curves)))
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

/// Bytes of files below these are those of an empty index.
const COPIED_FROM: f64 = 1e6;

/// What is drawn on one axis of time: bytes of files only where any were copied.
fn measures(curves: &[&Curves]) -> Vec<Panel> {
    let is_copied = |point: &Point| point.value >= COPIED_FROM;
    let has_copied = curves.iter().any(|curve| curve.recovered.iter().any(is_copied));
    let recovered = has_copied.then_some(RECOVERED);
    [OPERATIONS].into_iter().chain(indexing(curves)).chain(recovered).chain([LAG]).collect()
}

/// When follower and leader first met, and at how many operations.
fn met(curves: &[&Curves]) -> Markup {
    let one = |curve: &&Curves| {
        let met = curve.met?;
        let (after, operations) = (units::show_seconds(met.t_s), words::count(met.value as u64));
        Some(format!("{} after {after}, at {operations} operations", curve.variant))
    };
    let meetings: Vec<String> = curves.iter().filter_map(one).collect();
    html! {
        @if !meetings.is_empty() {
            p.hint { "A ring marks where it first met the leader: " (unbroken(&meetings.join("; "))) "." }
        }
    }
}

/// When the follower had caught up, where it was waited for: what is marked from top to bottom.
fn caught_up(curves: &[&Curves]) -> Markup {
    let drawn = curves.iter().filter(|curve| !curve.caught_up_s.is_empty());
    let catch_ups = drawn.map(|curve| {
        let times = curve.caught_up_s.iter().map(|at_s| units::show_seconds(*at_s));
        format!("{} at {}", curve.variant, times.collect::<Vec<_>>().join(", "))
    });
    let catch_ups: Vec<String> = catch_ups.collect();
    html! {
        @if !catch_ups.is_empty() {
            p.hint { "Vertical lines mark when it had caught up: " (unbroken(&catch_ups.join("; "))) "." }
        }
    }
}
