//! What is asked of a machine, and what became of it.

use serde::{Deserialize, Serialize};

use crate::{Priority, Target, ThreadId};

/// One change to one thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Where it may run.
    Affinity(Target),
    /// How urgent it is.
    Priority(Priority),
}

/// A transaction on one thread, which may fail. Only the planner makes these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Move {
    /// Which thread.
    pub thread: ThreadId,
    /// What shall change.
    pub change: Change,
}

/// What became of a move. Failure is normal and is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "why")]
pub enum Outcome {
    /// It is in force.
    Done,
    /// The thread has exited (or its number now means another thread).
    Gone,
    /// Somebody else changed the same setting since; theirs was left alone.
    Foreign,
    /// The machine said no; the text says why.
    Refused(String),
    /// This machine does not act (a replay, a dry run).
    NotEnforced,
}
