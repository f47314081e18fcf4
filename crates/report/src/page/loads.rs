//! Loads on the page: the table of each operation and variant, and what changes between variants.

use insight::Summary;
use insight::load::{changes, figures};
use insight::words::three_digits;
use maud::{Markup, html};

use crate::load::remarks;

/// Everything that was measured of loads.
pub(super) fn section(summary: &Summary<'_>) -> Markup {
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), three_digits);
    html! {
        @for load in &summary.loads {
            section {
                h2 { (load.variant) ", " (load.operation) }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "Metric" }
                        @for lap in 1..=load.laps.len() { th scope="col" { "Lap " (lap) } }
                        th scope="col" { "TOTAL" }
                        th scope="col" { "Unit" }
                    } }
                    tbody { @for figure in figures(&load.laps) { tr {
                        th scope="row" { (figure.metric.name) }
                        @for lap in &figure.laps { td { (show(*lap)) } }
                        td { (show(figure.total)) }
                        td { (figure.metric.unit) }
                    } } }
                } }
                @for (_, text) in remarks(&load.laps) { p { (text) } }
            }
        }
        @for (base, other) in summary.load_pairs() {
            section {
                h2 { (other.operation) ": " (other.variant) " beside " (base.variant) }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "Metric" }
                        th scope="col" { (base.variant) }
                        th scope="col" { (other.variant) }
                        th scope="col" { "Change %" }
                        th scope="col" { "95 % of the laps" }
                    } }
                    tbody { @for change in changes(&base.laps, &other.laps, summary.manifest.seed) { tr {
                        th scope="row" { (change.metric.name) " (" (change.metric.unit) ")" }
                        td { (three_digits(change.base)) }
                        td { (three_digits(change.other)) }
                        td { (format!("{:+.1}{}", change.percent, change.mark())) }
                        td { (change.percent_interval.map_or_else(|| "-".to_owned(), |i| format!("{:+.1} to {:+.1}", i.low, i.high))) }
                    } } }
                } }
            }
        }
    }
}
