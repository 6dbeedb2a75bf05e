//! Which workloads run under which policies.

use std::collections::BTreeSet;
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
/// The policy that negative controls are of.
pub const CONTROLLED: &str = "symbiotic";
/// The policy that places by memory.
pub const NEAR: &str = "symbiotic-numa";
/// Fewest cores of which some are on the second node.
pub const BOTH_NODES: usize = 6;
/// The simulated OS.
pub const OS: &str = "stay";
/// Programs for each core where SMT8 is held against SMT4.
pub const WIDE: usize = 8;
/// Cores of the workloads of which it is told who shared a core with whom (the paper's figures 9
/// and 10), and how many workloads.
pub const COMPANY: (usize, usize) = (5, 2);

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

/// Time of a decision where it is made to cost some: what `bench decision` holds one about 40 threads
/// to.
pub const DECISION: Duration = Duration::from_millis(1);

/// Under which terms a policy decides: as they are; as a negative control, in which what it gains must
/// vanish; with decisions that take time; or with fewer hardware threads than programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Terms {
    /// As they are.
    Plain,
    /// Moves and switches cost nothing, and leave no cold caches: what is gained then lies in who is
    /// beside whom, not in moving seldom.
    Free,
    /// The same, but it is shown other programs' measurements, each those of the same one throughout,
    /// and recalls nothing.
    Exchanged,
    /// The same, drawn anew each quantum.
    Shuffled,
    /// The same with its own measurements, but execution units and caches are private to each thread.
    Private,
    /// Decisions take [`DECISION`]; programs run on where they are meanwhile.
    Late,
    /// The same, on a reserved core; the OS runs the programs on the others meanwhile.
    Reserved,
    /// Half of the hardware threads of each core: programs take turns.
    Narrow,
}

impl Terms {
    /// Do moves and switches cost nothing?
    #[must_use]
    pub fn moves_freely(self) -> bool {
        matches!(self, Self::Free | Self::Exchanged | Self::Shuffled | Self::Private)
    }

    /// Are measurements those of other programs?
    #[must_use]
    pub fn exchanges(self) -> bool {
        matches!(self, Self::Exchanged | Self::Shuffled)
    }
}

/// A workload under a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    /// The workload.
    pub case: Case,
    /// The policy.
    pub policy: String,
    /// Under which terms.
    pub terms: Terms,
}

impl Run {
    /// Is it kept who shared a core with whom?
    #[must_use]
    pub fn keeps_company(&self, size: &Size) -> bool {
        let (cores, workloads) = COMPANY;
        let among = size.cores.contains(&cores).then_some(cores).or(size.cores.first().copied());
        self.terms == Terms::Plain
            && self.policy == CONTROLLED
            && Some(self.case.cores) == among
            && self.case.number < workloads
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, policy, terms } = self;
        match terms {
            Terms::Plain => write!(f, "{case} {policy}"),
            Terms::Free => write!(f, "{case} {policy}, moves free"),
            Terms::Exchanged => write!(f, "{case} {policy}, moves free, measurements exchanged"),
            Terms::Shuffled => {
                write!(f, "{case} {policy}, moves free, measurements shuffled each quantum")
            }
            Terms::Private => write!(f, "{case} {policy}, moves free, units and caches private"),
            Terms::Late => write!(f, "{case} {policy}, decisions take time"),
            Terms::Reserved => write!(f, "{case} {policy}, decisions on a reserved core"),
            Terms::Narrow => write!(f, "{case} {policy}, on half of the hardware threads"),
        }
    }
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
    /// Workloads of each width and count of cores that are run as negative controls too, and with
    /// decisions that take time.
    pub controls: usize,
    /// Workloads of eight programs for each core that the OS runs in SMT8, and in SMT4 in turns, and
    /// the counts of cores with so many each.
    pub wide: (usize, Vec<usize>),
}

impl Size {
    /// Is SMT8 held against SMT4?
    #[must_use]
    pub fn runs_wide(&self) -> bool {
        self.wide.0 > 0 && !self.wide.1.is_empty()
    }

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
            controls: 3,
            wide: (10, vec![4, 10]),
        }
    }

    /// Some minutes: four workloads of either width on 4 and on 6 cores.
    #[must_use]
    pub fn short() -> Self {
        // To prepare cores for eight threads takes longer than all the rest.
        Self {
            cores: vec![4, 6],
            workloads: 8,
            repeats: 2,
            alone: Duration::from_secs(2),
            controls: 1,
            wide: (0, Vec::new()),
            ..Self::full()
        }
    }
}

/// All runs: workload by workload, each under all policies, some as negative controls too. The
/// oracle knows pairs only.
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
                let run = |policy: &str, terms: Terms| Run {
                    case: case.clone(),
                    policy: policy.to_owned(),
                    terms,
                };
                runs.extend(policies.map(|policy| run(policy, Terms::Plain)));
                let controlled = [BASELINE, CONTROLLED]
                    .iter()
                    .all(|name| size.policies.iter().any(|policy| policy == name));
                if controlled && number < size.controls {
                    runs.extend([
                        run(CONTROLLED, Terms::Free),
                        run(BASELINE, Terms::Free),
                        run(CONTROLLED, Terms::Exchanged),
                        run(CONTROLLED, Terms::Shuffled),
                        run(CONTROLLED, Terms::Private),
                        run(BASELINE, Terms::Private),
                        run(CONTROLLED, Terms::Late),
                        run(CONTROLLED, Terms::Reserved),
                    ]);
                }
            }
        }
    }
    let (workloads, counts) = &size.wide;
    for &cores in counts {
        for number in 0..*workloads {
            let case = Case { width: WIDE, cores, number };
            let run = |terms| Run { case: case.clone(), policy: OS.to_owned(), terms };
            runs.extend([Terms::Plain, Terms::Narrow].map(run));
        }
    }
    // The wide ones may be among those that were asked for anyway.
    let mut planned = BTreeSet::new();
    runs.retain(|run| planned.insert(run.clone()));
    runs
}
