//! Names with their colours on the page, and the colours of limits.

use maud::{Markup, Render, html};
use record::Limit;

/// A square in the colour of a limit.
pub(super) fn chip(limit: Option<Limit>) -> Markup {
    square(class(limit))
}

fn square(class: &str) -> Markup {
    html! { span class={ "chip " (class) } aria-hidden="true" {} }
}

/// Names, each with the class that gives it its colour.
pub(super) fn key<N: Render>(names: impl IntoIterator<Item = (&'static str, N)>) -> Markup {
    html! {
        ul.legend { @for (class, name) in names { li { (square(class)) (name) } } }
    }
}

/// The class that gives a limit its colour, the same throughout the page.
pub(super) fn class(limit: Option<Limit>) -> &'static str {
    match limit {
        Some(Limit::Latency) => "latency",
        Some(Limit::LinkRate) => "link-rate",
        Some(Limit::Loss) => "loss",
        Some(Limit::Throttle) => "throttle",
        Some(Limit::DiskRead) => "disk-read",
        Some(Limit::DiskWrite) => "disk-write",
        Some(Limit::Cpu) => "cpu",
        Some(Limit::Slots) => "slots",
        Some(Limit::Memory) => "memory",
        Some(Limit::Proxy) => "proxy",
        Some(Limit::Coordination) => "coordination",
        None => "neutral",
    }
}

/// The name of a limit with its colour.
pub(super) fn named(limit: Option<Limit>) -> Markup {
    html! { (chip(limit)) (limit.map_or("unknown", Limit::label)) }
}

/// The names of limits with their colours.
pub(super) fn legend(limits: &[Option<Limit>]) -> Markup {
    key(limits.iter().map(|limit| (class(*limit), limit.map_or("unknown", Limit::label))))
}
