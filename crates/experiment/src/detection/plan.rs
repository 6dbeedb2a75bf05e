//! Which runs the experiment holds, and in what order.

use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// Time that a run takes beside its measurement.
const AROUND: Duration = Duration::from_millis(1200);

/// What runs beside the program that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// A program that is parallel all the time.
    Parallel,
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "alone",
            Self::Parallel => "beside a parallel program",
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
    /// About twenty minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 4,
            lengths: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map(Duration::from_millis).into(),
            phases: 40,
            time: (Duration::from_secs(2), Duration::from_secs(20)),
        }
    }

    /// About two minutes.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 1,
            lengths: [1, 5, 20, 50, 100, 500, 1000].map(Duration::from_millis).into(),
            phases: 10,
            time: (Duration::from_secs(1), Duration::from_secs(8)),
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// In which round, from 0.
    pub round: u32,
    /// Mean length of a phase.
    pub length: Duration,
    /// What runs beside.
    pub beside: Beside,
    /// How the manager sees.
    pub manager: Manager,
    /// How long.
    pub time: Duration,
}

impl Run {
    /// A name that no other run of the experiment has.
    #[must_use]
    pub fn id(&self) -> String {
        let (length, beside, manager) = (self.length.as_micros(), self.beside, self.manager);
        format!("{:03}-{length}us-{beside:?}-{manager:?}", self.round)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phases of {} ms, {}", self.length.as_secs_f64() * 1e3, self.beside)
    }
}

/// All runs in the order in which they are to be carried out.
#[must_use]
pub fn plan(size: &Size, seed: u64) -> Vec<Run> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut all = Vec::new();
    for round in 0..size.rounds {
        let mut runs: Vec<Run> = (size.lengths.iter())
            .flat_map(|&length| {
                let time = (length * size.phases).clamp(size.time.0, size.time.1);
                let cells = [Beside::Nothing, Beside::Parallel]
                    .map(|beside| [Manager::Accounts, Manager::Woken].map(|m| (beside, m)));
                let run = move |(beside, manager)| Run { round, length, beside, manager, time };
                cells.into_iter().flatten().map(run)
            })
            .collect();
        runs.shuffle(&mut rng);
        all.extend(runs);
    }
    all
}

/// About how long runs take, one after the other.
#[must_use]
pub fn estimate<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Duration {
    runs.into_iter().map(|run| run.time + AROUND).sum()
}
