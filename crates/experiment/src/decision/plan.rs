//! The loads, and how often and how long each runs.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_campaign::{Finished, InRound};
use symbiont_model::Depth;

/// Numbers of threads.
const THREADS: [u32; 7] = [16, 40, 80, 160, 320, 640, 1024];

/// About how long a decision takes for each pair of threads, the making of counts included.
const EACH: Duration = Duration::from_nanos(250);

/// What is decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Load {
    /// Which stack describes threads.
    pub stack: Depth,
    /// Threads that a core runs.
    pub smt: u32,
    /// Threads altogether, as many as there are places.
    pub threads: u32,
}

/// A finished run, with the wall time of each decision in ms; the first one found no groups.
pub type Done = Finished<InRound<Load>, Vec<f64>>;

impl Load {
    /// The loads of the experiment.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let kinds = Depth::ALL.into_iter().flat_map(|stack| [2, 4].map(|smt| (stack, smt)));
        let of = |(stack, smt)| THREADS.map(|threads| Self { stack, smt, threads });
        kinds.flat_map(of).collect()
    }

    /// Cores that are needed.
    #[must_use]
    pub fn cores(self) -> u32 {
        self.threads.div_ceil(self.smt.max(1))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stack, smt, threads } = self;
        write!(f, "{threads} threads on {} cores SMT{smt}, {stack} stack", self.cores())
    }
}

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rounds.
    pub rounds: u32,
    /// Decisions of a run.
    pub quanta: u32,
}

impl Size {
    /// Ten rounds: some minutes.
    #[must_use]
    pub fn full() -> Self {
        Self { rounds: 10, quanta: 25 }
    }

    /// Half a minute.
    #[must_use]
    pub fn short() -> Self {
        Self { rounds: 3, quanta: 9 }
    }

    /// About how long a run takes.
    pub(super) fn cost(&self, Load { threads, .. }: Load) -> Duration {
        EACH * threads * threads / 2 * (self.quanta + 2)
    }

    /// About how long the experiment takes.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let round: Duration = Load::all().into_iter().map(|load| self.cost(load)).sum();
        round * self.rounds
    }
}
