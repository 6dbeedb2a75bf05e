//! What a guest says over its serial line, and what came of its scenarios.
//!
//! Lines of init begin with [`MARK`]; all others are the kernel's.

use std::collections::BTreeMap;
use std::time::Duration;

/// What lines of init begin with.
pub const MARK: &str = "@lab ";
/// Of the lines about a failure, as many of the last are shown.
const SHOWN: usize = 200;

/// How a scenario ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Well,
    Skipped(String),
    Badly(String),
}

/// The report of a guest.
#[derive(Debug, Default)]
pub struct Report {
    /// Since QEMU was started, when init said hello.
    pub hello: Option<Duration>,
    /// When something was heard last.
    pub last: Duration,
    /// Did init say goodbye?
    pub complete: bool,
    ended: BTreeMap<String, Ended>,
    /// All that was said, with the seconds since QEMU was started.
    pub log: String,
    /// Where the log of the last boot begins.
    booted: usize,
}

impl Report {
    /// The guest is booted, perhaps again.
    pub fn boot(&mut self) {
        self.hello = None;
        self.complete = false;
        self.booted = self.log.len();
    }

    /// Did the kernel give up since the last boot?
    pub fn kernel_died(&self) -> bool {
        self.log[self.booted..].contains("Kernel panic - not syncing")
    }

    /// Is it known how a scenario ended?
    pub fn has_ended(&self, scenario: &str) -> bool {
        self.ended.contains_key(scenario)
    }

    /// How a scenario ended; badly, if the guest never reported it.
    pub fn ended(&self, scenario: &str) -> Ended {
        let silent = || Ended::Badly(format!("the guest never reported how {scenario} ended"));
        self.ended.get(scenario).cloned().unwrap_or_else(silent)
    }

    /// Takes in a line, `after` so long.
    pub fn hear(&mut self, line: &str, after: Duration) {
        self.last = after;
        self.log += &format!("{:7.2} {line}\n", after.as_secs_f64());
        // The kernel may have said something on the same line.
        let Some((_, said)) = line.split_once(MARK) else { return };
        let words: Vec<&str> = said.splitn(4, ' ').collect();
        match words[..] {
            ["hello"] => self.hello = Some(after),
            ["bye"] => self.complete = true,
            ["end", scenario, how, ref why @ ..] => {
                let why = why.join(" ");
                let ended = match how {
                    "well" => Ended::Well,
                    "skipped" => Ended::Skipped(why),
                    _ => Ended::Badly(why),
                };
                self.ended.insert(scenario.to_owned(), ended);
            }
            _ => {}
        }
    }

    /// The log from a scenario's begin to its end; all of it, if it never began.
    pub fn about(&self, scenario: &str) -> String {
        let lines: Vec<&str> = self.log.lines().collect();
        let position = |what: &str| {
            let said = format!("{MARK}{what} {scenario}");
            lines.iter().rposition(|line| line.contains(&said))
        };
        let end = position("end").map_or(lines.len(), |end| end + 1);
        let begin = position("begin").unwrap_or(0).max(end.saturating_sub(SHOWN)).min(end);
        lines[begin..end].join("\n")
    }
}
