//! The threads of a stream's path on the page: what each did with its time.

use insight::{Summary, ThreadShares, thread_shares, words};
use maud::{Markup, html};
use record::{StreamFigures, ThreadUse, units};

use super::charts::SMALL;
use super::limits::key;
use super::rows::amount;
use crate::svg::bars::{Bar, BarChart, Part};

/// A part of a thread's time, of all of it.
type ShareOf = fn(&ThreadShares) -> f64;

/// What a thread does with its time, with the class that gives it its colour.
const PARTS: [(&str, &str, ShareOf); 4] = [
    ("cpu", "busy", |shares| shares.busy),
    ("throttle", "flow control", |shares| shares.flow_control),
    ("disk-write", "disk", |shares| shares.disk),
    ("neutral", "waiting", |shares| shares.waiting),
];

/// A bar a thread, variant by variant, where documents were streamed.
pub(super) fn section(summary: &Summary<'_>) -> Markup {
    let streams: Vec<(&str, f64, &StreamFigures)> = summary
        .finished()
        .filter_map(|(variant, figures)| {
            Some((variant.name.as_str(), figures.seconds, figures.stream.as_ref()?))
        })
        .filter(|(_, seconds, stream)| *seconds > 0.0 && !stream.threads.is_empty())
        .collect();
    let is_told = streams.iter().all(|(_, seconds, stream)| {
        stream.threads.iter().all(|thread| thread_shares(thread, *seconds).is_some())
    });
    html! {
        @if !streams.is_empty() && is_told { section {
            h2 { "What each thread did" }
            p.hint {
                "A bar is a variant's time. Busy: the thread used a core. Flow control: a window was full, and it "
                "waited for an acknowledgement. Disk: it waited for its disk. Waiting: for another thread."
            }
            (key(PARTS.map(|(class, name, _)| (class, name))))
            div.small { @for (at, (variant, seconds, stream)) in streams.iter().enumerate() {
                figure {
                    figcaption { b { (variant) } " " (units::show_seconds(*seconds)) }
                    (chart(at, variant, *seconds, stream))
                }
            } }
        } } @else if !streams.is_empty() { section {
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

/// The threads of one variant, from the source on.
fn chart(at: usize, variant: &str, seconds: f64, stream: &StreamFigures) -> Markup {
    let bars: Vec<Bar> = stream.threads.iter().filter_map(|thread| bar(thread, seconds)).collect();
    let words = |bar: &Bar| {
        let parts = bar.parts.iter().map(|part| format!("{} {}", part.name, part.text));
        format!("{}: {}", bar.label, parts.collect::<Vec<_>>().join(", "))
    };
    BarChart {
        id: format!("threads-{at}"),
        title: format!("What each thread did during {variant}"),
        desc: bars.iter().map(words).collect::<Vec<_>>().join("; "),
        width: SMALL,
        bars,
    }
    .render()
}

fn bar(thread: &ThreadUse, seconds: f64) -> Option<Bar> {
    let shares = thread_shares(thread, seconds)?;
    let part = |(class, name, of): (&'static str, &'static str, fn(&ThreadShares) -> f64)| {
        let share = of(&shares);
        Part { class, name, share, text: words::percent(share) }
    };
    let note = format!("busy {}", words::percent(shares.busy));
    Some(Bar { label: thread.name.clone(), note, parts: PARTS.into_iter().map(part).collect() })
}
