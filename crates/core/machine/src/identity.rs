//! What identifies programs and threads, and moments.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment on the machine's own clock, in nanoseconds since its start.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Time that passed since an earlier moment; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A thread's identity, unique over the machine's life although the numbers
/// that the OS gives are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// Process (thread group) number.
    pub process: u32,
    /// Thread number.
    pub thread: u32,
    /// When the thread was born, in the machine's unit (Linux: clock ticks
    /// since boot).
    pub born: u64,
    /// How many times the process replaced its program (exec) since it was
    /// enrolled. No setting is applied after an exec.
    pub generation: u32,
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.process == self.thread {
            write!(f, "thread {}", self.thread)
        } else {
            write!(f, "thread {} of process {}", self.thread, self.process)
        }
    }
}

/// A program: one enrolled command with all its processes and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramId(pub u32);
