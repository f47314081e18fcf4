//! What a twin answers, for a terminal and for the page of its run.

use std::fmt::Write;

use insight::what_if::{
    Answer, NOT_MODELLED, NOT_MODELLED_S, Phase, PhaseKind, Point, RecoveryUse, answers,
};
use insight::words::{counted, gain, holder, percent};
use record::units::{show_bytes, show_seconds};
use record::{Limit, Line, RunDir};

use crate::grid::grid_within;
use crate::style::{fitted, plain};

/// Lines of the curve.
const CURVE_LINES: usize = 8;
/// Columns on the page: more of them would be out of sight in a window of half a screen.
const PAGE_WIDTH: usize = 80;
/// Columns of a bar.
const BAR: usize = 30;
/// The phase of a run in which a twin's copies are put in place.
const PLACE: &str = "place";
/// A gain that is off 1 by no more is none.
const GAIN_MIN: f64 = 0.005;
/// Nor is one that saves less: a copy in the field takes longer to begin.
const SAVED_MIN_S: f64 = 0.1;
/// A limit below this share is not worth a word.
const SHARE_MIN: f64 = 0.05;

/// The answer to what was asked, then what settings bring, in `width` columns.
///
/// `until` is the word for what is waited for: green, empty, balanced or placed.
pub fn what_if(
    (asked, until): (&str, &str),
    answers: &[Answer],
    tried: &[Answer],
    width: usize,
) -> String {
    if answers.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", plain(asked));
    write_answers(&mut text, until, answers, width);
    if let [as_it_is, others @ ..] = tried
        && !(others.is_empty() || copies_nothing(as_it_is))
    {
        let _ = writeln!(text, "\nWhat settings bring, each by itself");
        let (idle, change): (Vec<_>, Vec<_>) = others.iter().partition(|one| changes_nothing(one));
        let after = format!("{until} after");
        let columns =
            [("setting", false), (after.as_str(), true), ("gain", true), ("held by", false)];
        let row = |answer: &Answer| {
            let held = answer.phases.iter().rfind(|phase| phase.what == PhaseKind::Copying);
            vec![
                answer.variant.clone(),
                show_seconds(answer.green_s),
                gain(answer.gain),
                held.map_or_else(String::new, |phase| limits(phase, 1)),
            ]
        };
        write_grid(&mut text, &columns, std::iter::once(as_it_is).chain(change).map(row), width);
        if !idle.is_empty() {
            let names: Vec<String> = idle.iter().map(|one| short(&one.variant)).collect();
            let _ = writeln!(text, "  Nothing is gained by: {}", names.join(", "));
        }
    }
    fitted(&text, width) + "\n"
}

fn changes_nothing(answer: &Answer) -> bool {
    let gained = answer.gain - 1.0;
    gained.abs() <= GAIN_MIN || (gained * answer.green_s).abs() < SAVED_MIN_S
}

/// Whether no copy finds a place: nothing holds that, nothing is left of it, and no rate changes it.
fn copies_nothing(answer: &Answer) -> bool {
    answer.bytes == 0 && !answer.never_green.is_empty()
}

/// A setting without what stands before its last dot.
fn short(setting: &str) -> String {
    let (name, value) = setting.split_once(" = ").unwrap_or((setting, ""));
    let name = name.rsplit('.').next().unwrap_or(name);
    plain(&if value.is_empty() { name.to_owned() } else { format!("{name} = {value}") })
}

/// The same of the record of a twin; nothing of other runs. Those of earlier builds do not say what was waited for.
pub(crate) fn of_run(run: &RunDir) -> Option<String> {
    let is_place = |line: &Line| matches!(line, Line::Phase { phase, .. } if phase.name == PLACE);
    let answers = run.lines.iter().any(is_place).then(|| answers(run))?;
    let until = run.until().unwrap_or("done");
    let mut text = String::new();
    write_answers(&mut text, &plain(until), &answers, PAGE_WIDTH);
    Some(fitted(text.trim_start(), PAGE_WIDTH)).filter(|text| !text.is_empty())
}

/// A table, set in from the left.
fn write_grid(
    text: &mut String,
    columns: &[(&str, bool)],
    rows: impl Iterator<Item = Vec<String>>,
    width: usize,
) {
    let rows: Vec<Vec<String>> = rows.collect();
    for row in grid_within(columns, &rows, width.saturating_sub(2)) {
        for line in row.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
}

fn write_answers(text: &mut String, until: &str, answers: &[Answer], width: usize) {
    for answer in answers {
        let _ = writeln!(text, "\n{}: {}", plain(&answer.variant), done(until, answer));
        for sentence in &answer.never_green {
            let _ = writeln!(text, "  never green: {}", plain(sentence));
        }
    }
    let Some(first) = answers.first() else { return };
    if !copies_nothing(first) {
        write_phases(text, "What holds it", first, width);
    }
    // Of more of them a table says it.
    if let [_, other] = answers
        && !copies_nothing(other)
    {
        let title = format!("What holds it with {}", plain(&other.variant));
        write_phases(text, &title, other, width);
    }
    if !copies_nothing(first) {
        write_curve(text, &first.curve, width);
        let _ = writeln!(text, "\n{}", recovery_use(&first.recovery_use));
    }
    for sentence in first.came_back.iter().chain(&first.full_disks) {
        let _ = writeln!(text, "{}.", plain(sentence));
    }
}

/// When it is done, in words.
fn done(until: &str, answer: &Answer) -> String {
    if copies_nothing(answer) {
        return "nothing is copied".to_owned();
    }
    let (least, most) = answer.between_s;
    let when = show_seconds(answer.green_s);
    let gain = match changes_nothing(answer) {
        true => String::new(),
        false => format!(", {} as fast as it is", gain(answer.gain)),
    };
    let bytes = show_bytes(answer.bytes);
    let in_any_case = match (answer.away_s, answer.delayed_s) {
        (away_s, _) if away_s > 0.0 => {
            format!("; nodes are away for {} in any case", show_seconds(away_s))
        }
        (_, delayed_s) if delayed_s > 0.0 => {
            format!("; copies wait for their node for {} in any case", show_seconds(delayed_s))
        }
        _ => String::new(),
    };
    format!(
        "{until} after {when}{gain}; {bytes} are copied\n  \
         between {} and {}: {}, and {:.0} % more or less ({} at least) for what is not modelled{in_any_case}",
        show_seconds(least),
        show_seconds(most),
        drawn(answer.draws),
        NOT_MODELLED * 100.0,
        show_seconds(NOT_MODELLED_S)
    )
}

/// What the interval is over: in the first of so many answers nothing is drawn.
fn drawn(answers: usize) -> String {
    match answers {
        0 | 1 => "nothing is drawn".to_owned(),
        2 => "with what is assumed, with 1 draw of what is not known".to_owned(),
        _ => format!("with what is assumed, with {} draws of what is not known", answers - 1),
    }
}

fn write_phases(text: &mut String, title: &str, answer: &Answer, width: usize) {
    let _ = writeln!(text, "\n{title}");
    let columns = [("from", true), ("to", true), ("copies", true), ("", false)];
    let row = |phase: &Phase| {
        let what = match phase.what {
            PhaseKind::Copying => format!("{}: {}", phase.what.label(), limits(phase, 3)),
            other => other.label().to_owned(),
        };
        // Not all that are left need be made in it.
        let copies =
            if phase.copies == 0 { String::new() } else { format!("{} left", phase.copies) };
        vec![show_seconds(phase.from_s), show_seconds(phase.to_s), copies, what]
    };
    // One that is over within a sample of its beginning says nothing.
    let lasts = answer.phases.iter().map(row).filter(|cells| cells[0] != cells[1]);
    write_grid(text, &columns, lasts, width);
    let copying = answer.phases.iter().filter(|phase| phase.what == PhaseKind::Copying);
    let longest = copying.max_by(|a, b| (a.to_s - a.from_s).total_cmp(&(b.to_s - b.from_s)));
    if let Some([(first, _), (second, share), ..]) = longest.map(|phase| &phase.limits[..]) {
        let (first, second) = (holder(*first), holder(*second));
        let next = match *share >= SHARE_MIN {
            true => format!("If {first} held no more, {second} would be next"),
            false => format!("No other limit is close: {second} takes {}", percent(*share)),
        };
        let _ = writeln!(text, "  {next}.");
    }
}

/// The largest limits of a phase with their shares.
fn limits(phase: &Phase, most: usize) -> String {
    let large = phase.limits.iter().take(most).filter(|(_, share)| *share >= SHARE_MIN);
    let one = |(limit, share): &(Limit, f64)| format!("{} {}", limit.label(), percent(*share));
    large.map(one).collect::<Vec<_>>().join(", ")
}

fn write_curve(text: &mut String, curve: &[Point], width: usize) {
    let Some(whole) = curve.iter().map(|point| point.bytes).max().filter(|bytes| *bytes > 0) else {
        return;
    };
    // While copies wait for their node nothing becomes less: the first moment and the last one say so.
    let same = |a: &Point, b: &Point| (a.copies, a.bytes) == (b.copies, b.bytes);
    let mut changes: Vec<&Point> = Vec::new();
    for point in curve {
        if let [.., before, last] = changes[..]
            && same(before, point)
            && same(last, point)
        {
            changes.pop();
        }
        changes.push(point);
    }
    let each = changes.len().div_ceil(CURVE_LINES).max(1);
    let last = changes.len() - 1;
    let kept = changes.into_iter().enumerate().filter(|(at, _)| at % each == 0 || *at == last);
    let kept: Vec<&Point> = kept.map(|(_, point)| point).collect();
    // Where nodes restart, the files of a copy may come between two lines.
    if kept.iter().all(|point| point.bytes == 0) {
        return;
    }
    let _ = writeln!(text, "\nWhat is left");
    let columns = [("after", true), ("copies", true), ("bytes", true), ("", false)];
    let row = |point: &Point| {
        let filled = (point.bytes as f64 / whole as f64 * BAR as f64).round() as usize;
        let bar = "█".repeat(filled);
        vec![show_seconds(point.t_s), point.copies.to_string(), show_bytes(point.bytes), bar]
    };
    write_grid(text, &columns, kept.into_iter().map(row), width);
}

fn recovery_use(taken: &RecoveryUse) -> String {
    let share = |share: Option<f64>| share.map(percent);
    let parts = [
        (share(taken.link_peak), "of its network card"),
        (share(taken.disk_peak), "of its disk"),
        (share(taken.cores_peak), "of its cores"),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(share, of)| Some(format!("{} {of}", share?))).collect();
    let nodes = counted(taken.nodes, "node takes part", "nodes take part");
    if parts.is_empty() {
        return format!("{nodes}. What it takes of them is not known.");
    }
    format!(
        "{nodes}. Of the busiest it takes at most {}.\nSearches and indexing do not have that share meanwhile.",
        parts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unheld() -> Answer {
        Answer {
            variant: "as it is".to_owned(),
            changed: Default::default(),
            green_s: 90.5,
            between_s: (90.0, 108.6),
            away_s: 90.0,
            delayed_s: 0.0,
            draws: 1,
            gain: 1.0,
            bytes: 0,
            phases: Vec::new(),
            curve: Vec::new(),
            recovery_use: RecoveryUse::default(),
            never_green: Vec::new(),
            full_disks: Vec::new(),
            came_back: Vec::new(),
        }
    }

    #[test]
    fn what_is_not_known_of_nodes_is_said() {
        let mut taken =
            RecoveryUse { link_peak: None, disk_peak: None, cores_peak: None, nodes: 1 };
        let unknown = "1 node takes part. What it takes of them is not known.";
        assert_eq!(recovery_use(&taken), unknown);
        (taken.nodes, taken.disk_peak, taken.cores_peak) = (3, Some(0.25), Some(0.004));
        let known = recovery_use(&taken);
        let says = "3 nodes take part. Of the busiest it takes at most 25 % of its disk, 0.4 % of its cores.\n";
        assert!(known.starts_with(says), "{known}");
    }

    #[test]
    fn what_stands_still_takes_two_lines() {
        let at = |second: u32, bytes: u64| Point { t_s: f64::from(second), copies: 2, bytes };
        let waits = (0..20).map(|second| at(second, 100));
        let curve: Vec<Point> = waits.chain((20..25).map(|second| at(second, 75))).collect();
        let mut text = String::new();
        write_curve(&mut text, &curve, 80);
        let lines = |bytes: &str| text.lines().filter(|line| line.contains(bytes)).count();
        assert_eq!((lines("100 B"), lines("75 B")), (2, 2), "{text}");
        let between =
            (0..20).map(|second| Point { copies: second, ..at(second, u64::from(second == 7)) });
        let mut text = String::new();
        write_curve(&mut text, &between.collect::<Vec<_>>(), 80);
        assert_eq!(text, "", "no line would say what is left");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let phase = Phase {
            from_s: 0.0,
            to_s: 90.5,
            copies: 12,
            what: PhaseKind::Copying,
            limits: vec![(Limit::Throttle, 0.5), (Limit::LinkRate, 0.3), (Limit::DiskRead, 0.2)],
        };
        let answer = Answer { phases: vec![phase], ..unheld() };
        let asked =
            ("everything is moved away from node-with-a-long-name-1, node-2 and node-3", "empty");
        let tried =
            [answer.clone(), Answer { variant: "with a setting".to_owned(), ..answer.clone() }];
        for width in [40, 60, 80] {
            let text = what_if(asked, std::slice::from_ref(&answer), &tried, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        }
    }

    #[test]
    fn what_passes_in_any_case_is_said_beside_the_interval() {
        let mut answer = unheld();
        let away = "nodes are away for 90.0 s in any case";
        assert!(done("green", &answer).ends_with(away), "{}", done("green", &answer));
        answer.away_s = 0.0;
        assert!(!done("green", &answer).contains("in any case"));
        answer.delayed_s = 60.0;
        let waits = "copies wait for their node for 60.0 s in any case";
        assert!(done("green", &answer).ends_with(waits), "{}", done("green", &answer));
    }

    #[test]
    fn what_is_never_green_is_said_under_the_answer() {
        let never_green = vec!["1 copy finds no place".to_owned()];
        let mut answer = Answer { never_green, bytes: 2_000_000, ..unheld() };
        let said = |answer: &Answer| {
            let mut text = String::new();
            write_answers(&mut text, "placed", std::slice::from_ref(answer), 80);
            text
        };
        let text = said(&answer);
        assert!(
            text.starts_with("\nas it is: placed after 90.5 s; 2.00 MB are copied\n"),
            "{text}"
        );
        assert!(text.contains("\n  never green: 1 copy finds no place\n"), "{text}");
        answer.bytes = 0;
        let only = "\nas it is: nothing is copied\n  never green: 1 copy finds no place\n";
        assert_eq!(said(&answer), only, "nothing holds it, and nothing is left of it");
        let tried = [answer.clone(), Answer { gain: 2.0, ..answer.clone() }];
        let text = what_if(("n2 lost", "placed"), &tried[..1], &tried, 80);
        assert!(!text.contains("What settings bring"), "{text}");
    }

    #[test]
    fn limits_are_called_as_on_the_page_of_the_run() {
        let limits = vec![(Limit::Throttle, 0.96), (Limit::LinkRate, 0.04)];
        let what = PhaseKind::Copying;
        let mut answer = Answer {
            phases: vec![Phase { from_s: 0.0, to_s: 9.0, what, copies: 2, limits }],
            ..unheld()
        };
        let said = |answer: &Answer| {
            let mut text = String::new();
            write_phases(&mut text, "What holds it", answer, 80);
            text
        };
        let text = said(&answer);
        assert!(text.contains(" copies are made: throttle 96 %"), "{text}");
        assert!(text.contains(" 2 left "), "two are made in it, or one: {text}");
        assert!(!text.contains("would be next"), "what takes next to nothing is not next: {text}");
        assert!(text.contains("No other limit is close: the link takes 4.0 %."), "{text}");
        answer.phases[0].limits[1].1 = 0.4;
        let next = "If the throttle held no more, the link would be next.";
        assert!(said(&answer).contains(next), "{}", said(&answer));
        let what = PhaseKind::NotNoticed;
        answer.phases.push(Phase { from_s: 9.0, to_s: 9.001, what, copies: 0, limits: Vec::new() });
        assert!(!said(&answer).contains(what.label()), "{}", said(&answer));
    }

    #[test]
    fn settings_that_bring_nothing_are_one_line() {
        let of =
            |variant: &str, gain: f64| Answer { variant: variant.to_owned(), gain, ..unheld() };
        let tried = [
            of("as it is", 1.0),
            of("a.rate = 8mb", 3.8),
            of("a.slots = 4", 1.0),
            of("a.chunks = 4", 1.001),
            Answer { green_s: 0.001, ..of("a.size = 1mb", 2.0) },
            of("all of these", 3.8),
        ];
        let text = what_if(("n2 lost", "green"), &[unheld()], &tried, 80);
        assert!(text.contains("\n  a.rate = 8mb") && text.contains("\n  all of these"), "{text}");
        assert!(
            text.ends_with("  Nothing is gained by: slots = 4, chunks = 4, size = 1mb\n"),
            "{text}"
        );
        assert!(!text.contains("a.slots"), "{text}");
    }

    #[test]
    fn a_large_gain_has_no_more_digits_than_elsewhere() {
        let fast = Answer { gain: 164.887, ..unheld() };
        let said = done("green", &fast);
        assert!(said.contains(", 165× as fast as it is"), "{said}");
        let text = what_if(("n2 lost", "green"), &[unheld()], &[unheld(), fast], 80);
        assert!(text.contains("165×"), "{text}");
    }

    #[test]
    fn the_first_answer_is_no_draw() {
        assert_eq!(drawn(1), "nothing is drawn");
        assert_eq!(drawn(5), "with what is assumed, with 4 draws of what is not known");
    }
}
