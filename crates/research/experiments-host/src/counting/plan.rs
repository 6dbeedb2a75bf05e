//! The loads, and how often and how long each runs.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// About how long a quantum of a thread takes to carry out here, stirring it
/// included.
const EACH: Duration = Duration::from_micros(60);

/// What the counted threads do between two quanta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// Nothing.
    Quiet,
    /// Each runs for a moment.
    Active,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Load {
    /// What the threads do.
    pub activity: Activity,
    /// How many there are.
    pub threads: u32,
}

impl Load {
    /// The loads of the experiment.
    #[must_use]
    pub fn all() -> Vec<Self> {
        [Activity::Quiet, Activity::Active]
            .into_iter()
            .flat_map(|activity| [16, 128, 1024].map(|threads| Self { activity, threads }))
            .collect()
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.activity {
            Activity::Quiet => "quiet",
            Activity::Active => "active",
        };
        write!(f, "{} {what} threads", self.threads)
    }
}

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rounds.
    pub rounds: u32,
    /// Quanta of a run.
    pub quanta: u32,
}

impl Size {
    /// Ten rounds: about two minutes.
    #[must_use]
    pub fn full() -> Self {
        Self { rounds: 10, quanta: 40 }
    }

    /// A quarter of a minute.
    #[must_use]
    pub fn short() -> Self {
        Self { rounds: 3, quanta: 20 }
    }

    /// About how long a run takes.
    pub(super) fn cost(&self, load: Load) -> Duration {
        EACH * load.threads * (2 * self.quanta + 10)
    }

    /// About how long the experiment takes.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let round: Duration = Load::all().into_iter().map(|load| self.cost(load)).sum();
        round * self.rounds
    }
}
