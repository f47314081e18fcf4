//! A diagnosis in words.

use insight::diagnosis::{Alike, By, Changes, Diagnosis, Evidence, Gain, Lift, Pair};
use insight::{Advice, words};
use record::observation::{Health, Scope};
use record::units::show_seconds;

use crate::style::{Paint, Style, labelled, plain, wrap};

/// Width of the labels on the left.
const LABEL: usize = 10;
/// Subjects that are named; the others are counted.
const SUBJECTS_MAX: usize = 6;
/// Sentences on what is well; the others are counted.
const WELL_MAX: usize = 10;
/// Settings that changed of which each is named.
const SETTINGS_MAX: usize = 20;

/// The text of a diagnosis. `title` says of what.
pub fn findings(diagnosis: &Diagnosis, title: &str, style: Style) -> String {
    let head = format!("{title}, {}", looks(diagnosis));
    let mut text = style.paint(Some(Paint::Dim), &plain(&head));
    text.push('\n');
    if let Some(health) = &diagnosis.health {
        let line = wrap(&plain(&healthy(health)), usize::from(style.width), 2);
        text.push_str(&format!("{}\n", style.paint(Some(Paint::Dim), &line)));
    }
    let mut well: Vec<&String> = diagnosis.healthy.iter().collect();
    if diagnosis.findings.is_empty() {
        // The health stands above already.
        let health = diagnosis.health.as_ref().map(|one| format!(" (health {})", one.status));
        let headline = health.and_then(|health| diagnosis.headline.strip_suffix(&health));
        let headline = headline.unwrap_or(&diagnosis.headline);
        let said = headline.strip_prefix("healthy: ");
        well.retain(|sentence| said != Some(sentence.as_str()));
        text.push('\n');
        text.push_str(&style.paint(Some(Paint::Bold), &plain(headline)));
        text.push('\n');
    }
    for alike in Alike::of(&diagnosis.findings) {
        text.push('\n');
        text.push_str(&one(&alike, style));
    }
    let has_rows = !well.is_empty() || !diagnosis.notes.is_empty();
    if !diagnosis.findings.is_empty() && has_rows {
        text.push('\n');
    }
    text.push_str(&rows("well", well.iter().take(WELL_MAX), style));
    let more = well.len().saturating_sub(WELL_MAX);
    if more > 0 {
        text.push_str(&row("well", &format!("and {more} more"), style));
    }
    text.push_str(&rows("note", &diagnosis.notes, style));
    text.push_str(&rows("missing", &diagnosis.gaps, style));
    if !diagnosis.probes.is_empty() {
        text.push('\n');
    }
    text.push_str(&rows("probe", diagnosis.probes.iter().map(|one| one.sentence()), style));
    text
}

/// The health with what it counts: `health yellow, 3 nodes, 2 copies on no node`.
fn healthy(health: &Health) -> String {
    let mut text = format!("health {}", health.status);
    let nodes = health.nodes.map(|count| words::counted(count, "node", "nodes"));
    let counted = [
        (health.unassigned, "on no node"),
        (health.delayed, "waiting for a node to come back"),
        (health.initializing, "coming up"),
        (health.relocating, "moving"),
    ];
    let counted = counted.into_iter().filter_map(|(count, state)| {
        let count = count.filter(|count| *count > 0)?;
        Some(format!("{} {state}", words::counted(count, "copy", "copies")))
    });
    for part in nodes.into_iter().chain(counted) {
        text.push_str(", ");
        text.push_str(&part);
    }
    text
}

/// How many looks there were, and in what time.
pub(crate) fn looks(diagnosis: &Diagnosis) -> String {
    let looked = show_seconds(diagnosis.looked_ms / 1e3);
    format!("{} in {looked}", words::counted(diagnosis.looks, "look", "looks"))
}

/// What findings hold: the first subjects by name, the others counted.
pub(crate) fn subjects(alike: &Alike<'_>) -> String {
    let all: Vec<&str> = alike.subjects().map(String::as_str).collect();
    let more = all.len().saturating_sub(SUBJECTS_MAX);
    let named = all[..all.len() - more].join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn one(alike: &Alike<'_>, style: Style) -> String {
    let finding = alike.first;
    let head = wrap(
        &format!("{}: {}", finding.label(), plain(&alike.sentence())),
        usize::from(style.width),
        2,
    );
    let mut text = format!("{}\n", style.paint(Some(Paint::Bold), &head));
    text.push_str(&row("holds", &subjects(alike), style));
    if finding.strength > 0.0 {
        text.push_str(&row("strength", &words::percent(finding.strength), style));
    }
    text.push_str(&advised(&finding.evidence, finding.lift.as_ref(), finding.gain.as_ref(), style));
    text.push_str(&rows("next", &finding.next.sentence, style));
    text.push_str(&rows("doubt", &finding.doubt, style));
    let others = finding.ruled_out.iter();
    let others = others.map(|one| (one.by, one.class.label(), one.why.as_str()));
    text.push_str(&ruled_out(others, style));
    text
}

/// The advice on a variant of a run.
pub fn advice(advice: &Advice, style: Style) -> String {
    let head = wrap(&plain(&advice.variant), usize::from(style.width), 2);
    let mut text = format!("{}\n", style.paint(Some(Paint::Bold), &head));
    text.push_str(&row("verdict", &advice.sentence, style));
    text.push_str(&advised(&advice.evidence, advice.lift.as_ref(), advice.gain.as_ref(), style));
    for (index, sentence) in advice.measured.iter().enumerate() {
        text.push_str(&row(if index == 0 { "measured" } else { "" }, sentence, style));
    }
    let others = advice.ruled_out.iter();
    let others = others.map(|one| (one.by, one.limit.label(), one.why.as_str()));
    text.push_str(&ruled_out(others, style));
    text
}

/// What a verdict rests on, what lifts what holds, and what that brings.
fn advised(
    evidence: &[Evidence],
    lift: Option<&Lift>,
    gain: Option<&Gain>,
    style: Style,
) -> String {
    let mut text = String::new();
    for (index, line) in evidence.iter().enumerate() {
        let label = if index == 0 { "evidence" } else { "" };
        text.push_str(&row(label, &format!("{} {}: {}", line.api, line.field, line.value), style));
    }
    for (label, words) in lift.map(lift_rows).into_iter().flatten() {
        text.push_str(&row(label, &words, style));
    }
    if let Some(gain) = gain {
        let sentence = format!("{} ({})", promised(gain), gain.formula);
        text.push_str(&row("gain", &sentence, style));
    }
    text
}

/// What lifting it brings, in the same words wherever that is said.
pub(crate) fn promised(gain: &Gain) -> String {
    format!("up to {} the rate", words::times(gain.factor))
}

/// What changed since another diagnosis; `since` says which.
pub fn changes(changes: &Changes, since: &str, style: Style) -> String {
    let mut text =
        format!("\n{}\n", style.paint(Some(Paint::Bold), &plain(&format!("since {since}"))));
    let mut add = |label: &str, all: &[String]| text.push_str(&rows(label, all, style));
    add("gone", &changes.gone);
    add("new", &changes.came);
    let stayed = changes.stayed.iter().map(|Pair { was, is }| match was == is {
        true => is.clone(),
        false => format!("{is} (it was: {was})"),
    });
    add("still", &stayed.collect::<Vec<_>>());
    if let Pair { was: Some(was), is: Some(is) } = changes.bytes_per_s {
        add("rate", &[format!("{}, it was {}", words::rate(is), words::rate(was))]);
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let settings = changes
        .settings
        .iter()
        .map(|(name, Pair { was, is })| format!("{name} = {}, it was {}", value(is), value(was)));
    let more = changes.settings.len().saturating_sub(SETTINGS_MAX);
    add("setting", &settings.take(SETTINGS_MAX).collect::<Vec<_>>());
    if more > 0 {
        add("", &["and ".to_owned() + &words::counted(more, "more setting", "more settings")]);
    }
    add("node gone", &changes.nodes_gone);
    add("node new", &changes.nodes_came);
    if *changes == (Changes { bytes_per_s: changes.bytes_per_s.clone(), ..Changes::default() }) {
        let same = "nothing was found then either, and neither settings nor nodes have changed";
        add("same", &[same.to_owned()]);
    }
    text
}

/// The other causes, by what kind of reason speaks against them; those with the same reason together.
fn ruled_out<'a>(others: impl Iterator<Item = (By, &'a str, &'a str)>, style: Style) -> String {
    let mut all: Vec<(By, &str, Vec<&str>)> = Vec::new();
    for (by, name, why) in others {
        match all.iter_mut().find(|(one_by, one_why, _)| (*one_by, *one_why) == (by, why)) {
            Some((.., names)) => names.push(name),
            None => all.push((by, why, vec![name])),
        }
    }
    all.sort_by_key(|(by, ..)| *by);
    let mut text = String::new();
    let mut said = None;
    for (by, why, names) in all {
        let label = if said == Some(by) { "" } else { by.label() };
        said = Some(by);
        text.push_str(&row(label, &format!("{}: {why}", names.join(", ")), style));
    }
    text
}

fn lift_rows(lift: &Lift) -> Vec<(&'static str, String)> {
    let scope = lift.set_by_words().map_or_else(String::new, |words| format!(" ({words})"));
    let rows = [
        lift.in_words(&scope).map(|setting| ("setting", setting)),
        Some(("do", lift.action.clone())),
        request(lift).map(|request| ("how", request)),
    ];
    rows.into_iter().flatten().collect()
}

/// The request that sets what lifts a finding; none for an action.
pub(crate) fn request(lift: &Lift) -> Option<String> {
    let (setting, to) = (lift.setting.as_ref()?, lift.to.as_ref()?);
    // Where it is set today is where it has to be set again: a transient value hides a persistent one.
    let rank = if lift.set_by == Some(Scope::Transient) { "transient" } else { "persistent" };
    Some(format!("PUT _cluster/settings {{\"{rank}\":{{\"{setting}\":\"{to}\"}}}}"))
}

/// A row each, all with one label.
fn rows(label: &str, all: impl IntoIterator<Item: AsRef<str>>, style: Style) -> String {
    all.into_iter().map(|words| row(label, words.as_ref(), style)).collect()
}

fn row(label: &str, words: &str, style: Style) -> String {
    if words.is_empty() {
        return String::new();
    }
    let head = format!("  {label:LABEL$}");
    let text = labelled(&head, &plain(words), usize::from(style.width));
    match text.strip_prefix(&head) {
        Some(said) => format!("  {}{said}\n", style.paint(Some(Paint::Dim), &head[2..])),
        None => text + "\n",
    }
}
