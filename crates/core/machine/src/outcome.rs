//! Moves that a machine carries out, and their outcomes.

use serde::{Deserialize, Serialize};
use symbiont_topology::CpuSet;

use crate::{Priority, Target, ThreadId};

/// One change to one thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Where it may run: a mask that stays.
    Affinity(Target),
    /// That it runs on one of these hardware threads now; its mask stays what it is.
    Nudge(CpuSet),
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

/// The outcome of a move. Failure is normal and is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "why")]
pub enum Outcome {
    /// It is applied.
    Done,
    /// The thread has exited (or its number now means another thread).
    Gone,
    /// Another process changed the same setting since; its value was left alone.
    #[serde(rename = "foreign")]
    ExternallyChanged,
    /// The machine said no; the text says why.
    Refused(String),
    /// This machine does not act (a replay, a dry run).
    NotEnforced,
}
