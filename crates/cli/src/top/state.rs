//! What the user chose, and how keys change it: a pure function.

use super::row::Row;

/// By what threads are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Those that ran most first.
    #[default]
    Cpu,
    /// By program.
    Program,
    /// By core, then CPU.
    Core,
    /// Those that are slowed down most first.
    Slowdown,
    /// By number.
    Thread,
}

impl Order {
    const ALL: [Self; 5] = [Self::Cpu, Self::Program, Self::Core, Self::Slowdown, Self::Thread];

    /// What the footer calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Program => "program",
            Self::Core => "core",
            Self::Slowdown => "slowdown",
            Self::Thread => "thread",
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|order| *order == self).unwrap_or(0);
        Self::ALL.get(at + 1).copied().unwrap_or_default()
    }
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Fold {
    /// A thread
    #[default]
    Threads,
    /// All threads of a process
    Processes,
    /// All threads of a program
    Programs,
    /// All threads of a pod, or of a program that is in none
    Pods,
}

impl Fold {
    /// What the footer calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
            Self::Programs => "programs",
            Self::Pods => "pods",
        }
    }

    /// `has_pods`: where there are none, there is nothing to fold by them.
    fn next(self, has_pods: bool) -> Self {
        match self {
            Self::Threads => Self::Processes,
            Self::Processes => Self::Programs,
            Self::Programs if has_pods => Self::Pods,
            Self::Programs | Self::Pods => Self::Threads,
        }
    }
}

/// What keys mean now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Commands.
    #[default]
    Normal,
    /// Text of the filter.
    Filter,
    /// Help is shown.
    Help,
}

/// A key, as far as it means anything here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A character with control held down.
    Control(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Backspace,
    Escape,
    /// F1.
    Help,
}

/// The effect of a key in addition to a changed state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// The end.
    Quit,
    /// The shell comes back until the user continues this job.
    Suspend,
}

/// What the user chose.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Order of the threads.
    pub order: Order,
    /// What a row stands for.
    pub fold: Fold,
    /// The other way round?
    pub reversed: bool,
    /// Text that a thread must have in its program, number, category or reason.
    pub filter: String,
    /// What keys mean.
    pub mode: Mode,
    /// Are snapshots no longer taken?
    pub paused: bool,
    /// The row that is selected.
    pub selected: usize,
    /// The first row that is shown.
    pub first: usize,
    /// Without colours?
    pub plain: bool,
    /// The thread to follow once the user has moved.
    follow: Option<u32>,
    /// Rows on a page.
    page: usize,
}

impl State {
    /// Nothing chosen yet.
    pub fn new(plain: bool) -> Self {
        Self { plain, ..Self::default() }
    }

    /// Follows the selected thread to where it is now, and keeps it in sight.
    pub fn settle(&mut self, rows: &[&Row], page: usize) {
        self.page = page.max(1);
        let at = self.follow.and_then(|thread| rows.iter().position(|row| row.thread == thread));
        let last = rows.len().saturating_sub(1);
        self.selected = at.unwrap_or(self.selected).min(last);
        if self.follow.is_some() {
            self.follow = rows.get(self.selected).map(|row| row.thread);
        }
        self.first = self.first.min(rows.len().saturating_sub(self.page)).min(self.selected);
        self.first = self.first.max((self.selected + 1).saturating_sub(self.page));
    }

    /// What a key does. `rows`: the threads in their order.
    pub fn press(&mut self, key: Key, rows: &[&Row]) -> Effect {
        match key {
            Key::Control('c') => return Effect::Quit,
            Key::Control('z') => return Effect::Suspend,
            _ => {}
        }
        match self.mode {
            Mode::Normal => return self.command(key, rows),
            Mode::Help => match key {
                Key::Char('q') => return Effect::Quit,
                Key::Escape | Key::Enter | Key::Help | Key::Char('h' | '?' | ' ') => {
                    self.mode = Mode::Normal;
                }
                _ => {}
            },
            Mode::Filter => match key {
                Key::Char(c) if self.filter.chars().count() < 64 && !c.is_control() => {
                    self.filter.push(c);
                }
                Key::Backspace => drop(self.filter.pop()),
                Key::Control('u') => self.filter.clear(),
                Key::Enter => self.mode = Mode::Normal,
                Key::Escape => {
                    self.filter.clear();
                    self.mode = Mode::Normal;
                }
                Key::Up | Key::Down | Key::PageUp | Key::PageDown => {
                    return self.command(key, rows);
                }
                _ => {}
            },
        }
        Effect::None
    }

    fn command(&mut self, key: Key, rows: &[&Row]) -> Effect {
        let last = rows.len().saturating_sub(1);
        match key {
            Key::Char('q') => return Effect::Quit,
            Key::Char('h' | '?') | Key::Help => self.mode = Mode::Help,
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('s') => self.order = self.order.next(),
            Key::Char('c') => self.order = Order::Cpu,
            Key::Char('p') => self.order = Order::Program,
            Key::Char('o') => self.order = Order::Core,
            Key::Char('d') => self.order = Order::Slowdown,
            Key::Char('t') => self.order = Order::Thread,
            Key::Char('f') => {
                self.fold = self.fold.next(rows.iter().any(|row| row.pod.is_some()));
                (self.selected, self.first, self.follow) = (0, 0, None);
            }
            Key::Char('r') => self.reversed = !self.reversed,
            Key::Char(' ') => self.paused = !self.paused,
            Key::Escape => self.filter.clear(),
            Key::Up | Key::Char('k') => self.select(self.selected.saturating_sub(1), rows),
            Key::Down | Key::Char('j') => self.select((self.selected + 1).min(last), rows),
            Key::PageUp => self.select(self.selected.saturating_sub(self.page), rows),
            Key::PageDown => self.select((self.selected + self.page).min(last), rows),
            Key::End => self.select(last, rows),
            Key::Home => {
                (self.selected, self.first, self.follow) = (0, 0, None);
            }
            _ => {}
        }
        Effect::None
    }

    fn select(&mut self, row: usize, rows: &[&Row]) {
        self.selected = row;
        self.follow = rows.get(row).map(|row| row.thread);
    }
}
