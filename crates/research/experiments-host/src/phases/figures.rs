//! The figures of a campaign: of programs alone, of cells, and of all together.

use serde::{Deserialize, Serialize};
use symbiont_synth::Ratio;

use super::managers::Managers;
use super::plan::{Grouping, POLICIES, Part};
use super::prediction::{Cpus, Prediction};
use super::real::Real;
use crate::harness::Check;
use symbiont_report::stats::Estimate;

/// All figures of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The n and the a of the paper.
    pub cpus: Cpus,
    /// Each program alone, headline first.
    pub alone: Vec<Alone>,
    /// Each cell in each grouping, headline first.
    pub cells: Vec<PhasesCell>,
    /// The real programs; absent if they were left out.
    pub real: Option<Real>,
    /// What the managers reported, by policy.
    pub managers: Vec<Managers>,
    /// What the experiment has to show, and whether it does.
    pub checks: Vec<Check>,
}

/// A program alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Of which part.
    pub part: Part,
    /// The program.
    pub ratio: Ratio,
    /// Iterations per second, in units of one thread on the idle machine.
    pub throughput: Estimate,
    /// Jitter of its times.
    pub jitter: Option<Estimate>,
}

/// Two programs side by side in one grouping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhasesCell {
    /// Of which part.
    pub part: Part,
    /// The programs.
    pub ratios: [Ratio; 2],
    /// In whose sessions.
    pub grouping: Grouping,
    /// Under [`BASELINE`](super::plan::BASELINE).
    pub baseline: Outcome,
    /// Under [`TRIED`](super::plan::TRIED).
    pub tried: Outcome,
    /// What the tried policy changes.
    pub change: Change,
}

/// Two programs side by side under one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Speedup of each program (eq. 3).
    pub speedup: [Estimate; 2],
    /// Jitter of each program (eq. 6); absent for a single run.
    pub jitter: [Option<Estimate>; 2],
    /// Fairness (eq. 4) of the mean speedups.
    pub fairness: Estimate,
    /// Iterations per second of both, in units of one thread on the idle machine.
    pub throughput: Estimate,
    /// Share of the CPU time left to programs that neither of them used; absent
    /// where the kernel does not report it.
    pub idle: Option<Estimate>,
    /// What the model says; absent on machines with one CPU.
    pub prediction: Option<Prediction>,
}

/// What the tried policy changes against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Mean difference by round of the speedups of each program (Student's t).
    pub speedup: [Estimate; 2],
    /// Mean difference by round of the throughputs (Student's t).
    pub throughput: Estimate,
    /// Ratio of the mean throughputs.
    pub throughput_ratio: Estimate,
    /// Difference of the fairness of the mean speedups (jackknife; rounds in pairs, and runs alone).
    pub fairness: Estimate,
    /// Difference of the jitters of each program, rounds drawn anew as pairs.
    pub jitter: [Option<Estimate>; 2],
}

impl PhasesCell {
    /// The outcomes with their policies, in the order of tables.
    #[must_use]
    pub fn outcomes(&self) -> [(&'static str, &Outcome); 2] {
        let [baseline, tried] = POLICIES;
        [(baseline, &self.baseline), (tried, &self.tried)]
    }

    /// "inf:1 co-running with 1:inf".
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} co-running with {}", label(self.ratios[0]), label(self.ratios[1]))
    }
}

/// A ratio as the paper writes it.
#[must_use]
pub fn label(ratio: Ratio) -> String {
    ratio.to_string().replace("inf", "∞")
}

/// Throughput of a program on a machine that nothing else uses, in threads on
/// its fastest CPU; none where the model does not cover the machine.
#[must_use]
pub fn ideal(program: &Alone, cpus: Cpus) -> Option<f64> {
    let parallel = program.ratio.parallel_share();
    let large = cpus.large?;
    let all = (f64::from(cpus.count) - 1.0 + large) / large;
    // A serial thread is on any of them.
    Some(parallel * all + (1.0 - parallel) * all / f64::from(cpus.count))
}

/// Least share of what the CPUs can do that a parallel program got alone.
#[must_use]
pub fn used_alone(programs: &[Alone], cpus: Cpus) -> Option<f64> {
    let shares = programs
        .iter()
        .filter(|program| program.ratio == Ratio::PARALLEL)
        .filter_map(|program| Some(program.throughput.value / ideal(program, cpus)?));
    shares.reduce(f64::min)
}
