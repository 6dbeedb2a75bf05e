//! Which runs the experiment holds, and in what order.

use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::phases::Grouping;

/// Time that a run takes beside its measurement.
const AROUND: Duration = Duration::from_millis(1200);

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rounds of two programs.
    pub rounds: u32,
    /// Length of their runs.
    pub time: Duration,
    /// Timeouts that are tried.
    pub timeouts: Vec<Duration>,
    /// Length of the runs in which nobody may starve.
    pub long: Duration,
    /// Parallel programs of these.
    pub many: Vec<u32>,
}

impl Size {
    /// About 50 minutes, with runs of ten.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 5,
            time: Duration::from_secs(15),
            timeouts: [250, 1000, 4000].map(Duration::from_millis).into(),
            long: Duration::from_secs(600),
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
}

/// The parts of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Two programs, against `stay`.
    Turns,
    /// Many programs for long: does anybody starve?
    Starvation,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Of which part.
    pub part: Part,
    /// In which round, from 0.
    pub round: u32,
    /// Programs that are parallel all the time.
    pub parallel: u32,
    /// Is there also one that is serial all the time?
    pub beside_serial: bool,
    /// The timeout of `phases`; none: under `stay`.
    pub timeout: Option<Duration>,
    /// In whose sessions.
    pub grouping: Grouping,
    /// How long.
    pub time: Duration,
}

impl Run {
    /// A name that no other run of the experiment has.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:?}-{:03}-{self}", self.part, self.round)
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &'static str {
        if self.timeout.is_some() { "phases" } else { "stay" }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let serial = if self.beside_serial { " beside a serial one" } else { "" };
        write!(f, "{} parallel programs{serial}, {}", self.parallel, self.policy())?;
        if let Some(timeout) = self.timeout {
            write!(f, " with turns of {timeout:?}")?;
        }
        write!(f, ", {}", self.grouping.name())
    }
}

/// All runs in the order in which they are to be carried out.
#[must_use]
pub fn plan(size: &Size, seed: u64) -> Vec<Run> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut all = Vec::new();
    let timeouts = || std::iter::once(None).chain(size.timeouts.iter().copied().map(Some));
    for round in 0..size.rounds {
        let of = |grouping: Grouping| {
            let run = move |timeout| Run {
                part: Part::Turns,
                round,
                parallel: 2,
                beside_serial: false,
                timeout,
                grouping,
                time: size.time,
            };
            timeouts().map(run)
        };
        let mut runs: Vec<Run> = Grouping::ALL.into_iter().flat_map(of).collect();
        runs.shuffle(&mut rng);
        all.extend(runs);
    }
    for &parallel in &size.many {
        all.extend([false, true].map(|beside_serial| Run {
            part: Part::Starvation,
            round: 0,
            parallel,
            beside_serial,
            timeout: Some(Duration::from_secs(1)),
            grouping: Grouping::OneSession,
            time: size.long,
        }));
    }
    all
}

/// About how long runs take, one after the other.
#[must_use]
pub fn estimate<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Duration {
    runs.into_iter().map(|run| run.time + AROUND).sum()
}
