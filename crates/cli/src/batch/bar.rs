//! How far a batch is, and how long it still takes, on a line of the terminal that is written over.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use clap::ColorChoice;

use crate::top::is_plain_here;

/// How far it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Jobs of the batch, but for those done earlier.
    pub total: usize,
    /// Those that ended.
    pub done: usize,
    /// Of these, those that failed.
    pub failed: usize,
    /// Those that run.
    pub running: usize,
    /// Seconds that are left; none: not known yet.
    pub left_s: Option<f64>,
}

/// What is known of the time of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// How long it takes, seconds; none: not known.
    pub total_s: Option<f64>,
    /// How long it has run, seconds.
    pub ran_s: f64,
}

/// How long jobs take that run and wait in so many slots, seconds. Those that are not known are taken for as long
/// as those that ended took on average; none: none has ended either.
pub fn left_s(jobs: &[Expected], mean_s: Option<f64>, slots: usize) -> Option<f64> {
    let left = |job: &Expected| Some((job.total_s.or(mean_s)? - job.ran_s).max(0.0));
    let lefts: Vec<f64> = jobs.iter().map(left).collect::<Option<_>>()?;
    let longest = lefts.iter().copied().fold(0.0, f64::max);
    Some(longest.max(lefts.iter().sum::<f64>() / slots.max(1) as f64))
}

/// The line.
pub fn text(standing: &Standing, width: usize) -> String {
    let &Standing { total, done, failed, running, left_s } = standing;
    let percent = (100 * done).checked_div(total).unwrap_or(100);
    let mut text = format!("{percent}% {done}/{total} done");
    if failed > 0 {
        // Writing to a string does not fail.
        let _ = write!(text, ", {failed} failed");
    }
    let _ = write!(text, ", {running} running, ");
    text += &match left_s {
        Some(left_s) => format!("{} left", clock(left_s)),
        None => "time left is not known yet".to_owned(),
    };
    // A bar where there is room for one.
    let room = width.saturating_sub(text.len() + 4).min(40);
    if room >= 10 {
        let full = (room * done).checked_div(total).unwrap_or(room);
        text = format!("[{}{}] {text}", "#".repeat(full), ".".repeat(room - full));
    }
    text.chars().take(width.saturating_sub(1)).collect()
}

fn clock(time_s: f64) -> String {
    let time_s = time_s.ceil() as u64;
    match (time_s / 3600, time_s / 60 % 60, time_s % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// What the user wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// A bar; where jobs write to files, there is one anyhow.
    pub bar: bool,
    /// Do jobs write to files, and not to the terminal, where their lines would mix with a bar?
    pub is_kept: bool,
    /// Nothing at all.
    pub quiet: bool,
    /// Each start and each end.
    pub verbose: bool,
    /// When there are colours.
    pub color: ColorChoice,
}

/// Standard error: where it is a terminal, with a bar in its last line, or the time that is left in each line.
#[derive(Debug)]
pub struct Screen {
    wanted: Wanted,
    is_terminal: bool,
    has_colours: bool,
}

impl Screen {
    /// As far as standard error is a terminal.
    pub fn new(wanted: Wanted) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let has_colours = match wanted.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !is_plain_here(),
        };
        Self { wanted, is_terminal, has_colours }
    }

    /// Is there a bar?
    pub fn has_bar(&self) -> bool {
        let Wanted { bar, is_kept, quiet, .. } = self.wanted;
        self.is_terminal && (bar || (is_kept && !quiet))
    }

    /// Is each start and each good end a line?
    pub fn has_all(&self) -> bool {
        self.wanted.verbose || !self.has_bar()
    }

    /// How far a start is: the number of the job, on a terminal with the time that is left.
    pub fn count(&self, place: usize, total: usize, left_s: Option<f64>) -> String {
        match left_s.filter(|_| self.is_terminal) {
            Some(left_s) => format!("[{place}/{total}, {} left]", clock(left_s)),
            None => format!("[{place}/{total}]"),
        }
    }

    /// Writes a line about a failure.
    pub fn say_failed(&self, line: &str) {
        if !self.has_colours || self.wanted.quiet {
            return self.say(line);
        }
        self.end();
        let line = format!("\x1b[31m{}\x1b[0m\n", crate::out::shown(line));
        // Where the terminal is gone there is nothing to show.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// Writes a line above the bar.
    pub fn say(&self, line: &str) {
        if self.wanted.quiet {
            return;
        }
        // The line of the bar is cleared.
        self.end();
        note!("{line}");
    }

    /// Writes the bar.
    pub fn show(&self, standing: &Standing) {
        if self.has_bar() {
            let width = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
            let line = format!("\r\x1b[K{}", text(standing, width));
            // Where the terminal is gone there is nothing to show.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        if self.has_bar() {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_shared_by_the_slots_and_no_less_than_the_longest_job() {
        let job = |total_s, ran_s| Expected { total_s, ran_s };
        let jobs = [job(Some(10.0), 4.0), job(Some(10.0), 0.0), job(None, 0.0)];
        assert_eq!(left_s(&jobs, Some(8.0), 2), Some(12.0));
        assert_eq!(left_s(&jobs, Some(8.0), 9), Some(10.0));
        assert_eq!(left_s(&jobs, None, 2), None);
        assert_eq!(left_s(&[job(Some(5.0), 9.0)], None, 2), Some(0.0));
        assert_eq!(left_s(&[], None, 2), Some(0.0));
    }

    #[test]
    fn the_line_fits_the_terminal() {
        let standing =
            Standing { total: 40, done: 10, failed: 2, running: 4, left_s: Some(3661.2) };
        let words = "25% 10/40 done, 2 failed, 4 running, 1:01:02 left";
        assert_eq!(text(&standing, 60), words);
        let line = text(&standing, 100);
        assert!(line.starts_with("[##########......") && line.ends_with(words), "{line}");
        assert_eq!(text(&standing, 20).len(), 19);
        let early = Standing { total: 40, running: 4, ..Standing::default() };
        assert_eq!(text(&early, 0), "");
        assert_eq!(text(&early, 60), "0% 0/40 done, 4 running, time left is not known yet");
    }
}
