//! The terminal: keys, and its state before and after.
//!
//! # Properties
//! - However it ends, the terminal is as before: [`Session`] restores it when it is dropped, and a
//!   panic restores it before its message is shown (`the_terminal_is_as_before_after_each_end`).
//! - It ends with its terminal (`top_ends_with_its_terminal`).

use std::time::Duration;

use anyhow::Context;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

use super::state::Key;

/// What happened at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// Nothing in the time.
    Nothing,
    /// A key was pressed.
    Pressed(Key),
    /// It has another size, or must be drawn again.
    Resized,
}

/// The terminal while something is drawn on it.
pub struct Session(DefaultTerminal);

impl Session {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When it cannot be set up; it is as before then.
    pub fn begin() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().context("the terminal cannot be set up");
        if terminal.is_err() {
            let _ = ratatui::try_restore();
        }
        Ok(Self(terminal?))
    }

    /// Draws.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, view: impl FnOnce(&mut ratatui::Frame<'_>)) -> anyhow::Result<()> {
        self.0.draw(view).map(drop).context("the terminal cannot be drawn on")
    }

    /// Columns and rows.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn size(&self) -> anyhow::Result<(u16, u16)> {
        let size = self.0.size().context("the terminal has no size")?;
        Ok((size.width, size.height))
    }

    /// Waits for so long for the next event.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn wait(&self, time: Duration) -> anyhow::Result<Happened> {
        /// What is there is read with any other time but none.
        const AT_ONCE: Duration = Duration::from_millis(1);
        let is_there = |time| event::poll(time).context("the terminal cannot be read");
        // What was read before may hold several keys.
        if !is_there(Duration::ZERO)? {
            anyhow::ensure!(!is_gone(time), GONE);
            if !is_there(AT_ONCE)? {
                return Ok(Happened::Nothing);
            }
        }
        Ok(match event::read().context("the terminal cannot be read")? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                translated(key).map_or(Happened::Nothing, Happened::Pressed)
            }
            Event::Resize(..) => Happened::Resized,
            _ => Happened::Nothing,
        })
    }

    /// Gives the terminal back until this job is continued.
    ///
    /// # Errors
    /// When it cannot be taken again.
    pub fn suspend(self) -> anyhow::Result<Self> {
        drop(self);
        let _ = kill_process(getpid(), Signal::TSTP);
        Self::begin()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

/// What an error says when the connection has broken off.
const GONE: &str = "the terminal is gone";

/// Waits so long for a key, or a signal; is nothing at the other end of the terminal any more? Then
/// each read comes back at once, and no key ever ends the loop.
fn is_gone(time: Duration) -> bool {
    let stdout = std::io::stdout();
    let mut terminal = [PollFd::new(&stdout, PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    let polled = poll(&mut terminal, time.as_ref());
    polled.is_ok() && terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

fn translated(key: KeyEvent) -> Option<Key> {
    Some(match key.code {
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Control(c),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        KeyCode::F(1) => Key::Help,
        _ => return None,
    })
}

/// Shall there be no colours? `NO_COLOR` (no-color.org), or a terminal that has none.
pub fn is_plain(no_color: Option<&str>, term: Option<&str>) -> bool {
    let wanted = no_color.is_some_and(|value| !value.is_empty());
    let without = |term: &str| {
        term.is_empty()
            || term == "dumb"
            || term.starts_with("vt1")
            || term.starts_with("vt2")
            || term.ends_with("-m")
            || term.ends_with("-mono")
    };
    wanted || term.is_none_or(without)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted_or_not_there() {
        assert!(!is_plain(None, Some("xterm-256color")) && !is_plain(Some(""), Some("linux")));
        assert!(is_plain(Some("1"), Some("xterm")) && is_plain(None, Some("vt100")));
        assert!(is_plain(None, Some("xterm-mono")) && is_plain(None, None));
    }

    #[test]
    fn keys_are_those_of_the_terminal() {
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(translated(control), Some(Key::Control('c')));
        assert_eq!(translated(KeyEvent::from(KeyCode::F(1))), Some(Key::Help));
        assert_eq!(translated(KeyEvent::from(KeyCode::Insert)), None);
    }
}
