//! The colours of the screen.

use ratatui::style::{Color, Modifier, Style};

/// Colours, unless they are turned off.
#[derive(Clone, Copy)]
pub(super) struct Palette {
    pub(super) color: bool,
}

impl Palette {
    fn of(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    pub(super) fn good(self) -> Style {
        self.of(Color::Green)
    }

    pub(super) fn warning(self) -> Style {
        self.of(Color::Yellow)
    }

    pub(super) fn health(self, status: &str) -> Style {
        match status {
            "green" => self.good(),
            "red" => self.of(Color::Red),
            _ => self.warning(),
        }
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}
