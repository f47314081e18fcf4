//! The terminal that `narrows watch` draws on.

use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use report::screen::{Trails, View, draw};

/// A terminal that is drawn on. Dropping it leaves the terminal as it was; so does a panic.
pub(super) struct Screen {
    terminal: ratatui::DefaultTerminal,
    view: Option<View>,
    trails: Trails,
    color: bool,
}

impl Screen {
    pub(super) fn open() -> anyhow::Result<Screen> {
        let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let (terminal, trails) = (ratatui::try_init()?, Trails::default());
        Ok(Screen { terminal, view: None, trails, color })
    }

    pub(super) fn show(&mut self, view: View) -> anyhow::Result<()> {
        if view.trouble.is_none() {
            self.trails.take(&view.nodes);
        }
        self.view = Some(view);
        self.draw()
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        if let Some(view) = &self.view {
            self.terminal.draw(|frame| draw(frame, view, &self.trails, self.color))?;
        }
        Ok(())
    }

    /// Takes what was typed; in raw mode Ctrl-C is a key like any other. A new size is drawn at once.
    pub(super) fn wants_to_quit(&mut self) -> anyhow::Result<bool> {
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    let is_ctrl_c = key.code == KeyCode::Char('c')
                        && key.modifiers.contains(KeyModifiers::CONTROL);
                    if is_ctrl_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                        return Ok(true);
                    }
                }
                Event::Resize(..) => self.draw()?,
                _ => {}
            }
        }
        Ok(false)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
