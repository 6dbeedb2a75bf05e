//! Which workloads run under which policies.

use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

/// The baseline that gains are measured against.
pub const BASELINE: &str = "random";
/// The upper bound of headroom.
pub const BOUND: &str = "oracle";

/// A workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Case {
    /// Programs for each core.
    pub width: usize,
    /// Cores.
    pub cores: usize,
    /// Which of the workloads for so many cores, from 0.
    pub number: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smt{} {} cores {}", self.width, self.cores, self.number)
    }
}

impl Case {
    /// Its programs, each as often as any other, but for one.
    #[must_use]
    pub fn programs(&self, all: &[String], seed: u64) -> Vec<String> {
        let number = (self.number as u64) << 16 | (self.cores as u64) << 8 | self.width as u64;
        let mut random = Pcg64Mcg::seed_from_u64(seed.rotate_left(32) ^ number);
        let mut deck = all.to_vec();
        let wanted = self.width * self.cores;
        let mut programs = Vec::with_capacity(wanted);
        while programs.len() < wanted && !deck.is_empty() {
            deck.shuffle(&mut random);
            programs.extend(deck.iter().take(wanted - programs.len()).cloned());
        }
        programs
    }
}

/// A workload under a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    /// The workload.
    pub case: Case,
    /// The policy.
    pub policy: String,
}

/// How large an evaluation is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// Programs for each core, as many rounds of core counts.
    pub widths: Vec<usize>,
    /// Counts of cores.
    pub cores: Vec<usize>,
    /// Workloads of each width, over all counts of cores.
    pub workloads: usize,
    /// Repeats of each, from random starts.
    pub repeats: u32,
    /// How long each program runs alone to set its target.
    pub alone: Duration,
    /// The policies.
    pub policies: Vec<String>,
}

impl Size {
    /// The paper's, with shorter runs.
    #[must_use]
    pub fn full() -> Self {
        let policies = ["random", "stay", "l1-bandwidth", "symbiotic", "symbiotic-numa", "oracle"];
        Self {
            widths: vec![2, 4],
            cores: (4..=10).collect(),
            workloads: 80,
            repeats: 15,
            alone: Duration::from_secs(20),
            policies: policies.map(str::to_owned).into(),
        }
    }

    /// Some minutes: four workloads of either width on 4 and on 6 cores.
    #[must_use]
    pub fn short() -> Self {
        Self {
            cores: vec![4, 6],
            workloads: 8,
            repeats: 2,
            alone: Duration::from_secs(2),
            ..Self::full()
        }
    }
}

/// All runs: workload by workload, each under all policies. The oracle knows
/// pairs only.
#[must_use]
pub fn plan(size: &Size) -> Vec<Run> {
    let mut runs = Vec::new();
    let counts = size.cores.len().max(1);
    for &width in &size.widths {
        for (at, &cores) in size.cores.iter().enumerate() {
            let more = usize::from(at < size.workloads % counts);
            for number in 0..size.workloads / counts + more {
                let case = Case { width, cores, number };
                let policies = size.policies.iter().filter(|p| *p != BOUND || width == 2);
                let run = |policy: &String| Run { case: case.clone(), policy: policy.clone() };
                runs.extend(policies.map(run));
            }
        }
    }
    runs
}
