//! A view as a screen.

use insight::diagnosis::TimeToGreen;
use insight::words::counted;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use super::node_table::nodes;
use super::palette::Palette;
use super::parts::block;
use super::recoveries::{Fit, recoveries, short_shard};
use super::scroll::{Part, Scroll, Window};
use super::trail::Trails;
use super::verdict::{Said, wrapped};
use super::view::View;
use crate::style::{plain, wrap};
use crate::svg::cut;

/// Rows of the parts that have less to say.
const SIDE_ROWS_MAX: usize = 6;
/// Rows of what went wrong.
const TROUBLE_ROWS_MAX: usize = 4;
/// Rows of a table beside its own: its title and the names of its columns.
const TABLE_ROWS: u16 = 2;
/// Below this width there is no room for names before the state of the cluster.
const NARROW: u16 = 80;

/// Draws a view, and what went through its nodes lately, as far as it is scrolled; with `color` off nothing but bold
/// and dim is used.
pub fn draw(frame: &mut Frame<'_>, view: &View, trails: &Trails, scroll: &mut Scroll, color: bool) {
    let paint = Palette { color };
    let area = frame.area();
    let trouble = view.trouble.as_ref();
    let trouble = trouble.map_or_else(String::new, |text| wrap(&plain(text), area.width.into(), 2));
    let head_rows = 2 + trouble.lines().count().min(TROUBLE_ROWS_MAX) as u16;
    let [head, body] =
        Layout::vertical([Constraint::Length(head_rows), Constraint::Fill(1)]).areas(area);
    let keys = if scroll.shows_all() { "  q quits" } else { "  Esc back" };
    self::head(frame, head, view, &trouble, keys, paint);
    let rows = usize::from(body.height.saturating_sub(TABLE_ROWS));
    match scroll.part {
        Part::All => all(frame, body, view, trails, scroll, paint),
        Part::Recoveries => {
            let fit = fit(view, scroll.first, body);
            let window = scroll.window(view.recoveries.len(), rows, fit.lines());
            recoveries(frame, body, view, &fit, window, paint);
        }
        Part::Nodes => {
            let window = scroll.window(view.nodes.len(), rows, 1);
            nodes(frame, body, view, trails, window, paint);
        }
        Part::Sentences => sentences(frame, body, view, scroll, paint),
    }
    if view.trouble.is_some() {
        // What is shown below is no longer current.
        frame.buffer_mut().set_style(body, paint.dim());
    }
}

/// What there is room for of the recoveries from one on. What the screen has no room for takes none from what it shows.
fn fit(view: &View, first: usize, area: Rect) -> Fit {
    let (all, rows) = (view.recoveries.len(), usize::from(area.height));
    let first = first.min(all.saturating_sub(rows));
    Fit::of(area.width, &view.recoveries[first..all.min(first + rows)])
}

/// Draws all parts, one below the other. The first that has no room for all of its rows scrolls: recoveries or nodes.
fn all(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View,
    trails: &Trails,
    scroll: &mut Scroll,
    paint: Palette,
) {
    let (height, width) = (frame.area().height, area.width);
    let said = Said::of(view, width, paint);
    let [found, notes] = said.rows();
    let fit = fit(view, scroll.first, area);
    let in_sight = view.recoveries.len().min(area.height.into());
    let needed = (in_sight * fit.lines()) as u16 + TABLE_ROWS;
    let least = match in_sight {
        0 => 1,
        // One of them, and how many have no room.
        _ => needed.min(fit.lines() as u16 + TABLE_ROWS + 1).max(4),
    };
    // However much is found, the recoveries that it is about must have room as well.
    let verdict_most = (height / 2).min(area.height.saturating_sub(least)).max(3);
    let verdict_rows = ((found + notes) as u16 + 1).min(verdict_most);
    let node_rows = match view.nodes.len() {
        0 => 0,
        count => (count as u16).saturating_add(TABLE_ROWS).min((height / 3).max(4)),
    };
    let side = |lines: usize| if lines == 0 { 0 } else { lines.min(SIDE_ROWS_MAX) as u16 + 1 };
    let (follower_rows, waiting_rows) = (side(view.followers.len()), side(view.waiting.len()));
    let rest = verdict_rows + node_rows + follower_rows + waiting_rows;
    let [recovery_most, node_most] = [if in_sight == 0 { least } else { needed }, node_rows];
    let recovery_rows = recovery_most.min(area.height.saturating_sub(rest)).max(least);
    // Where not even that fits, what comes last here has less.
    let mut left = area.height;
    let mut take = |rows: u16| {
        let taken = rows.min(left);
        left -= taken;
        taken
    };
    let [verdict_rows, recovery_rows, waiting_rows, follower_rows, node_rows] =
        [verdict_rows, recovery_rows, waiting_rows, follower_rows, node_rows].map(&mut take);
    // Notes have what is left over.
    let [for_found, for_notes] = match usize::from(verdict_rows.saturating_sub(1)) {
        rows if rows > notes => [rows - notes, notes],
        rows => [rows, 0],
    };
    let held = said.folded([for_found, for_notes + usize::from(left)]);
    // A finding that has no room leaves its rows to others.
    let spare = (left + verdict_rows).saturating_sub(held.len() as u16 + 1);
    let [recovery_rows, node_rows] =
        with_spare(spare, [recovery_rows, recovery_most], [node_rows, node_most]);
    let [recovering, running, following, waiting, verdict, _] = Layout::vertical([
        Constraint::Length(recovery_rows),
        Constraint::Length(node_rows),
        Constraint::Length(follower_rows),
        Constraint::Length(waiting_rows),
        Constraint::Length(held.len() as u16 + 1),
        Constraint::Fill(1),
    ])
    .areas(area);
    let rows = |area: Rect| usize::from(area.height.saturating_sub(TABLE_ROWS));
    let (count, lines) = (view.recoveries.len(), fit.lines());
    let fits = count * lines <= rows(recovering);
    let of_recoveries = match fits {
        true => Window::still(count, rows(recovering), lines),
        false => scroll.window(count, rows(recovering), lines),
    };
    recoveries(frame, recovering, view, &fit, of_recoveries, paint);
    let of_nodes = match fits {
        true => scroll.window(view.nodes.len(), rows(running), 1),
        false => Window::still(view.nodes.len(), rows(running), 1),
    };
    nodes(frame, running, view, trails, of_nodes, paint);
    let followed: Vec<_> = view.followers.iter().map(|line| (line.as_str(), 1)).collect();
    self::lines(frame, following, "Followers", &followed, 0, paint);
    let waits = view.waiting.iter().map(|line| {
        let fits = plain(&line.text).width() <= usize::from(width);
        (if fits { line.text.as_str() } else { line.brief.as_str() }, line.copies)
    });
    let waits: Vec<_> = waits.collect();
    self::lines(frame, waiting, "Waiting", &waits, view.waiting_more, paint);
    frame.render_widget(Paragraph::new(held).block(block(of_held(view), paint)), verdict);
}

/// Rows of recoveries and of nodes, from those that each has, up to the most, with those that others leave. Nodes of
/// which none would be seen have their title alone.
fn with_spare(
    mut spare: u16,
    [recoveries, recoveries_most]: [u16; 2],
    [mut nodes, nodes_most]: [u16; 2],
) -> [u16; 2] {
    let nodes_least = nodes_most.min(TABLE_ROWS + 2);
    if nodes < nodes_least {
        let both = nodes + spare;
        nodes = if both < nodes_least { nodes.min(1) } else { nodes_least };
        spare = both - nodes;
    }
    let added = spare.min(recoveries_most.saturating_sub(recoveries));
    let nodes = if nodes < nodes_least { nodes } else { nodes_most.min(nodes + spare - added) };
    [recoveries + added, nodes]
}

fn of_held(view: &View) -> String {
    let title = match &view.found[..] {
        [] => "Verdict",
        found if found.iter().all(|one| one.over) => "What held",
        _ => "What holds",
    };
    title.to_owned()
}

/// Draws all that is said in sentences, each whole: what holds, notes, copies that wait, followers.
fn sentences(frame: &mut Frame<'_>, area: Rect, view: &View, scroll: &mut Scroll, paint: Palette) {
    let mut all = Said::of(view, area.width, paint).whole();
    let mut add = |what: &str, text: &str| {
        let width = usize::from(area.width).max(20);
        all.extend(wrapped(&format!("{what}: {text}"), width, "  ", Style::new()));
    };
    view.waiting.iter().for_each(|line| add("waits", &line.text));
    if view.waiting_more > 0 {
        add("waits", &counted(view.waiting_more, "more copy", "more copies"));
    }
    view.followers.iter().for_each(|line| add("follower", line));
    let window = scroll.window(all.len(), usize::from(area.height.saturating_sub(1)), 1);
    let mut shown = all[window.range()].to_vec();
    shown.extend(window.hidden().map(|hidden| Line::styled(hidden, paint.dim())));
    frame.render_widget(Paragraph::new(shown).block(block(of_held(view), paint)), area);
}

fn head(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View,
    trouble: &str,
    keys: &'static str,
    paint: Palette,
) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = plain(&view.title);
    let health = Span::styled(plain(&view.health), paint.health(&view.health).patch(bold));
    let [program, word, gap, keys] =
        ["narrows watch  ", "  health ", "  ", keys].map(|text| Span::styled(text, paint.dim()));
    let green = Span::styled(until_green(view), paint.dim());
    // Where not all of it fits, the state comes before the names, and how to leave before the program's name; on a
    // narrow screen it stands below, where there is less to lose.
    let whole_title = Span::styled(title.clone(), bold);
    let whole =
        Line::from_iter([&program, &whole_title, &word, &health, &green, &keys].map(Clone::clone));
    // A time that loses its unit at the edge is another time.
    let state = [&whole_title, &word, &health, &green].map(Span::width).iter().sum::<usize>();
    let about = plain(&view.about);
    let mut below = Line::styled(about.clone(), paint.dim());
    let width = usize::from(area.width);
    if width < NARROW.into() || width < state + keys.width() {
        let about = cut(&about, width.saturating_sub(keys.width()));
        below = Line::from(vec![Span::styled(about, paint.dim()), keys.clone()]);
    }
    let first = match width {
        width if width < NARROW.into() || width < state => {
            let room = width.saturating_sub(health.width() + green.width() + gap.width());
            let title = Span::styled(short_title(&title, room), bold);
            Line::from(vec![health, green, gap, title])
        }
        width if width < state + keys.width() => Line::from(vec![whole_title, word, health, green]),
        width if width < whole.width() => Line::from(vec![whole_title, word, health, green, keys]),
        _ => whole,
    };
    let mut lines = vec![first, below];
    lines.extend(trouble.lines().map(|line| Line::styled(line.to_owned(), paint.warning())));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Name and version of a cluster in so many columns: a long name is cut rather than the version, which would be read as
/// another one. Where there is no room for both, the name is there.
fn short_title(title: &str, room: usize) -> String {
    let over = title.chars().count().saturating_sub(room);
    let Some((name, version)) = title.split_once("  ").filter(|_| over > 0) else {
        return title.to_owned();
    };
    let kept = name.chars().count().saturating_sub(over + 1);
    match kept {
        0 => cut(name, room),
        _ => format!("{}…  {version}", name.chars().take(kept).collect::<String>()),
    }
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
        text.push(Line::styled(format!("and {} more: Tab", hidden + besides), paint.dim()));
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
