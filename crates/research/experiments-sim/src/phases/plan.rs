//! Which runs the experiment holds.

use std::fmt;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use symbiont_sim_fast::machine::Generation;
use symbiont_synth::Ratio;

use symbiont_report::theory::NINE;

/// The machines, and how many times as fast as the others one of their cores is.
pub const MACHINES: [(&str, f64); 2] = [("morad-8-symmetric", 1.0), ("morad-8-asymmetric", 2.0)];
/// The policy that leaves all to the OS.
pub const BASELINE: &str = "stay";
/// The policy of the paper.
const TRIED: &str = "phases";
/// What is compared, the baseline first: policies, with their parameters behind them.
pub const CONTENDERS: [&str; 3] = [BASELINE, TRIED, "phases seniority=0s"];
/// Under which schedulers of the OS: the paper's is Linux 2.6.18.
pub const SYSTEMS: [Generation; 2] = [Generation::Older, Generation::Today];
/// Mean length of a phase.
const PHASE: Duration = Duration::from_millis(200);
/// Cores of these machines.
pub const CORES: u32 = 8;

/// Ratios from labels that are known to be good (`the_sizes_hold_all_their_ratios`).
pub fn ratios(labels: &[&str]) -> Vec<Ratio> {
    labels.iter().filter_map(|label| label.parse().ok()).collect()
}

/// How large an experiment is. Times are simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedPhasesSize {
    /// Numbers of cores of Fig. 6 and 7.
    pub cores: Vec<u32>,
    /// Runs a point.
    pub cores_rounds: u32,
    /// Length of these runs.
    pub cores_time: Duration,
    /// Ratios of the matrix; each unordered pair is a cell.
    pub matrix_ratios: Vec<Ratio>,
    /// Rounds of the matrix.
    pub matrix_rounds: u32,
    /// Length of its runs.
    pub matrix_time: Duration,
}

impl SimulatedPhasesSize {
    /// All of it. The paper has 50 runs a point and runs of 60 s; here runs of one seed are alike but for
    /// where threads begin, so that fewer and shorter ones decide as much.
    #[must_use]
    pub fn full() -> Self {
        Self {
            cores: (2..=CORES).collect(),
            cores_rounds: 20,
            cores_time: Duration::from_secs(5),
            matrix_ratios: ratios(&NINE),
            matrix_rounds: 5,
            matrix_time: Duration::from_secs(20),
        }
    }

    /// Shorter runs, fewer rounds and pairs.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            cores: vec![2, 4, 8],
            cores_rounds: 5,
            cores_time: Duration::from_secs(2),
            matrix_ratios: ratios(&["inf:1", "2:1", "1:1", "1:4", "1:inf"]),
            matrix_rounds: 3,
            matrix_time: Duration::from_secs(8),
        }
    }
}

/// The parts of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A serial program co-running with a parallel one, by number of cores.
    Cores,
    /// All pairs of ratios.
    Matrix,
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// One program, under the OS.
    Alone {
        /// Which.
        ratio: Ratio,
        /// Which OS.
        os: Generation,
    },
    /// Two programs side by side.
    Together {
        /// Which.
        ratios: [Ratio; 2],
        /// Which OS.
        os: Generation,
        /// Under which contender.
        contender: String,
    },
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedPhasesRun {
    /// Of which part.
    pub part: Part,
    /// On which machine, by its place in [`MACHINES`].
    pub machine: usize,
    /// On how many of its cores, from the first.
    pub cores: u32,
    /// In which round, from 0.
    pub round: u32,
    /// How long it measures.
    pub time: Duration,
    /// Mean length of a phase on idle cores that are all alike.
    pub phase: Duration,
    /// Seed of all that is random.
    pub seed: u64,
    /// What runs.
    pub what: RunKind,
}

impl SimulatedPhasesRun {
    /// The programs.
    #[must_use]
    pub fn ratios(&self) -> Vec<Ratio> {
        match &self.what {
            RunKind::Alone { ratio, .. } => vec![*ratio],
            RunKind::Together { ratios, .. } => ratios.to_vec(),
        }
    }

    /// The OS.
    #[must_use]
    pub fn os(&self) -> Generation {
        match self.what {
            RunKind::Alone { os, .. } | RunKind::Together { os, .. } => os,
        }
    }

    /// The contender; none for a program alone.
    #[must_use]
    pub fn contender(&self) -> Option<&str> {
        match &self.what {
            RunKind::Alone { .. } => None,
            RunKind::Together { contender, .. } => Some(contender),
        }
    }
}

fn named(os: Generation) -> &'static str {
    match os {
        Generation::Today => "OS of today",
        Generation::Older => "older OS",
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone { ratio, os } => write!(f, "{ratio} alone, {}", named(*os)),
            Self::Together { ratios: [a, b], os, contender } => {
                write!(f, "{a} co-running with {b}, {contender}, {}", named(*os))
            }
        }
    }
}

impl fmt::Display for SimulatedPhasesRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = MACHINES.get(self.machine).map_or("", |(name, _)| name);
        write!(f, "{machine}, {} cores: {}", self.cores, self.what)
    }
}

/// All runs. They depend on nothing but themselves, so their order does not matter.
#[must_use]
pub fn plan(size: &SimulatedPhasesSize, seed: u64) -> Vec<SimulatedPhasesRun> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut runs = Vec::new();
    let mut add = |part, machine, cores, round, time, what: Vec<RunKind>| {
        // Below 2⁵³, so that any reader of JSON gets it right.
        let seed = u64::from(rng.random::<u32>());
        let run = |what| SimulatedPhasesRun {
            part,
            machine,
            cores,
            round,
            time,
            phase: PHASE,
            seed,
            what,
        };
        runs.extend(what.into_iter().map(run));
    };
    for machine in 0..MACHINES.len() {
        for &cores in &size.cores {
            for round in 0..size.cores_rounds {
                // One of them is never parallel: seniority plays no part.
                let what = together([Ratio::PARALLEL, Ratio::SERIAL], &CONTENDERS[..2]);
                add(Part::Cores, machine, cores, round, size.cores_time, what);
            }
        }
        for round in 0..size.matrix_rounds {
            let (ratios, time) = (&size.matrix_ratios, size.matrix_time);
            for &ratio in ratios {
                let what = SYSTEMS.map(|os| RunKind::Alone { ratio, os });
                add(Part::Matrix, machine, CORES, round, time, what.into());
            }
            for (i, a) in ratios.iter().enumerate() {
                for b in ratios.iter().skip(i) {
                    add(Part::Matrix, machine, CORES, round, time, together([*a, *b], &CONTENDERS));
                }
            }
        }
    }
    runs
}

/// Under each contender, on each OS.
fn together(ratios: [Ratio; 2], contenders: &[&str]) -> Vec<RunKind> {
    let what = |os, contender: &&str| {
        let contender = (*contender).to_owned();
        RunKind::Together { ratios, os, contender }
    };
    SYSTEMS.iter().flat_map(|os| contenders.iter().map(move |it| what(*os, it))).collect()
}
