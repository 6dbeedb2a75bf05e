//! Which runs the experiment holds, and in what order.

use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
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
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// In which round, from 0.
    pub round: u32,
    /// What is counted.
    pub load: Load,
    /// For how many quanta.
    pub quanta: u32,
}

impl Run {
    /// A name that no other run of the experiment has.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:03}-{}", self.round, self.load.to_string().replace(' ', "-"))
    }
}

/// All runs in the order in which they are to be carried out.
#[must_use]
pub fn plan(size: &Size, seed: u64) -> Vec<Run> {
    let mut rng = Pcg64::seed_from_u64(seed);
    (0..size.rounds)
        .flat_map(|round| {
            let run = |load| Run { round, load, quanta: size.quanta };
            let mut runs: Vec<Run> = Load::all().into_iter().map(run).collect();
            runs.shuffle(&mut rng);
            runs
        })
        .collect()
}

/// About how long runs take, one after the other.
#[must_use]
pub fn estimate<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Duration {
    runs.into_iter().map(|run| EACH * run.load.threads * (2 * run.quanta + 10)).sum()
}
