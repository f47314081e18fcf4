//! The table of the terminal, with the finding above and the verdicts below.

use std::path::Path;

use insight::{Finished, Progress, Summary, Variant, stats::Interval, words};
use record::units;
use unicode_width::UnicodeWidthStr;

use crate::changed::not_as_planned;
use crate::grid::{dash, signed};
use crate::style::{Paint, Style, headline, paragraph, plain};
use crate::svg::short;

/// A column: its header, its alignment, and how dispensable it is (0 stays whatever the width).
struct Column {
    header: &'static str,
    right: bool,
    dispensable: u8,
    cell: fn(&Summary<'_>, &Variant) -> String,
}

/// How dispensable what is published is: the last to be left out.
const PUBLISHED: u8 = 4;
/// As much of a name is shown at any width.
const NAME: usize = 12;

const COLUMNS: [Column; 12] = [
    Column { header: "variant", right: false, dispensable: 0, cell: |_, v| plain(&v.name) },
    Column { header: "time", right: true, dispensable: 0, cell: time },
    Column {
        header: "MB/s",
        right: true,
        dispensable: 0,
        cell: |_, v| figure(v, |f| words::mb_per_s(f.bytes_per_s)),
    },
    Column {
        header: "of link",
        right: true,
        dispensable: 2,
        cell: |_, v| figure(v, |f| f.link_share.map_or_else(dash, words::percent)),
    },
    Column { header: "gain", right: true, dispensable: 0, cell: gain },
    Column { header: "held by", right: false, dispensable: 0, cell: held_by },
    Column { header: "share", right: true, dispensable: 0, cell: |_, v| figure(v, share) },
    Column { header: "published", right: true, dispensable: PUBLISHED, cell: published },
    Column {
        header: "ours off by",
        right: true,
        dispensable: 3,
        cell: |summary, v| summary.off_published(v).map_or_else(dash, off_by),
    },
    Column {
        header: "its gain",
        right: true,
        dispensable: 1,
        cell: |_, v| v.published_gain.map_or_else(dash, words::gain),
    },
    Column { header: "MB/s a node", right: true, dispensable: PUBLISHED, cell: node_rate },
    Column {
        header: "its MB/s",
        right: true,
        dispensable: PUBLISHED,
        cell: |summary, v| published_rate(summary, v).map_or_else(dash, words::mb_per_s),
    },
];

/// The share of what held it; what is inferred has none.
fn share(figures: &Finished) -> String {
    match figures.verdict.limit {
        Some(_) if !figures.limits.is_empty() => words::percent(figures.verdict.share),
        _ => dash(),
    }
}

fn figure(variant: &Variant, show: impl Fn(&Finished) -> String) -> String {
    variant.finished().map_or_else(dash, show)
}

fn interval(interval: Option<Interval>, show: impl Fn(f64) -> String) -> String {
    // Laps that are copies of one have none.
    let ends = interval.map(|i| [show(i.low), show(i.high)]).filter(|[low, high]| low != high);
    ends.map_or_else(String::new, |[low, high]| format!(" [{low}, {high}]"))
}

fn time(summary: &Summary<'_>, variant: &Variant) -> String {
    figure(variant, |f| {
        let laps = interval(f.seconds_interval, units::show_seconds);
        let [ours, _] = both_times(summary, variant);
        format!("{}{laps}", ours.unwrap_or_default())
    })
}

fn published(summary: &Summary<'_>, variant: &Variant) -> String {
    let [_, theirs] = both_times(summary, variant);
    theirs.unwrap_or_else(dash)
}

/// Our time and the published one; where they compare, both are written alike.
pub(crate) fn both_times(summary: &Summary<'_>, variant: &Variant) -> [Option<String>; 2] {
    let both = [variant.finished().map(|f| f.seconds), variant.published_s];
    match both {
        [Some(ours), Some(theirs)] if summary.off_published(variant).is_some() => [
            Some(units::show_seconds_beside(ours, theirs)),
            Some(units::show_seconds_beside(theirs, ours)),
        ],
        _ => both.map(|seconds| seconds.map(units::show_seconds)),
    }
}

/// Bytes a second of a node that are published for a variant.
pub(crate) fn published_rate(summary: &Summary<'_>, variant: &Variant) -> Option<f64> {
    let info = summary.manifest.variants.iter().find(|info| info.name == variant.name)?;
    info.published.as_ref()?.node_bytes_per_s
}

/// Ours, where any is published to compare with.
fn node_rate(summary: &Summary<'_>, variant: &Variant) -> String {
    let compares = summary.variants.iter().any(|other| published_rate(summary, other).is_some());
    let rate = variant.finished().and_then(|f| f.node_bytes_per_s);
    rate.filter(|_| compares).map_or_else(dash, words::mb_per_s)
}

/// That bytes are counted before compression, where a share of the link shows it.
pub(crate) fn before_compression(summary: &Summary<'_>) -> Option<String> {
    let mut shares = summary.finished().filter_map(|(_, figures)| figures.link_share);
    let said = shares.find_map(words::before_compression)?;
    Some(format!("More than 100 % of the link is counted {said}."))
}

/// How far ours is off what is published, `+41.2 %`.
pub(crate) fn off_by(share: f64) -> String {
    format!("{} %", signed(share * 100.0))
}

fn gain(_: &Summary<'_>, variant: &Variant) -> String {
    figure(variant, |f| {
        let laps = interval(f.gain_interval, words::three_digits);
        f.gain.map_or_else(dash, |gain| format!("{}{laps}", words::gain(gain)))
    })
}

fn held_by(_: &Summary<'_>, variant: &Variant) -> String {
    match &variant.progress {
        Progress::Finished(f) => {
            f.verdict.limit.map_or("unknown", |limit| limit.label()).to_owned()
        }
        Progress::NotRun => "not run".to_owned(),
        Progress::Partial { recovered_bytes, total_bytes, .. } if *total_bytes > 0 => {
            let share = *recovered_bytes as f64 / *total_bytes as f64;
            format!("stopped at {}", words::done(share))
        }
        Progress::Partial { .. } => "stopped".to_owned(),
    }
}

/// The table of a run for a terminal. `page` is the path of its HTML report, where one was written.
/// Ends with a line break.
pub fn table(summary: &Summary<'_>, style: Style, page: Option<&Path>) -> String {
    let manifest = summary.manifest;
    if let Some(diagnosis) = &summary.watched {
        let title = format!("{} {}", manifest.about.trim_end_matches('.'), manifest.run);
        return crate::screen::findings(diagnosis, &title, style);
    }
    let run = format!("{} on {}, run {}", manifest.plan, manifest.target, manifest.run);
    let mut blocks = headline(&summary.headline, &summary.details, style);
    blocks.push(paragraph(style, Some(Paint::Dim), &plain(&run), 0));
    let report = page.map(|page| format!("Report: {}", plain(&page.display().to_string())));
    if summary.loads.is_empty() && summary.following.is_empty() {
        if !summary.variants.is_empty() {
            blocks.push(String::new());
            blocks.extend(rows(summary, style));
        }
        blocks.push(String::new());
        let remarks = remarks(summary).into_iter().chain(report.map(|text| (None, text)));
        blocks.extend(remarks.map(|(paint, text)| paragraph(style, paint, &text, 2)));
    } else {
        blocks.extend(match summary.loads.is_empty() {
            true => crate::following::of_run(summary, style),
            false => crate::load::of_run(summary, style),
        });
        blocks.extend(not_as_planned(summary).map(|text| paragraph(style, None, &text, 2)));
        let gap = |gap: &String| paragraph(style, Some(Paint::Warning), &plain(gap), 2);
        blocks.extend(summary.gaps.iter().map(gap));
        blocks.extend(report);
    }
    blocks.join("\n") + "\n"
}

/// The grid with its frame dim and the fastest of several variants marked.
fn rows(summary: &Summary<'_>, style: Style) -> Vec<String> {
    let fastest = summary.slowest_and_fastest().map(|(slow, fast)| (slow.name != fast.name, fast));
    let paint = |index: usize| match index.checked_sub(2) {
        None => Some(Paint::Dim),
        Some(variant) => {
            let name = &summary.variants[variant].name;
            fastest.filter(|(several, fast)| *several && fast.name == *name).map(|_| Paint::Good)
        }
    };
    let grid = grid(summary, usize::from(style.width));
    grid.iter().enumerate().map(|(index, row)| style.paint(paint(index), row)).collect()
}

/// The lines of the table: header, rule, one line a variant. The most dispensable columns are left
/// out until the rest fits. Long names are cut before what is published is left out.
fn grid(summary: &Summary<'_>, width: usize) -> Vec<String> {
    let empty = |column: &Column| summary.variants.iter().all(|v| (column.cell)(summary, v) == "-");
    let shown = |least: u8| -> Vec<&Column> {
        let keep = |c: &&Column| c.dispensable == 0 || (c.dispensable > least && !empty(c));
        COLUMNS.iter().filter(keep).collect()
    };
    let widest = |lines: &[String]| lines.iter().map(|line| line.width()).max().unwrap_or(0);
    let names = summary.variants.iter().map(|variant| plain(&variant.name).width());
    let longest = names.max().unwrap_or(0);
    let tried = |least: u8| {
        let columns = shown(least);
        let lines = render(summary, &columns, longest);
        match widest(&lines).saturating_sub(width) {
            over if over > 0 && least + 1 >= PUBLISHED => {
                render(summary, &columns, longest.saturating_sub(over).max(NAME))
            }
            _ => lines,
        }
    };
    let fits = |lines: &Vec<String>| widest(lines) <= width;
    (0..PUBLISHED).map(tried).find(fits).unwrap_or_else(|| tried(PUBLISHED))
}

/// The lines of these columns, names cut where they are longer than `longest`.
fn render(summary: &Summary<'_>, columns: &[&Column], longest: usize) -> Vec<String> {
    let headers = columns.iter().map(|column| (column.header, column.right));
    let row = |variant: &Variant| -> Vec<String> {
        let cells = columns.iter().map(|column| (column.cell)(summary, variant));
        let mut cells: Vec<String> = cells.collect();
        cells[0] = short(&cells[0], longest);
        cells
    };
    crate::grid::grid(headers, summary.variants.iter().map(row))
}

/// What stands below the table, each with its colour.
fn remarks(summary: &Summary<'_>) -> Vec<(Option<Paint>, String)> {
    let mut remarks = Vec::new();
    let judged = |what: &str, variant: &Variant, figures: &Finished| {
        (None, plain(&format!("{what}{}, {}.", variant.name, figures.verdict.text)))
    };
    if let Some((slow, fast)) = summary.slowest_and_fastest() {
        let one = slow.name == fast.name;
        if let (false, Some(figures)) = (one, slow.finished()) {
            remarks.push(judged("Slowest is ", slow, figures));
        }
        if let Some(figures) = fast.finished() {
            remarks.push(judged(if one { "" } else { "Fastest is " }, fast, figures));
        }
    }
    let of_run = link(summary).into_iter().chain(before_compression(summary));
    remarks.extend(of_run.chain(not_as_planned(summary)).map(|text| (None, text)));
    remarks.extend(summary.comparison.iter().map(|text| (Some(Paint::Dim), text.clone())));
    remarks.extend(summary.gaps.iter().map(|gap| (Some(Paint::Warning), plain(gap))));
    remarks
}

/// The link, and what its emulator carries at most on this machine.
fn link(summary: &Summary<'_>) -> Option<String> {
    let link = summary.manifest.link.as_ref()?;
    let own = link.ceiling_bytes_per_s.map_or_else(String::new, |rate| {
        format!("; without delay and rate it carried {} on this machine", words::rate(rate as f64))
    });
    Some(format!(
        "Link: {} round trip, {}{own}.",
        words::rtt(link.rtt_ms),
        words::rate(link.rate_bytes_per_s as f64)
    ))
}
