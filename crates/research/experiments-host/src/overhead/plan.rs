//! The loads, and how often and how long each runs.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Times per second that a sleeper wakes.
pub const WAKES_PER_S: u32 = 10;
/// Iterations that it does then, about one microsecond each.
pub const WORK: u32 = 20;
/// Quantum of `phases`, and of the bare loop.
pub const QUANTUM: Duration = Duration::from_millis(50);

/// Time that a run takes besides its measurement.
pub(super) const AROUND: Duration = Duration::from_millis(700);

/// What the managed program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Threads that mostly sleep.
    Sleepers(u32),
    /// Threads that never sleep.
    Busy(u32),
    /// Unmanaged sleepers: a bare loop does nothing but read them.
    Bare(u32),
}

impl Load {
    /// The loads of the experiment.
    pub const ALL: [Self; 8] = [
        Self::Sleepers(8),
        Self::Sleepers(64),
        Self::Sleepers(512),
        Self::Sleepers(2048),
        Self::Busy(64),
        Self::Busy(512),
        Self::Bare(8),
        Self::Bare(512),
    ];

    /// Threads besides the program's main one.
    #[must_use]
    pub fn threads(self) -> u32 {
        match self {
            Self::Sleepers(count) | Self::Busy(count) | Self::Bare(count) => count,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sleepers(count) => write!(f, "{count} sleepers"),
            Self::Busy(count) => write!(f, "{count} busy"),
            Self::Bare(count) => write!(f, "{count} sleepers, a bare loop"),
        }
    }
}

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rounds.
    pub rounds: u32,
    /// Length of a run.
    pub time: Duration,
}

impl Size {
    /// Six rounds of ten seconds: less than nine minutes.
    #[must_use]
    pub fn full() -> Self {
        Self { rounds: 6, time: Duration::from_secs(10) }
    }

    /// About a minute.
    #[must_use]
    pub fn short() -> Self {
        Self { rounds: 2, time: Duration::from_secs(4) }
    }

    /// About how long the experiment takes.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        (self.time + AROUND) * self.rounds * Load::ALL.len() as u32
    }
}
