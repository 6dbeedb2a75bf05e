//! Counts of moves and failures so far.

use std::collections::BTreeMap;

use symbiont_machine::{Change, Move, Outcome};
use symbiont_planner::Why;

use crate::Step;

/// Reasons of the machine that are distinguished; more come together as [`OTHER`].
const MOST_REASONS: usize = 16;
/// What further reasons are counted as.
const OTHER: &str = "for other reasons";

/// Counts over all steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps made.
    pub quanta: u64,
    /// Threads seen; one that replaces its program is still the same.
    pub threads: u64,
    /// Moves that were applied.
    pub done: u64,
    /// Of these, nudges: they left the thread its mask.
    pub nudges: u64,
    /// Moves that came after their thread's end.
    pub gone: u64,
    /// Moves not made because the program or another process had changed the setting.
    pub externally_changed: u64,
    /// Moves that the machine refused.
    pub refused: u64,
    /// The same by the machine's reason.
    pub refusals: BTreeMap<String, u64>,
    /// Moves that the machine did not carry out because it does not act.
    pub not_enforced: u64,
    /// Failures of the machine as a whole that were passed over.
    pub failures: u64,
    /// The last of them, in words.
    pub last_failure: Option<String>,
    /// Moves that were never asked for, by reason; one that is wanted for
    /// several quanta counts in each.
    pub withheld: BTreeMap<Why, u64>,
}

impl Tally {
    /// Moves that the machine was asked for.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.done + self.gone + self.externally_changed + self.refused + self.not_enforced
    }

    /// Adds a step, and the threads in it that the step before did not have.
    pub(crate) fn add(&mut self, step: &Step, new_threads: u64) {
        self.quanta += 1;
        self.threads += new_threads;
        for (asked, outcome) in step.moves() {
            self.add_move(asked, outcome);
        }
        for withheld in &step.plan.withheld {
            *self.withheld.entry(withheld.why).or_default() += 1;
        }
    }

    /// Adds nudges that were made within a quantum.
    pub(crate) fn add_nudges(&mut self, nudges: u64) {
        self.done += nudges;
        self.nudges += nudges;
    }

    pub(crate) fn add_move(&mut self, asked: &Move, outcome: &Outcome) {
        let is_nudge = matches!(asked.change, Change::Nudge(_));
        self.nudges += u64::from(is_nudge && *outcome == Outcome::Done);
        if let Outcome::Refused(why) = outcome {
            let is_new = !self.refusals.contains_key(why);
            let why = if is_new && self.refusals.len() >= MOST_REASONS { OTHER } else { why };
            *self.refusals.entry(why.to_owned()).or_default() += 1;
        }
        let count = match outcome {
            Outcome::Done => &mut self.done,
            Outcome::Gone => &mut self.gone,
            Outcome::ExternallyChanged => &mut self.externally_changed,
            Outcome::Refused(_) => &mut self.refused,
            Outcome::NotEnforced => &mut self.not_enforced,
        };
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::{Target, ThreadId};

    use super::*;

    #[test]
    fn refusals_are_counted_by_reason_and_bounded() {
        let thread = ThreadId { process: 1, thread: 1, born: 1, generation: 0 };
        let asked = Move { thread, change: Change::Affinity(Target::Os) };
        let mut tally = Tally::default();
        for number in 0..40 {
            tally.add_move(&asked, &Outcome::Refused(format!("reason {}", number % 20)));
        }
        assert_eq!(tally.refused, 40);
        assert_eq!(tally.refusals.values().sum::<u64>(), 40);
        assert_eq!((tally.refusals.len(), tally.refusals["reason 3"]), (MOST_REASONS + 1, 2));
        assert_eq!(tally.refusals[OTHER], 8);
    }
}
