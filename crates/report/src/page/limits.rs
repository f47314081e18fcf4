//! The colours of limits on the page.

use maud::{Markup, html};
use record::Limit;

/// A square in the colour of a limit.
pub(super) fn chip(limit: Option<Limit>) -> Markup {
    html! { span class={ "chip " (class(limit)) } aria-hidden="true" {} }
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
    html! {
        ul.legend {
            @for limit in limits { li { (named(*limit)) } }
        }
    }
}
