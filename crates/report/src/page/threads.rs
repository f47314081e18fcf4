//! The threads of a stream's path on the page: how much of the time each was busy.

use insight::{Summary, words};
use maud::{Markup, html};
use record::{StreamFigures, units};

use super::rows::amount;

/// A bar a thread, variant by variant, where documents were streamed.
pub(super) fn section(summary: &Summary<'_>) -> Markup {
    let streams: Vec<(&str, f64, &StreamFigures)> = summary
        .finished()
        .filter_map(|(variant, figures)| {
            Some((variant.name.as_str(), figures.seconds, figures.stream.as_ref()?))
        })
        .filter(|(_, seconds, stream)| *seconds > 0.0 && !stream.threads.is_empty())
        .collect();
    html! {
        @if !streams.is_empty() { section {
            h2 { "How busy each thread was" }
            p.hint { "The share of a variant's time for which a thread used a core." }
            div.small {
                @for (variant, seconds, stream) in streams {
                    figure.amounts {
                        figcaption { b { (variant) } " " (units::show_seconds(seconds)) }
                        table { tbody { @for thread in &stream.threads {
                            @let share = (thread.busy_s / seconds).clamp(0.0, 1.0);
                            tr {
                                th scope="row" { (thread.name) }
                                (amount("cpu", share, &words::percent(share)))
                            }
                        } } }
                    }
                }
            }
        } }
    }
}
