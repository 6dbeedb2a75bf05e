//! Lines for the log about what comes and goes, at a bounded rate.
//!
//! # Properties
//! - Of one kind of event no more than a stated number of lines come in a while, and the others are counted
//!   (`many_of_one_kind_are_counted`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Lines of one kind in [`WHILE`].
const MOST: u32 = 20;
/// How long lines of one kind are counted together.
const WHILE: Duration = Duration::from_secs(10);

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Programs that are managed from now on.
    Managed,
    /// Programs that ended by themselves.
    Ended,
    /// Programs that were released because a user asked, or a rule no longer wants them.
    Released,
    /// Requests of clients that were refused.
    RefusedRequest,
    /// Moves that the kernel refused.
    RefusedMove,
    /// Containers whose state cannot be read.
    Unnamed,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Managed => "enrolments",
            Self::Ended => "ends of programs",
            Self::Released => "releases",
            Self::RefusedRequest => "refused requests",
            Self::RefusedMove => "refused moves",
            Self::Unnamed => "containers without names",
        }
    }
}

/// Lines that are not written yet.
#[derive(Debug, Default)]
pub struct Log {
    lines: Vec<String>,
    counts: BTreeMap<Kind, Count>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    said: u32,
    left_out: u64,
}

impl Log {
    /// Adds a line, if there were not too many of its kind.
    pub fn add(&mut self, kind: Kind, line: String) {
        self.add_at(Instant::now(), kind, line);
    }

    /// Takes the lines.
    pub fn take(&mut self) -> Vec<String> {
        self.take_at(Instant::now())
    }

    fn add_at(&mut self, now: Instant, kind: Kind, line: String) {
        self.settle(now);
        let count = self.counts.entry(kind).or_insert(Count { since: now, said: 0, left_out: 0 });
        if count.said < MOST {
            count.said += 1;
            self.lines.push(line);
        } else {
            count.left_out += 1;
        }
    }

    fn take_at(&mut self, now: Instant) -> Vec<String> {
        self.settle(now);
        std::mem::take(&mut self.lines)
    }

    /// Says what was left out of kinds whose time is over.
    fn settle(&mut self, now: Instant) {
        let lines = &mut self.lines;
        self.counts.retain(|kind, count| {
            let is_over = now.saturating_duration_since(count.since) >= WHILE;
            if is_over && count.left_out > 0 {
                lines.push(format!("{} more {} in {WHILE:?}", count.left_out, kind.words()));
            }
            !is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_of_one_kind_are_counted() {
        let (mut log, start) = (Log::default(), Instant::now());
        for number in 0..MOST + 5 {
            log.add_at(start, Kind::Managed, format!("program {number}"));
        }
        log.add_at(start, Kind::Released, "another kind".to_owned());
        let lines = log.take_at(start);
        assert_eq!(
            (lines.len(), lines.last().unwrap().as_str()),
            (MOST as usize + 1, "another kind")
        );
        assert!(log.take_at(start + WHILE / 2).is_empty());
        assert_eq!(log.take_at(start + WHILE), ["5 more enrolments in 10s"]);
        log.add_at(start + WHILE, Kind::Managed, "the next".to_owned());
        assert_eq!(log.take_at(start + 3 * WHILE), ["the next"]);
        assert!(log.take_at(start + 4 * WHILE).is_empty(), "nothing was left out");
    }
}
