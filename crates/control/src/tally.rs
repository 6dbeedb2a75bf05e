//! Counts of moves and failures so far.

use std::collections::BTreeMap;

use symbiont_machine::{Change, Move, Outcome};
use symbiont_planner::Why;

use crate::Step;

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
