//! Which cells a round of the experiment holds.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time that a run takes besides its measurement.
pub(super) const AROUND: Duration = Duration::from_millis(1200);

/// What co-runs with the program that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoRunner {
    /// Nothing.
    Nothing,
    /// A program that is parallel all the time.
    Parallel,
}

impl fmt::Display for CoRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "alone",
            Self::Parallel => "co-running with a parallel program",
        })
    }
}

/// How the manager sees changes of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manager {
    /// Once a quantum.
    Accounts,
    /// Also woken by tracepoints.
    Woken,
}

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rounds.
    pub rounds: u32,
    /// Mean lengths of phases.
    pub lengths: Vec<Duration>,
    /// Phases that a run holds, on average.
    pub phases: u32,
    /// Shortest and longest run.
    pub time: (Duration, Duration),
}

impl Size {
    /// Nine minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 4,
            lengths: [2, 10, 50, 200, 1000].map(Duration::from_millis).into(),
            phases: 20,
            time: (Duration::from_secs(2), Duration::from_secs(12)),
        }
    }

    /// Two minutes.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 1,
            lengths: [1, 5, 20, 50, 100, 500, 1000].map(Duration::from_millis).into(),
            phases: 10,
            time: (Duration::from_secs(1), Duration::from_secs(8)),
        }
    }

    /// The cells of a round.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let of_length = |&length: &Duration| {
            let time = (length * self.phases).clamp(self.time.0, self.time.1);
            let both = [CoRunner::Nothing, CoRunner::Parallel]
                .map(|co_runner| [Manager::Accounts, Manager::Woken].map(|m| (co_runner, m)));
            let cell = move |(co_runner, manager)| Cell { length, co_runner, manager, time };
            both.into_iter().flatten().map(cell)
        };
        self.lengths.iter().flat_map(of_length).collect()
    }
}

/// What differs between the runs of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Mean length of a phase.
    pub length: Duration,
    /// The co-runner.
    pub co_runner: CoRunner,
    /// How the manager sees.
    pub manager: Manager,
    /// How long.
    pub time: Duration,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phases of {} ms, {}", self.length.as_secs_f64() * 1e3, self.co_runner)
    }
}
