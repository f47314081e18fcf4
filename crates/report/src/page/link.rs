//! The use of the link on the page: variants over each other, or side by side where they are too many or too unlike.

use insight::{Curves, Summary, words};
use maud::{Markup, html};
use record::units;

use super::charts::{
    SERIES, SMALL, WIDTHS, can_overlay, figures, limit_of, peak, shaded, shades_among, shades_of,
};
use super::limits::{class, key};
use crate::svg::Shaded;
use crate::svg::line::{Line, LineChart};

/// A curve that reaches more than so many times the link's rate is explained.
const ABOVE: f64 = 1.05;

/// The use of the link by each variant, on the same scale.
pub(super) fn section(summary: &Summary<'_>, curves: &[Curves]) -> Markup {
    let drawn: Vec<&Curves> = curves.iter().filter(|curve| curve.link.len() > 1).collect();
    let rate = summary.manifest.link.as_ref().map(|link| link.rate_bytes_per_s as f64);
    let highest = drawn.iter().map(|curve| peak(&curve.link)).fold(1.0, f64::max);
    let max = highest.max(rate.unwrap_or(0.0)) * 1.02;
    let is_one_chart = drawn.len() == 1 || can_overlay(&drawn);
    html! {
        @if !drawn.is_empty() { section {
            h2 { "Use of the link" }
            p.hint {
                @if is_one_chart {
                    "Bytes a second towards the follower, since each variant's start."
                } @else {
                    "Bytes a second towards the follower. All charts reach up to the same rate; each has its own time."
                }
                @if rate.is_some_and(|rate| highest > rate * ABOVE) {
                    " A curve can rise above the link's rate: bytes count when they reach its queue."
                }
            }
            @if is_one_chart {
                (together(summary, &drawn, (max, rate)))
            } @else {
                div.small {
                    @for (index, curve) in drawn.iter().enumerate() {
                        figure {
                            figcaption { b { (curve.variant) } " " (note(summary, curve)) }
                            (chart(summary, curve, index, (max, rate), shades_among(&drawn, &curve.variant)))
                        }
                    }
                }
            }
        } }
    }
}

/// The curves of all variants over each other, each in a colour of its own.
fn together(summary: &Summary<'_>, drawn: &[&Curves], (max, rate): (f64, Option<f64>)) -> Markup {
    let until_s = drawn.iter().map(|curve| curve.seconds).fold(0.0, f64::max);
    let words = |curve: &Curves| {
        let used = note(summary, curve);
        let name = &curve.variant;
        if used.is_empty() { name.clone() } else { format!("{name}, {used}") }
    };
    let all: Vec<(&'static str, &Curves)> = SERIES.into_iter().zip(drawn.iter().copied()).collect();
    let chart = |(name, width): (&str, f64)| LineChart {
        id: format!("link-{name}"),
        title: "Use of the link over time".to_owned(),
        desc: drawn.iter().map(|curve| words(curve)).collect::<Vec<_>>().join("; "),
        width,
        plot_height: if width > 500.0 { 200.0 } else { 150.0 },
        lines: all
            .iter()
            .map(|&(class, curve)| Line {
                label: curve.variant.clone(),
                class,
                points: &curve.link,
            })
            .collect(),
        time_s: (0.0, until_s),
        max,
        factor: 1e6,
        unit: "MB/s",
        levels: level(rate),
        area: drawn.len() == 1,
        labels: drawn.len() > 1,
        shades: shades_of(drawn),
        ..LineChart::default()
    };
    html! {
        (key(all.iter().map(|(class, curve)| (*class, words(curve)))))
        (shaded(drawn))
        @for width in WIDTHS { div class=(width.0) { (chart(width).render()) } }
    }
}

/// The link's rate, to be marked, where it has one.
fn level(rate: Option<f64>) -> Vec<(f64, String)> {
    let words = |rate| format!("the link's {}", words::rate(rate));
    rate.map(|rate| (rate, words(rate))).into_iter().collect()
}

fn note(summary: &Summary<'_>, curve: &Curves) -> String {
    let share = figures(summary, &curve.variant).and_then(|figures| figures.link_share);
    share.map_or_else(String::new, |share| {
        let used = match summary.following.is_empty() {
            true => format!("recovered at {} of its rate", words::percent(share)),
            // Files came in a part of the time only.
            false => {
                format!("{} of its rate on average, over the whole run", words::percent(share))
            }
        };
        match words::before_compression(share) {
            Some(said) => format!("{used}, {said}"),
            None => used,
        }
    })
}

fn chart(
    summary: &Summary<'_>,
    curve: &Curves,
    index: usize,
    (max, rate): (f64, Option<f64>),
    shades: Vec<Shaded<'_>>,
) -> Markup {
    LineChart {
        id: format!("link-{index}"),
        title: format!("Use of the link by {}", curve.variant),
        desc: format!("MB/s over {}; {}", units::show_seconds(curve.seconds), {
            let used = note(summary, curve);
            if used.is_empty() { "share of the link not known".to_owned() } else { used }
        }),
        width: SMALL,
        plot_height: 110.0,
        lines: vec![Line {
            label: curve.variant.clone(),
            class: class(limit_of(summary, &curve.variant)),
            points: &curve.link,
        }],
        time_s: (0.0, curve.seconds),
        max,
        factor: 1e6,
        unit: "MB/s",
        levels: level(rate),
        area: true,
        shades,
        ..LineChart::default()
    }
    .render()
}
