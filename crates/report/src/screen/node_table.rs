//! The nodes on the screen, and what of them there is room for.

use insight::diagnosis::NodePace;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Row;
use unicode_width::UnicodeWidthStr;

use super::nodes::node_cells;
use super::palette::Palette;
use super::parts::{block, cell, table};
use super::scroll::Window;
use super::trail::Trails;
use super::view::View;
use crate::style::plain;
use crate::svg::short;

/// Draws those of a window, and what went through them lately.
pub(super) fn nodes(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View,
    trails: &Trails,
    window: Window,
    paint: Palette,
) {
    let title = match trails.of_all(TRAIL_OF_ALL) {
        all if all.is_empty() || area.width < TRAIL_FROM => "Nodes".to_owned(),
        all => format!("Nodes, rx + tx of all {all}"),
    };
    if window.shown == 0 {
        let title = window.hidden().map_or(title, |hidden| format!("Nodes: {hidden}"));
        return frame.render_widget(block(title, paint), area);
    }
    let nodes = view.nodes.busy_first(usize::from(area.height).saturating_sub(2));
    let in_sight = &nodes[window.range()];
    let longest = in_sight.iter().map(|node| node.name.width()).max().unwrap_or(0);
    let most = trails.most();
    let is_shown = |column: &NodeColumn| {
        let of = column.of;
        area.width >= column.from_width && nodes.iter().any(|node| is_told(&node_cells(node)[of]))
    };
    let columns: Vec<NodeColumn> = NODE_COLUMNS.into_iter().filter(is_shown).collect();
    let (columns, name_room, trail_room) = node_columns(area.width, columns, longest, most > 0.0);
    let row = |node: &&NodePace| {
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
    let rows: Vec<Row<'_>> = in_sight.iter().map(row).collect();
    let widths: Vec<Constraint> = columns.iter().map(|column| column.width).collect();
    let header = columns.iter().map(|column| cell(column.header.to_owned(), column.of != NAME));
    let header = Row::new(header.collect::<Vec<_>>());
    frame.render_widget(table(rows, &widths, header, title, paint), area);
    if let Some(hidden) = window.hidden() {
        let last = Rect { y: area.y + 2 + window.shown as u16, height: 1, ..area };
        frame.render_widget(Line::styled(hidden, paint.dim()), last.intersection(area));
    }
}

/// Whether a cell says something: of what a node does not tell stands a dash.
fn is_told(cell: &str) -> bool {
    cell.chars().any(|letter| !matches!(letter, '-' | '/' | ' '))
}

/// The columns that there is room for, the room for names, and that for what went through each node, which has what
/// the others leave. Nodes are named whole: columns make room for them, those first that only wide terminals show.
fn node_columns(
    width: u16,
    mut columns: Vec<NodeColumn>,
    longest: usize,
    has_trail: bool,
) -> (Vec<NodeColumn>, usize, usize) {
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
    let header = match trail {
        _ if !has_trail => "",
        few if few < TRAIL_HEADER.len() => TRAIL_HEADER_SHORT,
        _ => TRAIL_HEADER,
    };
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
    node_column("cpu", CPU, 11, 1),
    node_column("disk r/w MB/s (busy)", DISK, 22, 56),
    node_column("net rx/tx MB/s", 3, 17, 68),
    node_column("paused at once", PAUSING, 14, 80),
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
