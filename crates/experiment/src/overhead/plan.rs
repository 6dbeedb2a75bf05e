//! Which runs the experiment holds, and in what order.

use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// Times per second that a sleeper wakes.
pub const WAKES_PER_S: u32 = 10;
/// Iterations that it does then, about one microsecond each.
pub const WORK: u32 = 20;
/// Quantum of `phases`, and of the bare loop.
pub const QUANTUM: Duration = Duration::from_millis(50);

/// Time that a run takes beside its measurement.
const AROUND: Duration = Duration::from_millis(700);

/// What the managed program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Threads that mostly sleep.
    Sleepers(u32),
    /// Threads that never sleep.
    Busy(u32),
    /// Sleepers that nobody manages: a bare loop does nothing but read them.
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

    /// Threads beside the program's main one.
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
    /// Ten rounds of ten seconds: about fifteen minutes.
    #[must_use]
    pub fn full() -> Self {
        Self { rounds: 10, time: Duration::from_secs(10) }
    }

    /// About a minute.
    #[must_use]
    pub fn short() -> Self {
        Self { rounds: 2, time: Duration::from_secs(4) }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// In which round, from 0.
    pub round: u32,
    /// What the managed program does.
    pub load: Load,
    /// How long.
    pub time: Duration,
}

impl Run {
    /// A name that no other run of the experiment has.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:03}-{}", self.round, self.load.to_string().replace(',', "").replace(' ', "-"))
    }
}

/// All runs in the order in which they are to be carried out.
#[must_use]
pub fn plan(size: &Size, seed: u64) -> Vec<Run> {
    let mut rng = Pcg64::seed_from_u64(seed);
    (0..size.rounds)
        .flat_map(|round| {
            let mut runs = Load::ALL.map(|load| Run { round, load, time: size.time });
            runs.shuffle(&mut rng);
            runs
        })
        .collect()
}

/// About how long runs take, one after the other.
#[must_use]
pub fn estimate<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Duration {
    runs.into_iter().map(|run| run.time + AROUND).sum()
}
