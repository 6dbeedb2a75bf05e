//! What the terminal shows: a pure function of the screen, the user's choices and the size.
//!
//! # Approach
//! From top to bottom: the header (daemon, programs, cost), cores, threads, recent moves, the
//! selected thread in words, and the keys. Cores and moves take a part of the height that grows with
//! it, threads the rest. Everything is ASCII, so that it reads the same over any connection; names
//! are cleaned before ([`super::clean`]). Without colours, what is marked is bold or reversed.
//!
//! # Properties
//! Golden files hold each part at 80 by 24 and 200 by 60 (`screens_read_as_ever`).
//! - No size is too small (`any_size_is_drawn`).
//! - Without colours there are none (`without_colours_there_are_none`).
//! - No name reaches the terminal as a command (`names_are_no_commands`).

mod cores;
mod header;
mod help;
mod moves;
mod threads;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::clean::{cut, left};
use super::screen::Screen;
use super::state::{Fold, Mode, State};

pub use cores::text as core_lines;
pub use header::printed_lines as header_lines;
pub use help::help_of_keys;
pub use moves::lines as move_lines;
pub use threads::table;

/// Below this size there is only a line.
pub const LEAST: (u16, u16) = (40, 10);

/// Rows of the terminal by what they show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    header: usize,
    cores: usize,
    /// Threads without their title.
    pub threads: usize,
    moves: usize,
}

impl Parts {
    /// Of a terminal of this size.
    pub fn of(screen: &Screen, fold: Fold, width: u16, height: u16) -> Self {
        let (columns, all) = (usize::from(width), usize::from(height));
        let header = header::lines(screen, columns).len();
        // Title of threads, selected thread, keys.
        let rest = all.saturating_sub(header + 3);
        let cores = cores::height(screen, columns, rest / 3);
        let rest = rest - cores;
        // What the threads leave over, but always a part.
        let free = rest.saturating_sub(screen.folded(fold).len()).max((rest / 3).max(3));
        let wanted = screen.now.moves.len() + 1;
        let moves = if screen.now.manager.is_some() && rest >= 8 { wanted.min(free) } else { 0 };
        let threads = rest.saturating_sub(moves);
        Self { header, cores, threads, moves }
    }
}

/// Draws everything.
pub fn view(frame: &mut Frame<'_>, state: &State, screen: &Screen) {
    let area = frame.area();
    let colours = Colours(!state.plain);
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = cut("the terminal is too small (q: quit)", area.width.into());
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let columns = usize::from(area.width);
    if state.mode == Mode::Help {
        let mut lines = help::lines(columns, colours);
        lines.truncate(usize::from(area.height).saturating_sub(1));
        lines.resize(usize::from(area.height).saturating_sub(1), Line::default());
        lines.push(Line::from(left("Esc: back   q: quit", columns)).style(colours.title()));
        return frame.render_widget(Paragraph::new(lines), area);
    }
    let parts = Parts::of(screen, state.fold, area.width, area.height);
    let rows = screen.rows(state);
    let mut lines: Vec<Line<'_>> = header::lines(screen, columns)
        .into_iter()
        .enumerate()
        .map(|(at, text)| Line::styled(text, if at == 0 { colours.bold() } else { Style::new() }))
        .collect();
    lines.extend(cores::lines(screen, columns, parts.cores, colours));
    lines.extend(threads::lines(state, screen, &rows, columns, parts.threads, colours));
    lines.extend(moves::titled(&screen.now.moves, columns, parts.moves, colours));
    let selected = rows.get(state.selected).map(|row| header::describe(row)).unwrap_or_default();
    lines.push(Line::styled(cut(&selected, columns), colours.bold()));
    lines.push(keys(state, columns, colours));
    frame.render_widget(Paragraph::new(lines), area);
    if state.mode == Mode::Filter {
        let at = super::clean::width(&state.filter) + "filter: ".len();
        let x = u16::try_from(at).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
        let line = Rect { x, y: area.height.saturating_sub(1), width: 1, height: 1 };
        frame.set_cursor_position(line.as_position());
    }
}

fn keys(state: &State, columns: usize, colours: Colours) -> Line<'static> {
    if state.mode == Mode::Filter {
        let text = format!("filter: {}", state.filter);
        let hint = "  (Enter: keep, Esc: all threads)";
        return Line::from(vec![
            Span::styled(cut(&text, columns), colours.bold()),
            Span::raw(cut(hint, columns.saturating_sub(super::clean::width(&text)))),
        ]);
    }
    let way = if state.reversed { " (reversed)" } else { "" };
    let (order, fold) = (state.order.name(), state.fold.name());
    let mut text = format!("h help  q quit  s sort: {order}{way}  f rows: {fold}  / filter");
    if !state.filter.is_empty() {
        text = format!("{text}: {} (Esc: all)", state.filter);
    }
    text = format!("{text}  space {}", if state.paused { "go on (PAUSED)" } else { "pause" });
    Line::styled(left(&text, columns), colours.title())
}

/// Styles, with or without colours.
#[derive(Debug, Clone, Copy)]
pub struct Colours(pub bool);

impl Colours {
    fn of(self, colour: Color, plain: Modifier) -> Style {
        match self.0 {
            true => Style::new().fg(colour),
            false => Style::new().add_modifier(plain),
        }
    }

    /// Of titles.
    pub fn title(self) -> Style {
        match self.0 {
            true => Style::new().fg(Color::Black).bg(Color::Cyan),
            false => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// Of the selected thread.
    pub fn selected(self) -> Style {
        match self.0 {
            true => Style::new().fg(Color::Black).bg(Color::Green),
            false => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// Of what matters.
    pub fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Of the part of a bar that is used.
    pub fn used(self) -> Style {
        self.of(Color::Green, Modifier::empty())
    }

    /// Of what a user should look at.
    pub fn warning(self) -> Style {
        self.of(Color::Yellow, Modifier::BOLD)
    }

    /// Of what is bad.
    pub fn bad(self) -> Style {
        self.of(Color::Red, Modifier::BOLD)
    }

    /// Of threads that sleep.
    pub fn faint(self) -> Style {
        self.of(Color::DarkGray, Modifier::DIM)
    }
}
