//! A view as a screen.

use std::collections::BTreeSet;

use insight::diagnosis::{Pace, TimeToGreen};
use insight::words;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};
use unicode_width::UnicodeWidthStr;

use super::nodes::node_cells;
use super::palette::Palette;
use super::trail::Trails;
use super::verdict;
use super::view::{RecoveryCells, View, recovery_cells};
use crate::style::{plain, wrap};
use crate::svg::{cut, short};

/// Rows of the parts that have less to say.
const SIDE_ROWS_MAX: usize = 6;
/// Rows of what went wrong.
const TROUBLE_ROWS_MAX: usize = 4;
/// Blocks of a bar, at least.
const BAR: usize = 10;
/// Columns of the share behind it, `< 0.1 %` at most.
const SHARE: usize = 7;
/// Below this width there is no room for names before the state of the cluster.
const NARROW: u16 = 80;

/// Draws a view, and what went through its nodes lately; with `color` off nothing but bold and dim is used.
pub fn draw(frame: &mut Frame<'_>, view: &View, trails: &Trails, color: bool) {
    let paint = Palette { color };
    let area = frame.area();
    let followers = view.followers.len().min(SIDE_ROWS_MAX);
    let waiting = view.waiting.len().min(SIDE_ROWS_MAX);
    let titled = |rows: usize| if rows == 0 { 0 } else { rows as u16 + 1 };
    let mut held = verdict::lines(view, area.width, paint);
    // However much is found, the recoveries that it is about must have room as well.
    let verdict_rows = (held.len() as u16 + 1).min((area.height / 2).max(3));
    let node_rows = (view.nodes.len() as u16 + 2).min((area.height / 3).max(4));
    let trouble = view.trouble.as_ref();
    let trouble = trouble.map_or_else(String::new, |text| wrap(&plain(text), area.width.into(), 2));
    let head_rows = 2 + trouble.lines().count().min(TROUBLE_ROWS_MAX) as u16;
    let rest = head_rows + node_rows + titled(followers) + titled(waiting) + verdict_rows;
    // What the screen has no room for takes none from what it shows.
    let in_sight = view.recoveries.len().min(area.height.into());
    let fit = Fit::of(area.width, &view.recoveries[..in_sight]);
    let [needed, least] = [in_sight * fit.lines() + 2, 3 + fit.lines()].map(|rows| rows as u16);
    let recovery_rows = needed.min(area.height.saturating_sub(rest)).max(needed.min(least)).max(4);
    let spare = area.height.saturating_sub(rest.saturating_add(recovery_rows));
    held.truncate(usize::from(verdict_rows) - 1);
    held.extend(verdict::notes(view, area.width, spare.into(), paint));
    let [head, recoveries, nodes, follow, wait, verdict, _] = Layout::vertical([
        Constraint::Length(head_rows),
        Constraint::Length(recovery_rows),
        Constraint::Length(node_rows),
        Constraint::Length(titled(followers)),
        Constraint::Length(titled(waiting)),
        Constraint::Length(held.len() as u16 + 1),
        Constraint::Fill(1),
    ])
    .areas(area);
    self::head(frame, head, view, &trouble, paint);
    self::recoveries(frame, recoveries, view, &fit, paint);
    self::nodes(frame, nodes, view, trails, paint);
    let followed: Vec<_> = view.followers.iter().map(|line| (line.as_str(), 1)).collect();
    lines(frame, follow, "Followers", &followed, 0, paint);
    let waits: Vec<_> = view.waiting.iter().map(|line| (line.text.as_str(), line.copies)).collect();
    lines(frame, wait, "Waiting", &waits, view.waiting_more, paint);
    let title = match &view.found[..] {
        [] => "Verdict",
        found if found.iter().all(|one| one.over) => "What held",
        _ => "What holds",
    };
    frame.render_widget(Paragraph::new(held).block(block(title.to_owned(), paint)), verdict);
    if view.trouble.is_some() {
        // What is shown below is no longer current.
        let below = Rect { y: head.bottom(), height: area.height - head.height, ..area };
        frame.buffer_mut().set_style(below, paint.dim());
    }
}

/// A part of the screen: a line above it with its title.
fn block(title: String, paint: Palette) -> Block<'static> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(paint.dim())
        .title(Span::styled(format!("{title} "), Style::new().add_modifier(Modifier::BOLD)))
}

fn head(frame: &mut Frame<'_>, area: Rect, view: &View, trouble: &str, paint: Palette) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = plain(&view.title);
    let health = Span::styled(plain(&view.health), paint.health(&view.health).patch(bold));
    let [program, word, gap, quits] = ["narrows watch  ", "  health ", "  ", "  q quits"]
        .map(|text| Span::styled(text, paint.dim()));
    let green = Span::styled(until_green(view), paint.dim());
    // Where not all of it fits, the state comes before the names, and how to leave before the program's name.
    let whole_title = Span::styled(title.clone(), bold);
    let whole =
        Line::from_iter([&program, &whole_title, &word, &health, &green, &quits].map(Clone::clone));
    let first = match usize::from(area.width) {
        width if width < NARROW.into() => {
            let room = width.saturating_sub(health.width() + green.width() + gap.width());
            let title = Span::styled(short_title(&title, room), bold);
            Line::from(vec![health, green, gap, title])
        }
        width if width < whole.width() => Line::from(vec![whole_title, word, health, green, quits]),
        _ => whole,
    };
    let mut lines = vec![first, Line::styled(plain(&view.about), paint.dim())];
    lines.extend(trouble.lines().map(|line| Line::styled(line.to_owned(), paint.warning())));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Name and version of a cluster in so many columns: a long name is cut rather than the version, which would be read as
/// another one.
fn short_title(title: &str, room: usize) -> String {
    let over = title.chars().count().saturating_sub(room);
    let Some((name, version)) = title.split_once("  ").filter(|_| over > 0) else {
        return title.to_owned();
    };
    let kept = name.chars().count().saturating_sub(over + 1);
    let name: String = name.chars().take(kept).collect();
    if name.is_empty() { version.to_owned() } else { format!("{name}…  {version}") }
}

/// When it will be green, where that is worth a word.
fn until_green(view: &View) -> String {
    match &view.green {
        TimeToGreen::Within { .. } | TimeToGreen::Partly { .. } => {
            format!("  green {}", view.green.words())
        }
        TimeToGreen::Now | TimeToGreen::Unknown { .. } => String::new(),
    }
}

fn recoveries(frame: &mut Frame<'_>, area: Rect, view: &View, fit: &Fit, paint: Palette) {
    let active = view.recoveries.iter().filter(|pace| !pace.ended).count();
    let title = format!("Recoveries: {active} active");
    let room = usize::from(area.height).saturating_sub(2);
    let all = view.recoveries.len();
    let fits = all * fit.lines() <= room;
    let shown = if fits { all } else { room.saturating_sub(1) / fit.lines() };
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
    for pace in &view.recoveries[..shown] {
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
    for (at, pace) in view.recoveries[..shown].iter().enumerate() {
        for (line, text) in fit.names(&recovery_cells(pace)).into_iter().enumerate() {
            let place = at_line(at * fit.lines() + line);
            frame.render_widget(Line::styled(text, style(pace)), place);
        }
    }
    if shown < all {
        let more = Line::styled(format!("and {} more", all - shown), paint.dim());
        frame.render_widget(more, at_line(shown * fit.lines()).intersection(area));
    }
}

/// What there is room for: columns, and for the names of shards and of nodes. The bar has what names leave.
struct Fit {
    columns: Vec<&'static RecoveryColumn>,
    name_room: usize,
    path_room: usize,
    bar: usize,
    /// Lines that shard and nodes have to themselves, above the figures.
    name_lines: usize,
}

impl Fit {
    /// Nodes are named whole, and no two shards look alike: other columns make room for that, and where even that is
    /// not enough, the names have the width to themselves.
    fn of(width: u16, recoveries: &[Pace]) -> Fit {
        let name = |pace: &Pace| {
            let cells = recovery_cells(pace);
            (plain(&cells.name), plain(&cells.path))
        };
        let named: Vec<(String, String)> = recoveries.iter().map(name).collect();
        let longest = |of: fn(&(String, String)) -> &str| {
            named.iter().map(|names| of(names).width()).max().unwrap_or(0)
        };
        let (names, paths) = (longest(|both| both.0.as_str()), longest(|both| both.1.as_str()));
        let mut columns: Vec<&'static RecoveryColumn> =
            RECOVERY_COLUMNS.iter().filter(|column| width >= column.from_width).collect();
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
            false => (width, width, 2),
        };
        Fit { columns: figures, name_room, path_room, bar, name_lines }
    }

    /// Lines of a recovery.
    fn lines(&self) -> usize {
        self.name_lines + 1
    }

    /// What the lines above the figures say.
    fn names(&self, cells: &RecoveryCells) -> Vec<String> {
        let name = short_shard(&plain(&cells.name), self.name_room);
        let path = short_path(&plain(&cells.path), self.path_room);
        match self.name_lines {
            0 => Vec::new(),
            1 => vec![format!(
                "{name}{} {path}",
                " ".repeat(self.name_room.saturating_sub(name.width()))
            )],
            _ => vec![name, path],
        }
    }
}

/// A name that is cut in its middle; the number of its shard is whole.
fn short_shard(name: &str, room: usize) -> String {
    let (index, shard) = name.split_at(name.rfind('[').unwrap_or(name.len()));
    format!("{}{shard}", short(index, room.saturating_sub(shard.width())))
}

/// A path whose nodes have room; where they have not, each is cut in its own middle.
fn short_path(path: &str, room: usize) -> String {
    match path.split_once(TO).filter(|_| path.width() > room) {
        Some((from, to)) => {
            let each = room.saturating_sub(TO.len()) / 2;
            format!("{}{TO}{}", short(from, each), short(to, each))
        }
        None => path.to_owned(),
    }
}

fn cell(text: String, is_number: bool) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if is_number { line.right_aligned() } else { line })
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

fn nodes(frame: &mut Frame<'_>, area: Rect, view: &View, trails: &Trails, paint: Palette) {
    let room = usize::from(area.height).saturating_sub(2);
    let nodes = view.nodes.busy_first(room);
    let shown = if nodes.len() > room { room.saturating_sub(1) } else { nodes.len() };
    let hidden = nodes.len() - shown;
    let more = if hidden > 0 { format!("and {hidden} more") } else { String::new() };
    let names = nodes[..shown].iter().map(|node| node.name.width());
    let longest = names.chain([more.len()]).max().unwrap_or(0);
    let (columns, name_room, trail_room) = node_columns(area.width, longest);
    let most = trails.most();
    let row = |node: &&insight::diagnosis::NodePace| {
        let busy = [
            (CPU, node.cpu_of_all && node.cpu.is_some_and(|cpu| cpu >= BUSY)),
            (DISK, node.disk_busy.is_some_and(|busy| busy >= BUSY)),
            (PAUSING, node.paused.is_some_and(|paused| paused >= PAUSES)),
        ];
        let mut texts = node_cells(node).to_vec();
        texts.push(trails.of(&node.name, most, trail_room));
        let cells = columns.iter().map(|column| {
            let is_busy = busy.contains(&(column.of, true));
            let style = if is_busy { paint.warning() } else { Style::new() };
            let text = plain(&texts[column.of]);
            let text = if column.of == NAME { short(&text, name_room) } else { text };
            cell(text, column.of != NAME).style(style)
        });
        let style = if node.gone { paint.warning() } else { Style::new() };
        Row::new(cells.collect::<Vec<_>>()).style(style)
    };
    let mut rows: Vec<Row<'_>> = nodes[..shown].iter().map(row).collect();
    if hidden > 0 {
        rows.push(Row::new(vec![more]).style(paint.dim()));
    }
    let widths: Vec<Constraint> = columns.iter().map(|column| column.width).collect();
    let header = columns.iter().map(|column| cell(column.header.to_owned(), column.of != NAME));
    let header = Row::new(header.collect::<Vec<_>>());
    let title = match trails.of_all(TRAIL_OF_ALL) {
        all if all.is_empty() || area.width < TRAIL_FROM => "Nodes".to_owned(),
        all => format!("Nodes, rx + tx of all {all}"),
    };
    frame.render_widget(table(rows, &widths, header, title, paint), area);
}

/// The columns that there is room for, the room for names, and that for what went through each node, which has what
/// the others leave. Nodes are named whole: columns make room for them, those first that only wide terminals show.
fn node_columns(width: u16, longest: usize) -> (Vec<NodeColumn>, usize, usize) {
    let is_shown = |column: &NodeColumn| width >= column.from_width;
    let mut columns: Vec<NodeColumn> = NODE_COLUMNS.into_iter().filter(is_shown).collect();
    let room = loop {
        let fixed: usize = columns.iter().map(NodeColumn::taken).sum();
        let room = usize::from(width).saturating_sub(fixed);
        let widest = columns.iter().map(|column| column.from_width).max().unwrap_or(0);
        if room >= longest || widest == 0 {
            break room;
        }
        columns.retain(|column| column.from_width < widest);
    };
    let trail = room.saturating_sub(longest + 1);
    if trail < TRAIL_MIN {
        return (columns, room, 0);
    }
    let header = if trail < TRAIL_HEADER.len() { TRAIL_HEADER_SHORT } else { TRAIL_HEADER };
    columns.push(node_column(header, TRAIL, trail as u16, 0));
    (columns, longest, trail)
}

/// A column of nodes: which of their cells, and the width of the terminal from which on it is shown.
#[derive(Clone, Copy)]
struct NodeColumn {
    header: &'static str,
    of: usize,
    width: Constraint,
    from_width: u16,
}

impl NodeColumn {
    /// Its width, and the space before it; nothing of the names, which have what is left.
    fn taken(&self) -> usize {
        match self.width {
            Constraint::Length(width) => usize::from(width) + 1,
            _ => 0,
        }
    }
}

const fn node_column(header: &'static str, of: usize, width: u16, from_width: u16) -> NodeColumn {
    NodeColumn { header, of, width: Constraint::Length(width), from_width }
}

/// Blocks of the line that shows what went through all nodes, from which width on there is one, and how few blocks tell
/// nothing of a node.
const TRAIL_OF_ALL: usize = 24;
const TRAIL_FROM: u16 = 60;
const TRAIL_MIN: usize = 8;
const TRAIL_HEADER: &str = "rx + tx, two minutes";
const TRAIL_HEADER_SHORT: &str = "rx + tx";

const NODE_COLUMNS: [NodeColumn; 7] = [
    NodeColumn { header: "node", of: NAME, width: Constraint::Fill(1), from_width: 0 },
    node_column("cpu", CPU, 11, 0),
    node_column("disk r/w MB/s (busy)", DISK, 22, 56),
    node_column("net rx/tx MB/s", 3, 17, 68),
    node_column("pausing", PAUSING, 8, 80),
    node_column("out / in", 5, 9, 98),
    node_column("heap", 6, 6, 88),
];

/// The column that names them.
const NAME: usize = 0;
/// Columns of nodes that are painted where they are near their limit, and from where on they are.
const CPU: usize = 1;
const DISK: usize = 2;
const PAUSING: usize = 4;
/// The cell behind those of [`node_cells`].
const TRAIL: usize = 7;
const BUSY: f64 = 0.9;
/// Transfers that pause at a time, on average.
const PAUSES: f64 = 0.03;

fn table<'a>(
    rows: Vec<Row<'a>>,
    widths: &[Constraint],
    header: Row<'a>,
    title: String,
    paint: Palette,
) -> Table<'a> {
    Table::new(rows, widths.to_vec())
        .header(header.style(paint.dim()))
        .column_spacing(1)
        .block(block(title, paint))
}

/// Lines, each with how many it tells of; `besides` have none.
fn lines(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &'static str,
    all: &[(&str, usize)],
    besides: usize,
    paint: Palette,
) {
    if all.is_empty() || area.height == 0 {
        return;
    }
    let room = usize::from(area.height).saturating_sub(1);
    let is_whole = all.len() <= room && besides == 0;
    let shown = if is_whole { room } else { room.saturating_sub(1) };
    let width = area.width.into();
    let fit = |(line, _): &(&str, usize)| Line::from(fitting(&plain(line), width));
    let mut text: Vec<Line<'_>> = all.iter().take(shown).map(fit).collect();
    if !is_whole {
        let hidden: usize = all.iter().skip(shown).map(|(_, count)| count).sum();
        text.push(Line::styled(format!("and {} more", hidden + besides), paint.dim()));
    }
    frame.render_widget(Paragraph::new(text).block(block(title.to_owned(), paint)), area);
}

/// What is said of a shard, on one line: its name leaves half of it, and what is cut of the rest is its end.
fn fitting(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let line = match line.split_once(": ") {
        Some((name, said)) => format!("{}: {said}", short_shard(name, width / 2)),
        None => line.to_owned(),
    };
    cut(&line, width)
}

fn bar(done: Option<f64>, blocks: usize) -> String {
    let Some(done) = done else { return String::new() };
    let full = (done * blocks as f64).round() as usize;
    let share = words::done(done);
    format!("{}{}{share:>SHARE$}", "█".repeat(full), "░".repeat(blocks - full))
}
