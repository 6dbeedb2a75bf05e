//! Jobs that wait, nodes that run some, and the rules between them.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// A program, by its place in the caller's list of programs. The same is predicted for all jobs of a program.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ProgramNumber(pub u32);

/// A job that waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Its program.
    pub program: ProgramNumber,
    /// Jobs of higher priority come first.
    pub priority: u64,
    /// When it was submitted, seconds.
    pub submitted_s: f64,
    /// Slots that it takes, at least one.
    pub slots: usize,
    /// The time limit that its user gave, seconds; infinite: none.
    pub limit_s: f64,
}

impl Job {
    /// How long it has waited, seconds.
    #[must_use]
    pub fn waited_s(&self, now_s: f64) -> f64 {
        (now_s - self.submitted_s).max(0.0)
    }

    /// The order of the queue: by priority, then first come, first served.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        other.priority.cmp(&self.priority).then_with(|| self.age_order(other))
    }

    /// The order of waiting: the one that has waited longest comes first.
    #[must_use]
    pub fn age_order(&self, other: &Self) -> Ordering {
        self.submitted_s.total_cmp(&other.submitted_s).then(self.id.cmp(&other.id))
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Slots in all.
    pub slots: usize,
    /// Slots that are free.
    pub free: usize,
    /// The jobs that run there.
    pub running: Vec<Running>,
}

/// A job that runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Running {
    /// Its program.
    pub program: ProgramNumber,
    /// Slots of the node that it takes.
    pub slots: usize,
    /// When it ends at the latest, by the limit that its user gave, seconds; infinite: no limit.
    pub ends_s: f64,
}

/// What bounds the choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// A job that has waited for so long starts before all others, seconds.
    pub most_wait_s: f64,
    /// How many jobs that fit somewhere, the first in the order of the queue, partners are chosen among.
    pub window: usize,
    /// A job whose priority is lower than that of the first by more than this is not in the window;
    /// none: no such bound.
    pub priority_spread: Option<u64>,
    /// A job starts before an earlier one only if that saves more than this, in units of slowdown.
    pub least_gain: f64,
    /// For how many jobs at most a node is kept whose turn has come but which have room nowhere yet, before they are
    /// overdue.
    pub reservations: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            most_wait_s: 3600.0,
            window: 64,
            priority_spread: None,
            least_gain: 0.01,
            reservations: 1,
        }
    }
}

/// A job that starts, where, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// Its number.
    pub job: u64,
    /// The name of its node.
    pub node: String,
    /// Programs next to which it will run.
    pub co_runners: Vec<ProgramNumber>,
    /// Predicted slowdown of the job there.
    pub slowdown: f64,
    /// The sum of the slowdown that it is predicted to suffer and those that it adds to its co-runners.
    pub cost: f64,
    /// Why this job, and why now.
    pub reason: Reason,
    /// The job for which its node is kept; this one does not delay it.
    pub kept_for: Option<u64>,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// Jobs that start.
    pub releases: Vec<Release>,
    /// Jobs that fit nowhere yet, each with the name of the node that is kept for it: no other job starts there that
    /// would delay it.
    pub kept: Vec<(u64, String)>,
}

/// Why a job starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It has waited for the stated maximum.
    Overdue {
        /// For how long, seconds.
        waited_s: f64,
    },
    /// It is the first of the queue that fits, and no other in the window is notably better there.
    First,
    /// It disturbs, and is disturbed, less than the first of the queue would be.
    Partner {
        /// The first of the queue that would fit.
        first: u64,
        /// What that one would cost there, relative to its average cost.
        first_cost: f64,
        /// What this one costs there, relative to its average cost.
        cost: f64,
        /// How many earlier jobs it starts before.
        overtaken: usize,
    },
}
