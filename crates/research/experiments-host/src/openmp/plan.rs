//! Which cells a round of the experiment holds.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::phases::Grouping;
use crate::phases::plan::POLICIES;

/// Time that a run takes besides its measurement.
pub(super) const AROUND: Duration = Duration::from_millis(700);

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenmpSize {
    /// Kernels; each unordered pair is a cell.
    pub kernels: Vec<String>,
    /// Whose CPU time is weighed against whose.
    pub groupings: Vec<Grouping>,
    /// Rounds.
    pub rounds: u32,
    /// Time that each kernel takes alone on the idle machine.
    pub time: Duration,
}

impl OpenmpSize {
    /// All pairs of six kernels in one session, five rounds: nine minutes on two CPUs.
    #[must_use]
    pub fn full() -> Self {
        let kernels = ["jacobi", "cg", "lu", "mandelbrot", "sort", "bfs"];
        Self {
            kernels: kernels.map(str::to_owned).into(),
            groupings: vec![Grouping::OneSession],
            rounds: 5,
            time: Duration::from_millis(400),
        }
    }

    /// The same once, shortly: about two minutes on two CPUs.
    #[must_use]
    pub fn short() -> Self {
        Self { rounds: 1, time: Duration::from_millis(300), ..Self::full() }
    }

    /// The cells of a round: each kernel alone, and each pair under each policy.
    #[must_use]
    pub fn cells(&self) -> Vec<RunKind> {
        let alone = self.kernels.iter().map(|kernel| RunKind::Alone { kernel: kernel.clone() });
        let pair = |kernels: [String; 2]| {
            let both = POLICIES.into_iter().flat_map(|policy| {
                let policy = policy.to_owned();
                self.groupings.iter().map(move |&grouping| (policy.clone(), grouping))
            });
            let cell = move |(policy, grouping)| RunKind::Both {
                kernels: kernels.clone(),
                policy,
                grouping,
            };
            both.map(cell).collect::<Vec<_>>()
        };
        alone.chain(pairs(&self.kernels).into_iter().flat_map(pair)).collect()
    }
}

/// What a run measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// One kernel, not managed.
    Alone {
        /// The kernel.
        kernel: String,
    },
    /// Two kernels in both orders, managed.
    Both {
        /// The kernels.
        kernels: [String; 2],
        /// By which policy.
        policy: String,
        /// In whose sessions.
        grouping: Grouping,
    },
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone { kernel } => write!(f, "{kernel} alone"),
            Self::Both { kernels: [a, b], policy, grouping } => {
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
