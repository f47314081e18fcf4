//! The recoveries on the screen, and what of them there is room for.

use std::collections::BTreeSet;

use insight::diagnosis::Pace;
use insight::words;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Row;
use unicode_width::UnicodeWidthStr;

use super::palette::Palette;
use super::parts::{block, cell, table};
use super::scroll::Window;
use super::view::{RecoveryCells, View, recovery_cells};
use crate::style::plain;
use crate::svg::short;

/// Blocks of a bar, at least.
const BAR: usize = 10;
/// Columns of the share behind it, `< 0.1 %` at most.
const SHARE: usize = 7;

/// Draws those of a window.
pub(super) fn recoveries(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View,
    fit: &Fit,
    window: Window,
    paint: Palette,
) {
    let active = view.recoveries.iter().filter(|pace| !pace.ended).count();
    let title = format!("Recoveries: {active} active");
    if view.recoveries.is_empty() {
        return frame.render_widget(block(title, paint), area);
    }
    let in_sight = &view.recoveries[window.range()];
    let style = |pace: &Pace| if pace.ended { paint.dim() } else { Style::new() };
    let row = |pace: &Pace| {
        let cells = recovery_cells(pace);
        let texts = fit.columns.iter().map(|column| {
            let text = match column.header {
                NAME_OF_SHARD if fit.name_lines > 0 => String::new(),
                NAME_OF_SHARD => short_shard(&plain(&cells.name), fit.name_room),
                _ if column.is_bar => bar(cells.done, fit.bar),
                _ => plain(&(column.text)(&cells)),
            };
            let style = if column.is_bar && !pace.ended { paint.good() } else { Style::new() };
            cell(text, column.is_number).style(style)
        });
        Row::new(texts.collect::<Vec<_>>()).style(style(pace))
    };
    let mut rows: Vec<Row<'_>> = Vec::new();
    for pace in in_sight {
        // Names that need the whole width are drawn over empty rows: a cell has that of its column.
        rows.extend((0..fit.name_lines).map(|_| Row::new([""])));
        rows.push(row(pace));
    }
    let width = |column: &&RecoveryColumn| match column.header {
        PATH => Constraint::Length(fit.path_room as u16),
        _ if column.is_bar => Constraint::Length((fit.bar + SHARE) as u16),
        _ => column.width,
    };
    let widths: Vec<Constraint> = fit.columns.iter().map(width).collect();
    let header = fit.columns.iter().map(|column| cell(column.header.to_owned(), column.is_number));
    let header = Row::new(header.collect::<Vec<_>>());
    frame.render_widget(table(rows, &widths, header, title, paint), area);
    let at_line = |line: usize| Rect { y: area.y + 2 + line as u16, height: 1, ..area };
    for (at, pace) in in_sight.iter().enumerate() {
        for (line, text) in fit.names(&recovery_cells(pace)).into_iter().enumerate() {
            let place = at_line(at * fit.lines() + line);
            frame.render_widget(Line::styled(text, style(pace)), place);
        }
    }
    if let Some(hidden) = window.hidden() {
        let place = at_line(window.shown * fit.lines()).intersection(area);
        frame.render_widget(Line::styled(hidden, paint.dim()), place);
    }
}

/// What there is room for: columns, and for the names of shards and of nodes. The bar has what names leave.
pub(super) struct Fit {
    columns: Vec<&'static RecoveryColumn>,
    name_room: usize,
    path_room: usize,
    bar: usize,
    /// Lines that shard and nodes have to themselves, above the figures.
    name_lines: usize,
}

impl Fit {
    /// Nodes are named whole, and no two shards look alike: other columns make room for that, and where even that is
    /// not enough, the names have the width to themselves, and at last each node has a line. Only one that is longer
    /// than that is cut.
    pub(super) fn of(width: u16, recoveries: &[Pace]) -> Fit {
        let cells: Vec<RecoveryCells> = recoveries.iter().map(recovery_cells).collect();
        let name = |cells: &RecoveryCells| (plain(&cells.name), plain(&cells.path));
        let named: Vec<(String, String)> = cells.iter().map(name).collect();
        let longest = |of: fn(&(String, String)) -> &str| {
            named.iter().map(|names| of(names).width()).max().unwrap_or(0)
        };
        let (names, paths) = (longest(|both| both.0.as_str()), longest(|both| both.1.as_str()));
        let is_told =
            |column: &RecoveryColumn| cells.iter().any(|cells| (column.text)(cells) != "-");
        let mut columns: Vec<&'static RecoveryColumn> = RECOVERY_COLUMNS
            .iter()
            .filter(|column| width >= column.from_width && is_told(column))
            .collect();
        let figures: Vec<&'static RecoveryColumn> =
            columns.iter().filter(|column| column.header != PATH).copied().collect();
        let room = |columns: &[&RecoveryColumn]| {
            let taken: usize = columns.iter().map(|column| column.fixed_width() + 1).sum();
            (usize::from(width) + 1).saturating_sub(taken)
        };
        let differing = |room: usize| {
            let shown = named.iter().map(|(name, _)| short_shard(name, room));
            shown.collect::<BTreeSet<_>>().len()
        };
        let is_enough = |room: usize| room >= NAME_MIN && differing(room) == differing(usize::MAX);
        for header in MAKE_ROOM {
            if !is_enough(room(&columns).saturating_sub(paths)) {
                columns.retain(|column| column.header != header);
            }
        }
        let (width, in_row) = (usize::from(width), room(&columns).saturating_sub(paths));
        let on_a_line = width.saturating_sub(paths + 1);
        if is_enough(in_row) {
            let name_room = in_row.min(names.max(NAME_MIN));
            let bar = BAR + in_row - name_room;
            return Fit { columns, name_room, path_room: paths, bar, name_lines: 0 };
        }
        let bar = BAR + room(&figures);
        let (name_room, path_room, name_lines) = match is_enough(on_a_line) {
            true => (names.min(on_a_line), paths, 1),
            false if paths <= width => (width, width, 2),
            false => (width, width, 3),
        };
        Fit { columns: figures, name_room, path_room, bar, name_lines }
    }

    /// Lines of a recovery.
    pub(super) fn lines(&self) -> usize {
        self.name_lines + 1
    }

    /// What the lines above the figures say.
    fn names(&self, cells: &RecoveryCells) -> Vec<String> {
        let name = short_shard(&plain(&cells.name), self.name_room);
        let path = plain(&cells.path);
        match self.name_lines {
            0 => Vec::new(),
            1 => vec![format!(
                "{name}{} {path}",
                " ".repeat(self.name_room.saturating_sub(name.width()))
            )],
            2 => vec![name, path],
            _ => {
                let (from, to) = path.split_once(TO).unwrap_or((&path, ""));
                let node = |before: &str, node: &str| {
                    format!("{before}{}", short(node, self.path_room.saturating_sub(before.len())))
                };
                vec![name, node("", from), node(TO, to)]
            }
        }
    }
}

/// A name that is cut in its middle; the number of its shard is whole.
pub(super) fn short_shard(name: &str, room: usize) -> String {
    let (index, shard) = name.split_at(name.rfind('[').unwrap_or(name.len()));
    format!("{}{shard}", short(index, room.saturating_sub(shard.width())))
}

/// A column of recoveries, and the width of the terminal from which on it is shown.
struct RecoveryColumn {
    header: &'static str,
    width: Constraint,
    from_width: u16,
    is_number: bool,
    is_bar: bool,
    text: fn(&RecoveryCells) -> String,
}

impl RecoveryColumn {
    /// Its width; nothing of those that share what the others leave.
    fn fixed_width(&self) -> usize {
        match self.width {
            Constraint::Length(width) => usize::from(width),
            _ => 0,
        }
    }
}

const fn recovery_column(
    header: &'static str,
    width: Constraint,
    from_width: u16,
    text: fn(&RecoveryCells) -> String,
) -> RecoveryColumn {
    RecoveryColumn { header, width, from_width, is_number: false, is_bar: false, text }
}

const fn number_column(
    header: &'static str,
    width: u16,
    from_width: u16,
    text: fn(&RecoveryCells) -> String,
) -> RecoveryColumn {
    let column = recovery_column(header, Constraint::Length(width), from_width, text);
    RecoveryColumn { is_number: true, ..column }
}

/// The column that names the shard.
const NAME_OF_SHARD: &str = "shard";
/// The column that names the nodes, what stands between them, and the columns that make room for it, in this order:
/// what is done stands beside the bar as a share.
const PATH: &str = "from > to";
const TO: &str = " > ";
const MAKE_ROOM: [&str; 3] = ["since change", "stage", "done"];
/// Room for the name of a shard beside them, at least.
const NAME_MIN: usize = 10;

static RECOVERY_COLUMNS: [RecoveryColumn; 8] = [
    recovery_column(NAME_OF_SHARD, Constraint::Fill(1), 0, |cells| cells.name.clone()),
    recovery_column(PATH, Constraint::Fill(1), 0, |cells| cells.path.clone()),
    recovery_column("stage", Constraint::Length(12), 126, |cells| cells.stage.clone()),
    RecoveryColumn {
        is_bar: true,
        ..recovery_column("", Constraint::Length((BAR + SHARE) as u16), 60, |_| String::new())
    },
    number_column("done", 19, 80, |cells| cells.amount.clone()),
    number_column("now", 11, 0, |cells| cells.now.clone()),
    number_column("since change", 12, 140, |cells| cells.since.clone()),
    number_column("eta", 16, 0, |cells| cells.eta.clone()),
];

fn bar(done: Option<f64>, blocks: usize) -> String {
    let Some(done) = done else { return String::new() };
    let full = (done * blocks as f64).round() as usize;
    let share = words::done(done);
    format!("{}{}{share:>SHARE$}", "█".repeat(full), "░".repeat(blocks - full))
}
