//! The terminal that `narrows watch` draws on.

use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use report::screen::{Key, Scroll, Trails, View, draw};

/// A terminal that is drawn on. Dropping it leaves the terminal as it was; so does a panic.
pub(super) struct Screen {
    terminal: ratatui::DefaultTerminal,
    view: Option<View>,
    trails: Trails,
    scroll: Scroll,
    color: bool,
}

impl Screen {
    pub(super) fn open() -> anyhow::Result<Screen> {
        let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let (terminal, trails) = (ratatui::try_init()?, Trails::default());
        Ok(Screen { terminal, view: None, trails, scroll: Scroll::default(), color })
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
            let (trails, scroll) = (&self.trails, &mut self.scroll);
            self.terminal.draw(|frame| draw(frame, view, trails, scroll, self.color))?;
        }
        Ok(())
    }

    /// Takes what was typed; in raw mode Ctrl-C is a key like any other. A new size is drawn at once, and so is what
    /// keys move.
    pub(super) fn wants_to_quit(&mut self) -> anyhow::Result<bool> {
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    let is_ctrl_c = key.code == KeyCode::Char('c')
                        && key.modifiers.contains(KeyModifiers::CONTROL);
                    let has_back = !self.scroll.shows_all();
                    match key.code {
                        _ if is_ctrl_c => return Ok(true),
                        KeyCode::Char('q') => return Ok(true),
                        KeyCode::Esc if !has_back => return Ok(true),
                        code => {
                            if let Some(key) = moving(code) {
                                self.scroll.take(key);
                                self.draw()?;
                            }
                        }
                    }
                }
                Event::Resize(..) => self.draw()?,
                _ => {}
            }
        }
        Ok(false)
    }
}

/// The key that moves something; none of others.
fn moving(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Next,
        KeyCode::Esc => Key::Back,
        _ => return None,
    })
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
