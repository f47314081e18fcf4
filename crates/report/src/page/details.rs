//! What is needed to repeat a run: settings, machine, plan; and what was noted while it ran.

use std::collections::BTreeSet;

use insight::{Summary, words};
use maud::{Markup, html};
use record::{Manifest, ModelInfo, RunDir, units};

use crate::listed::status;

/// Notes shown; the record has them all.
const MOST_NOTES: usize = 40;

pub(super) fn details(run: &RunDir, summary: &Summary<'_>) -> Markup {
    // A run that only watched has no plan and cannot be repeated.
    let watched = summary.watched.is_some();
    html! {
        section {
            h2 { @if watched { "What was looked at" } @else { "How to repeat it" } }
            details {
                summary {
                    @if watched { "Settings that are set on the cluster" }
                    @else { "Settings of each variant" }
                }
                (settings(summary))
            }
            @if summary.manifest.variants.iter().any(|variant| !variant.models.is_empty()) {
                details {
                    summary { "The virtual world" }
                    (models(&run.manifest))
                }
            }
            details {
                summary {
                    @if watched { "The record, and the machine that looked" }
                    @else { "Run, machine and link" }
                }
                (facts(&run.manifest, watched))
            }
            @if !watched {
                details {
                    summary { "The plan" }
                    pre tabindex="0" { (run.manifest.plan_text) }
                }
            }
        }
    }
}

fn settings(summary: &Summary<'_>) -> Markup {
    let names: BTreeSet<&str> =
        summary.variants.iter().flat_map(|v| v.settings.keys().map(String::as_str)).collect();
    html! {
        @if names.is_empty() { p.none { "No settings were recorded." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Settings" {
                table {
                    thead {
                        tr {
                            th scope="col" { "setting" }
                            @for variant in &summary.variants { th scope="col" { (variant.name) } }
                        }
                    }
                    tbody {
                        @for name in names {
                            tr {
                                th scope="row" { code { (name) } }
                                @for variant in &summary.variants {
                                    td { (variant.settings.get(name).map_or("-", String::as_str)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Parameters with their sources; where variants differ, each value with its variant.
fn models(manifest: &Manifest) -> Markup {
    let mut rows: Vec<(&ModelInfo, Vec<&str>)> = Vec::new();
    for variant in &manifest.variants {
        for model in &variant.models {
            match rows.iter_mut().find(|(known, _)| *known == model) {
                Some((_, variants)) => variants.push(&variant.name),
                None => rows.push((model, vec![&variant.name])),
            }
        }
    }
    rows.sort_by(|(a, _), (b, _)| (&a.hosts, &a.name).cmp(&(&b.hosts, &b.name)));
    let modelled = manifest.variants.iter().filter(|variant| !variant.models.is_empty()).count();
    html! {
        div.scroll tabindex="0" role="region" aria-label="The virtual world" {
            table {
                thead { tr {
                    @for name in ["parameter", "hosts", "value", "unit", "source"] { th scope="col" { (name) } }
                } }
                tbody {
                    @for (model, variants) in rows {
                        tr {
                            th scope="row" { code { (model.name) } }
                            td { (model.hosts) }
                            td.words {
                                (model.value)
                                @if variants.len() < modelled { " (" (variants.join(", ")) ")" }
                            }
                            td { (model.unit) }
                            td.words {
                                (model.source)
                                @if let Some(rows) = &model.calibrated_on { "; calibrated on " (rows) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn facts(manifest: &Manifest, watched: bool) -> Markup {
    let machine = &manifest.machine;
    // A record that has lost its manifest does not tell the machine.
    let cores = match machine.cores {
        0 => String::new(),
        cores => format!(", {}", words::counted(cores, "core", "cores")),
    };
    let memory = match machine.memory_bytes {
        0 => "unknown".to_owned(),
        bytes => units::show_bytes(bytes),
    };
    let mut facts: Vec<(&str, String)> = vec![
        ("run", manifest.run.clone()),
        ("status", status(manifest.status).to_owned()),
        ("started", manifest.started.clone()),
        ("plan", format!("{}, seed {}, scale {}", manifest.plan, manifest.seed, manifest.scale)),
        ("target", manifest.target.clone()),
        ("narrows", format!("{}, record format {}", manifest.version, manifest.format)),
        ("system", machine.os.clone()),
        ("processor", machine.cpu.clone() + &cores),
        ("memory", memory),
        ("nodes", nodes(manifest)),
    ];
    if watched {
        facts.retain(|(name, _)| *name != "plan");
    }
    if let Some(link) = &manifest.link {
        let rate = words::rate(link.rate_bytes_per_s as f64);
        facts.push(("link", format!("{} round trip, {rate}", words::rtt(link.rtt_ms))));
        if let Some(window) = link.window_bytes {
            facts.push(("window of a connection", units::show_bytes(window)));
        }
        if let Some(ceiling) = link.ceiling_bytes_per_s {
            let carried = format!("{} without delay and rate", words::rate(ceiling as f64));
            facts.push(("emulator", carried));
        }
    }
    html! {
        dl.facts {
            @for (name, value) in facts { dt { (name) } dd { (value) } }
        }
    }
}

fn nodes(manifest: &Manifest) -> String {
    let one = |node: &record::NodeInfo| format!("{} ({})", node.name, node.cluster);
    manifest.nodes.iter().map(one).collect::<Vec<String>>().join(", ")
}

/// What was noted while it ran, with the time since its variant's start, as charts have it.
pub(super) fn notes(run: &RunDir, watched: bool) -> Markup {
    let notes = insight::notes(run);
    let has_laps = notes.iter().any(|note| note.lap > 1);
    html! {
        @if !notes.is_empty() {
            section {
                h2 { "What happened on the way" }
                @if !watched { p.hint { "Time since each variant's start, as in the charts." } }
                ul.notes {
                    @for note in notes.iter().take(MOST_NOTES) {
                        li {
                            span.when { (note.after_s.map_or_else(|| "before".to_owned(), units::show_seconds)) }
                            @if let Some(variant) = note.variant.filter(|_| !watched) {
                                b { (variant) @if has_laps { ", lap " (note.lap) } } " "
                            }
                            (note.text)
                        }
                    }
                    @if notes.len() > MOST_NOTES {
                        li { (notes.len() - MOST_NOTES) " more in the record." }
                    }
                }
            }
        }
    }
}
