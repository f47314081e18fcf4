//! Which part of the screen has its whole height, and how far rows are scrolled.

use std::ops::Range;

/// What has the height of the screen below its head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Every part has a share of it.
    #[default]
    All,
    Recoveries,
    Nodes,
    /// What holds, notes, copies that wait, followers: all that is said in sentences.
    Sentences,
}

/// A key that moves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// As many rows up as are shown.
    PageUp,
    /// As many rows down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// On to the next part.
    Next,
    /// Back to all parts.
    Back,
}

/// What keys have moved so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scroll {
    pub(super) part: Part,
    /// The first row that is shown of what scrolls.
    pub(super) first: usize,
    /// How many rows of it were shown last.
    page: usize,
}

impl Scroll {
    /// Moves; what is past the end is found when it is drawn.
    pub fn take(&mut self, key: Key) {
        self.first = match key {
            Key::Up => self.first.saturating_sub(1),
            Key::Down => self.first + 1,
            Key::PageUp => self.first.saturating_sub(self.page),
            Key::PageDown => self.first + self.page,
            Key::End => usize::MAX / 2,
            Key::Home | Key::Next | Key::Back => 0,
        };
        self.part = match (key, self.part) {
            (Key::Next, Part::All) => Part::Recoveries,
            (Key::Next, Part::Recoveries) => Part::Nodes,
            (Key::Next, Part::Nodes) => Part::Sentences,
            (Key::Next, Part::Sentences) | (Key::Back, _) => Part::All,
            (_, part) => part,
        };
    }

    /// Whether all parts are shown, so that there is nothing to go back to.
    pub fn shows_all(&self) -> bool {
        self.part == Part::All
    }

    /// Which of `all` things of so many lines each are shown in so many rows. Where not all have room, the last row
    /// says how many have none.
    pub(super) fn window(&mut self, all: usize, rows: usize, lines: usize) -> Window {
        let shown = shown(all, rows, lines);
        self.first = self.first.min(all - shown);
        self.page = shown.max(1);
        Window { first: self.first, shown, all, hint: "↑↓ PgUp PgDn" }
    }
}

fn shown(all: usize, rows: usize, lines: usize) -> usize {
    let fits = all * lines <= rows;
    if fits { all } else { all.min(rows.saturating_sub(1) / lines) }
}

/// Which of some things are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    first: usize,
    pub(super) shown: usize,
    all: usize,
    /// The keys that show the others.
    hint: &'static str,
}

impl Window {
    /// The first of them, while other rows scroll.
    pub(super) fn still(all: usize, rows: usize, lines: usize) -> Window {
        Window { first: 0, shown: shown(all, rows, lines), all, hint: "Tab" }
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.first + self.shown
    }

    /// How many are not, and how to see them; none where all are shown.
    pub(super) fn hidden(&self) -> Option<String> {
        let below = self.all - self.first - self.shown;
        let text = match (self.first, below) {
            (0, 0) => return None,
            (0, below) => format!("and {below} more"),
            (above, 0) => format!("{above} above"),
            (above, below) => format!("{above} above, {below} below"),
        };
        Some(format!("{text}: {}", self.hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_scroll_up_to_their_ends_and_say_what_is_hidden() {
        let mut scroll = Scroll::default();
        let mut after = |key: Key| {
            scroll.take(key);
            let window = scroll.window(10, 5, 1);
            (window.range(), window.hidden().unwrap())
        };
        let keys = "↑↓ PgUp PgDn";
        assert_eq!(after(Key::Up), (0..4, format!("and 6 more: {keys}")));
        assert_eq!(after(Key::Down), (1..5, format!("1 above, 5 below: {keys}")));
        assert_eq!(after(Key::PageDown), (5..9, format!("5 above, 1 below: {keys}")));
        for key in [Key::PageDown, Key::End, Key::Down] {
            assert_eq!(after(key), (6..10, format!("6 above: {keys}")));
        }
        assert_eq!(after(Key::PageUp).0, 2..6);
        assert_eq!(after(Key::Next).0, 0..4, "another part begins at its first row");
        assert_eq!(scroll.window(5, 5, 1).hidden(), None);
        // Of two lines each, two fit beside the line that says so.
        assert_eq!((Window::still(5, 5, 2).range(), Window::still(2, 0, 2).range()), (0..2, 0..0));
        assert_eq!(Window::still(5, 5, 2).hidden().unwrap(), "and 3 more: Tab");
    }

    #[test]
    fn parts_come_one_after_another_and_there_is_a_way_back() {
        let mut scroll = Scroll::default();
        for part in [Part::Recoveries, Part::Nodes, Part::Sentences, Part::All, Part::Recoveries] {
            scroll.take(Key::Next);
            assert_eq!((scroll.part, scroll.shows_all()), (part, part == Part::All));
        }
        scroll.take(Key::Back);
        assert!(scroll.shows_all());
    }
}
