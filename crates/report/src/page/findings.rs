//! What a live cluster showed.

use insight::diagnosis::{Alike, Diagnosis};
use insight::words;
use maud::{Markup, html};

use crate::screen::{looks, promised, subjects};

/// Findings with their evidence, what lifts them and what that brings.
pub(super) fn section(diagnosis: &Diagnosis) -> Markup {
    html! {
        section {
            h2 { "Findings" }
            p { (looks(diagnosis)) "." }
            @if diagnosis.findings.is_empty() { p { (diagnosis.headline) "." } }
            dl.verdicts {
                @for alike in Alike::of(&diagnosis.findings) {
                    dt { (alike.first.label()) }
                    dd { (one(&alike)) }
                }
            }
            @if !diagnosis.healthy.is_empty() {
                h3 { "What is well" }
                ul { @for sentence in diagnosis.healthy.iter().take(20) { li { (sentence) } } }
                @if diagnosis.healthy.len() > 20 {
                    p { (diagnosis.healthy.len() - 20) " more." }
                }
            }
            @for note in &diagnosis.notes { p { "Note: " (note) "." } }
        }
    }
}

fn one(alike: &Alike<'_>) -> Markup {
    let finding = alike.first;
    html! {
        p { (alike.sentence()) "." }
        p {
            b { "Holds back" } " " (subjects(alike))
            @if finding.strength > 0.0 { "; strength " (words::percent(finding.strength)) }
            "."
        }
        ul {
            @for line in &finding.evidence {
                li { code { (line.api) " " (line.field) } ": " (line.value) }
            }
        }
        @if let Some(lift) = &finding.lift {
            p {
                b { "What lifts it" } " "
                @if let Some(setting) = &lift.setting {
                    code { (setting) }
                    @if let Some(now) = &lift.now { " is " (now) }
                    @if let Some(to) = lift.to_words() { ", try " (to) }
                    ": "
                }
                (lift.action) "."
            }
        }
        @if let Some(gain) = &finding.gain {
            p { b { "Expected" } " " (promised(gain)) " (" (gain.formula) ")." }
        }
        @if let Some(next) = &finding.next.sentence { p { b { "Next limit" } " " (next) "." } }
        @if let Some(doubt) = &finding.doubt { p { b { "Doubt" } " " (doubt) "." } }
        @if !finding.ruled_out.is_empty() {
            details {
                summary { "Other causes, and what speaks against each" }
                ul {
                    @for one in finding.ruled_out.iter() {
                        li { (one.class.label()) ", " (one.by.label()) ": " (one.why) "." }
                    }
                }
            }
        }
    }
}
