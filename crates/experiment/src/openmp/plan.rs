//! Which runs the campaign holds, and in what order.

use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::kernels::KERNELS;
use crate::phases::Grouping;
use crate::phases::plan::POLICIES;

/// Time that a run takes beside its measurement.
const AROUND: Duration = Duration::from_millis(700);

/// How large a campaign is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// Kernels; each unordered pair is a cell.
    pub kernels: Vec<String>,
    /// Whose CPU time is weighed against whose.
    pub groupings: Vec<Grouping>,
    /// Rounds.
    pub rounds: u32,
    /// Time that each kernel takes alone on the idle machine.
    pub time: Duration,
}

impl Size {
    /// All pairs, five rounds: about two and a half hours on two CPUs.
    #[must_use]
    pub fn full() -> Self {
        Self {
            kernels: KERNELS.map(str::to_owned).into(),
            groupings: Grouping::ALL.into(),
            rounds: 5,
            time: Duration::from_millis(1500),
        }
    }

    /// All pairs once, shortly, in one session: about four minutes on two CPUs.
    #[must_use]
    pub fn short() -> Self {
        Self {
            groupings: vec![Grouping::OneSession],
            rounds: 1,
            time: Duration::from_millis(300),
            ..Self::full()
        }
    }
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// One kernel, not managed.
    Alone {
        /// Which.
        kernel: String,
    },
    /// Two kernels in both orders, managed.
    Both {
        /// Which.
        kernels: [String; 2],
        /// By which policy.
        policy: String,
        /// In whose sessions.
        grouping: Grouping,
    },
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// In which round, from 0.
    pub round: u32,
    /// What runs.
    pub what: What,
}

impl Run {
    /// A name that no other run of the campaign has.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:03}-{self}", self.round)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Alone { kernel } => write!(f, "{kernel} alone"),
            What::Both { kernels: [a, b], policy, grouping } => {
                write!(f, "{a} and {b}, {policy}, {}", grouping.name())
            }
        }
    }
}

/// All unordered pairs, each with itself too.
pub(super) fn pairs(kernels: &[String]) -> Vec<[String; 2]> {
    let of = |(i, a): (usize, &String)| {
        kernels.iter().skip(i).map(|b| [a.clone(), b.clone()]).collect::<Vec<_>>()
    };
    kernels.iter().enumerate().flat_map(of).collect()
}

/// All runs in the order in which they are to be carried out: round by round, in
/// random order within each.
#[must_use]
pub fn plan(size: &Size, seed: u64) -> Vec<Run> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut all = Vec::new();
    for round in 0..size.rounds {
        let mut whats: Vec<What> =
            size.kernels.iter().map(|kernel| What::Alone { kernel: kernel.clone() }).collect();
        for kernels in pairs(&size.kernels) {
            for policy in POLICIES {
                whats.extend(size.groupings.iter().map(|&grouping| What::Both {
                    kernels: kernels.clone(),
                    policy: policy.to_owned(),
                    grouping,
                }));
            }
        }
        whats.shuffle(&mut rng);
        all.extend(whats.into_iter().map(|what| Run { round, what }));
    }
    all
}

/// About how long runs take, one after the other.
#[must_use]
pub fn estimate<'a>(runs: impl IntoIterator<Item = &'a Run>, time: Duration) -> Duration {
    let of = |run: &Run| match run.what {
        What::Alone { .. } => time + AROUND,
        // Four programs' work; by the model up to a third less than one after the other.
        What::Both { .. } => time * 4 + AROUND,
    };
    runs.into_iter().map(of).sum()
}
