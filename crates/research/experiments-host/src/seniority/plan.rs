//! Which cells the experiment holds.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::phases::Grouping;

/// Time that a run takes besides its measurement.
pub(super) const AROUND: Duration = Duration::from_millis(1200);

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rounds of two programs.
    pub rounds: u32,
    /// Length of their runs.
    pub time: Duration,
    /// Timeouts that are tried.
    pub timeouts: Vec<Duration>,
    /// Length of the runs in which no program may starve.
    pub long: Duration,
    /// Parallel programs of these.
    pub many: Vec<u32>,
}

impl Size {
    /// Nine minutes, with runs of one.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 4,
            time: Duration::from_secs(8),
            timeouts: [250, 1000].map(Duration::from_millis).into(),
            long: Duration::from_secs(60),
            many: vec![2, 4],
        }
    }

    /// Two minutes.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 2,
            time: Duration::from_secs(6),
            timeouts: [250, 1000].map(Duration::from_millis).into(),
            long: Duration::from_secs(20),
            many: vec![3],
        }
    }

    /// Two programs against `stay`: the cells of a round.
    #[must_use]
    pub fn turns(&self) -> Vec<Cell> {
        let timeouts = || std::iter::once(None).chain(self.timeouts.iter().copied().map(Some));
        let of = |grouping: Grouping| {
            let cell = move |timeout| Cell {
                part: Part::Turns,
                parallel: 2,
                with_serial: false,
                timeout,
                grouping,
                time: self.time,
            };
            timeouts().map(cell)
        };
        Grouping::ALL.into_iter().flat_map(of).collect()
    }

    /// Many programs for long, once.
    #[must_use]
    pub fn starvation(&self) -> Vec<Cell> {
        let of = |&parallel: &u32| {
            [false, true].map(|with_serial| Cell {
                part: Part::Starvation,
                parallel,
                with_serial,
                timeout: Some(Duration::from_secs(1)),
                grouping: Grouping::OneSession,
                time: self.long,
            })
        };
        self.many.iter().flat_map(of).collect()
    }
}

/// The parts of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Two programs, against `stay`.
    Turns,
    /// Many programs for long: does a program starve?
    Starvation,
}

/// What one run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Of which part.
    pub part: Part,
    /// Programs that are parallel all the time.
    pub parallel: u32,
    /// Is there also one that is serial all the time?
    pub with_serial: bool,
    /// The timeout of `phases`; none: under `stay`.
    pub timeout: Option<Duration>,
    /// In whose sessions.
    pub grouping: Grouping,
    /// How long.
    pub time: Duration,
}

impl Cell {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &'static str {
        if self.timeout.is_some() { "phases" } else { "stay" }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let serial = if self.with_serial { " co-running with a serial one" } else { "" };
        write!(f, "{} parallel programs{serial}, {}", self.parallel, self.policy())?;
        if let Some(timeout) = self.timeout {
            write!(f, " with turns of {timeout:?}")?;
        }
        write!(f, ", {}", self.grouping.name())
    }
}
