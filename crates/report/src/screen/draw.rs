//! A view as a screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, Wrap};

use super::view::{RecoveryCells, View, node_cells, recovery_cells};
use crate::style::plain;

/// Rows of the parts that have less to say.
const SIDE_ROWS_MAX: usize = 6;
const BAR: usize = 12;

/// Draws a view; with `color` off nothing but bold and dim is used.
pub fn draw(frame: &mut Frame<'_>, view: &View, color: bool) {
    let paint = Palette { color };
    let area = frame.area();
    let followers = view.followers.len().min(SIDE_ROWS_MAX);
    let waiting = view.waiting.len().min(SIDE_ROWS_MAX);
    let titled = |rows: usize| if rows == 0 { 0 } else { rows as u16 + 1 };
    // The verdict may take three lines of an ordinary terminal.
    let verdict_rows = (view.verdict.chars().count() as u16 / area.width.max(1) + 1).min(4) + 1;
    let node_rows = (view.nodes.len() as u16 + 2).min((area.height / 3).max(4));
    let [head, recoveries, nodes, follow, wait, verdict] = Layout::vertical([
        Constraint::Length(2 + u16::from(view.trouble.is_some())),
        Constraint::Min(4),
        Constraint::Length(node_rows),
        Constraint::Length(titled(followers)),
        Constraint::Length(titled(waiting)),
        Constraint::Length(verdict_rows),
    ])
    .areas(area);
    self::head(frame, head, view, paint);
    self::recoveries(frame, recoveries, view, paint);
    self::nodes(frame, nodes, view, paint);
    lines(frame, follow, "Followers", &view.followers, paint);
    lines(frame, wait, "Waiting", &view.waiting, paint);
    let style = if view.has_findings { paint.warning() } else { paint.good() };
    let text =
        Paragraph::new(Span::styled(plain(&view.verdict), style.add_modifier(Modifier::BOLD)))
            .wrap(Wrap { trim: true })
            .block(Block::new().borders(Borders::TOP).border_style(paint.dim()));
    frame.render_widget(text, verdict);
}

#[derive(Clone, Copy)]
struct Palette {
    color: bool,
}

impl Palette {
    fn of(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    fn good(self) -> Style {
        self.of(Color::Green)
    }

    fn warning(self) -> Style {
        self.of(Color::Yellow)
    }

    fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

fn head(frame: &mut Frame<'_>, area: Rect, view: &View, paint: Palette) {
    let mut lines = vec![
        Line::from(vec![
            Span::styled("narrows watch  ", paint.dim()),
            Span::styled(plain(&view.title), Style::new().add_modifier(Modifier::BOLD)),
            Span::styled("  q quits", paint.dim()),
        ]),
        Line::styled(plain(&view.about), paint.dim()),
    ];
    if let Some(trouble) = &view.trouble {
        lines.push(Line::styled(plain(trouble), paint.warning()));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn recoveries(frame: &mut Frame<'_>, area: Rect, view: &View, paint: Palette) {
    let active = view.recoveries.iter().filter(|pace| !pace.ended).count();
    let title = format!("Recoveries: {active} active");
    let room = usize::from(area.height).saturating_sub(3);
    let hidden = view.recoveries.len().saturating_sub(room);
    let shown = if hidden > 0 { room.saturating_sub(1) } else { room };
    let columns: Vec<&RecoveryColumn> =
        RECOVERY_COLUMNS.iter().filter(|column| area.width >= column.from_width).collect();
    let row = |pace: &insight::diagnosis::Pace| {
        let cells = recovery_cells(pace);
        let texts = columns.iter().map(|column| Cell::from(plain(&(column.text)(&cells))));
        let style = if pace.ended { paint.dim() } else { Style::new() };
        Row::new(texts.collect::<Vec<_>>()).style(style)
    };
    let mut rows: Vec<Row<'_>> = view.recoveries.iter().take(shown).map(row).collect();
    if hidden > 0 {
        let more = format!("and {} more", view.recoveries.len() - shown);
        rows.push(Row::new(vec![more]).style(paint.dim()));
    }
    let widths: Vec<Constraint> = columns.iter().map(|column| column.width).collect();
    let header: Vec<&str> = columns.iter().map(|column| column.header).collect();
    frame.render_widget(table(rows, &widths, &header, title, paint), area);
}

/// A column of recoveries, and the width of the terminal from which on it is shown.
struct RecoveryColumn {
    header: &'static str,
    width: Constraint,
    from_width: u16,
    text: fn(&RecoveryCells) -> String,
}

const RECOVERY_COLUMNS: [RecoveryColumn; 8] = [
    RecoveryColumn {
        header: "shard",
        width: Constraint::Fill(2),
        from_width: 0,
        text: |cells| cells.name.clone(),
    },
    RecoveryColumn {
        header: "from > to",
        width: Constraint::Fill(3),
        from_width: 110,
        text: |cells| cells.path.clone(),
    },
    RecoveryColumn {
        header: "stage",
        width: Constraint::Length(12),
        from_width: 100,
        text: |cells| cells.stage.clone(),
    },
    RecoveryColumn {
        header: "",
        width: Constraint::Length(BAR as u16 + 5),
        from_width: 60,
        text: |cells| bar(cells.done),
    },
    RecoveryColumn {
        header: "done",
        width: Constraint::Length(19),
        from_width: 80,
        text: |cells| cells.amount.clone(),
    },
    RecoveryColumn {
        header: "now",
        width: Constraint::Length(11),
        from_width: 0,
        text: |cells| cells.now.clone(),
    },
    RecoveryColumn {
        header: "since chg",
        width: Constraint::Length(11),
        from_width: 120,
        text: |cells| cells.since.clone(),
    },
    RecoveryColumn {
        header: "eta",
        width: Constraint::Length(16),
        from_width: 0,
        text: |cells| cells.eta.clone(),
    },
];

fn nodes(frame: &mut Frame<'_>, area: Rect, view: &View, paint: Palette) {
    let rows: Vec<Row<'_>> = view
        .nodes
        .iter()
        .map(|node| {
            let style = if node.gone { paint.warning() } else { Style::new() };
            let cells = node_cells(node).into_iter().map(|text| Cell::from(plain(&text)));
            Row::new(cells.collect::<Vec<_>>()).style(style)
        })
        .collect();
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(11),
        Constraint::Length(22),
        Constraint::Length(17),
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(6),
    ];
    let header =
        ["node", "cpu", "disk r/w MB/s (busy)", "net rx/tx MB/s", "paused", "out / in", "heap"];
    frame.render_widget(table(rows, &widths, &header, "Nodes".to_owned(), paint), area);
}

fn table<'a>(
    rows: Vec<Row<'a>>,
    widths: &[Constraint],
    header: &[&'a str],
    title: String,
    paint: Palette,
) -> Table<'a> {
    Table::new(rows, widths.to_vec())
        .header(Row::new(header.to_vec()).style(paint.dim()))
        .column_spacing(1)
        .block(
            Block::new()
                .borders(Borders::TOP)
                .border_style(paint.dim())
                .title(Span::styled(title, Style::new().add_modifier(Modifier::BOLD))),
        )
}

fn lines(frame: &mut Frame<'_>, area: Rect, title: &'static str, all: &[String], paint: Palette) {
    if all.is_empty() || area.height == 0 {
        return;
    }
    let room = usize::from(area.height).saturating_sub(1);
    let hidden = all.len().saturating_sub(room);
    let shown = if hidden > 0 { room.saturating_sub(1) } else { room };
    let mut text: Vec<Line<'_>> =
        all.iter().take(shown).map(|line| Line::from(plain(line))).collect();
    if hidden > 0 {
        text.push(Line::styled(format!("and {} more", all.len() - shown), paint.dim()));
    }
    let block = Block::new()
        .borders(Borders::TOP)
        .border_style(paint.dim())
        .title(Span::styled(title, Style::new().add_modifier(Modifier::BOLD)));
    frame.render_widget(Paragraph::new(text).block(block), area);
}

fn bar(done: Option<f64>) -> String {
    let Some(done) = done else { return String::new() };
    let full = (done * BAR as f64).round() as usize;
    format!("{}{}{:>4.0}%", "█".repeat(full), "░".repeat(BAR - full), (done * 100.0).floor())
}
