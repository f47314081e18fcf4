//! Plans that follow on the page: the table of waits, what the checker found, and the lag over time.

use insight::{Curves, Summary, words};
use maud::{Markup, html};
use record::units;

use super::charts::WIDTHS;
use crate::following::{COLUMNS, found, rows};
use crate::svg::line::{Line, LineChart};

/// Everything that was measured of following.
pub(super) fn section(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    html! {
        section {
            h2 { "How the follower caught up" }
            div.scroll { table {
                thead { tr { @for (header, _) in COLUMNS { th scope="col" { (header) } } } }
                tbody { @for row in rows(&summary.following) { tr {
                    @for (n, cell) in row.iter().enumerate() {
                        @if n == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
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
            @for (number, curve) in curves.iter().enumerate().filter(|(_, c)| c.lag.len() > 1) {
                h3 { (curve.variant) }
                @for width in WIDTHS { (chart(number, curve, width)) }
            }
        }
    }
}

fn chart(number: usize, curve: &Curves, (class_name, width): (&str, f64)) -> Markup {
    let most = curve.lag.iter().map(|point| point.value).fold(1.0, f64::max);
    let (factor, unit) = match most {
        most if most >= 2e6 => (1e6, "million"),
        most if most >= 2e3 => (1e3, "thousand"),
        _ => (1.0, "operations"),
    };
    let chart = LineChart {
        id: format!("lag-{number}-{class_name}"),
        title: format!("Operations that the follower lacked over time, {}", curve.variant),
        desc: format!(
            "At most {} operations in {}",
            words::three_digits(most),
            units::show_seconds(curve.seconds)
        ),
        width,
        plot_height: if width > 500.0 { 220.0 } else { 180.0 },
        lines: vec![Line { label: curve.variant.clone(), class: "neutral", points: &curve.lag }],
        time_s: (0.0, curve.seconds),
        log: false,
        max: most * 1.02,
        factor,
        unit,
        ceiling: None,
        labels: false,
        area: true,
    };
    html! { div class=(class_name) { (chart.render()) } }
}
