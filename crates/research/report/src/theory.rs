//! Two multithreaded programs with serial and parallel phases: the analytic
//! model of Morad et al., sections 5 and 6, and our extension to whole runs.
//!
//! # Problem
//! How fast does each of two co-running programs run, with a scheduler
//! that treats all threads as equal ([`Scheduler::Baseline`]), and with one
//! that grants a serial thread a core of its own ([`Scheduler::Proposed`])?
//!
//! # Approach
//! A program has one thread in a serial phase and n in a parallel one, n being
//! the number of cores. One core is large, `a` times as fast as the others
//! (`a` = 1: a symmetric machine). In each of the four joint states the
//! speedups are closed formulas of n and a:
//!
//! | here | source |
//! |---|---|
//! | [`speedups`] under `Baseline` | Table 1, from eq. (7) to (20) |
//! | [`speedups`] under `Proposed` | Table 3 |
//! | [`worst_fairness`] | Table 2 (baseline); the same quotient of Table 3's cells |
//! | [`expected_fairness`] | eq. (4) of the average speedups |
//! | [`predict`] | ours, see there |
//! | [`mix`] | ours: any cores, any number of ready threads and programs |
//!
//! The text before eq. (17) gives the probability that the serial thread shares its core as 2(n−1)⁻¹; the
//! printed formula uses 2/(n+1), which leads to the result n/(n+1) · P_S of the paper. We use 2/(n+1).
//!
//! # Terms and units
//! Speedups are relative to the same phase of the same program alone on the
//! same machine (eq. 3), without unit. *Average* is over equally likely
//! placements, *min* and *max* over all of them.
//!
//! # Properties
//! - Tables 1 and 3 equal eq. (7) to (20), written down anew
//!   (`baseline_equals_the_equations`, `proposed_equals_the_equations`).
//! - Min ≤ average ≤ max (`average_lies_between_the_extremes`).
//! - The prediction for whole runs agrees with a simulation, with memoryless
//!   phases and with those of the paper's benchmark
//!   (`chain_agrees_with_a_simulation`,
//!   `lengths_as_the_benchmark_draws_them_change_nothing`).

use crate::metrics;

mod chain;
pub mod mix;
#[cfg(test)]
mod tests;

pub use chain::{Prediction, Program, ProgramError, predict};

/// The nine ratios of parallel to serial time of the paper's tables (Table 4).
pub const NINE: [&str; 9] = ["inf:1", "8:1", "4:1", "2:1", "1:1", "1:2", "1:4", "1:8", "1:inf"];

/// What a program is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// One thread.
    Serial,
    /// As many threads as cores.
    Parallel,
}

/// Phases of the program looked at ("A") and of the one co-running with it ("B").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JointState {
    /// Phase of the program whose speedup is asked for.
    pub own: Phase,
    /// Phase of the other program.
    pub other: Phase,
}

impl JointState {
    /// Both serial.
    pub const SS: Self = Self { own: Phase::Serial, other: Phase::Serial };
    /// Own serial, other parallel.
    pub const SP: Self = Self { own: Phase::Serial, other: Phase::Parallel };
    /// Own parallel, other serial.
    pub const PS: Self = Self { own: Phase::Parallel, other: Phase::Serial };
    /// Both parallel.
    pub const PP: Self = Self { own: Phase::Parallel, other: Phase::Parallel };
    /// All four, in the order of the paper's tables.
    pub const ALL: [Self; 4] = [Self::SS, Self::SP, Self::PS, Self::PP];

    /// The same moment, seen from the other program.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { own: self.other, other: self.own }
    }
}

/// The two schedulers that the paper compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// All threads equal, each core equally likely (section 5).
    Baseline,
    /// A serial thread always has a core to itself, the large one if there is
    /// one (section 6).
    Proposed,
}

/// n cores, one of them `a` times as fast as the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Multiprocessor {
    n: f64,
    a: f64,
}

/// A machine that the model does not cover.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum MultiprocessorError {
    /// Fewer than two cores: two serial threads would already share one.
    #[error("the model of two programs needs at least 2 cores, not {0}")]
    TooFewCores(u32),
    /// The large core is slower than the small ones, infinitely fast or NaN.
    #[error("the large core's performance must be a finite factor ≥ 1, not {0}")]
    Performance(f64),
}

impl Multiprocessor {
    /// A machine with `cores` cores, one of which is `a` times as fast. The
    /// paper derives its averages for 1 ≤ a < 2 and uses them for a = 2 also.
    pub fn new(cores: u32, a: f64) -> Result<Self, MultiprocessorError> {
        if cores < 2 {
            return Err(MultiprocessorError::TooFewCores(cores));
        }
        if !(a.is_finite() && a >= 1.0) {
            return Err(MultiprocessorError::Performance(a));
        }
        Ok(Self { n: f64::from(cores), a })
    }

    /// A machine whose cores are all alike.
    pub fn symmetric(cores: u32) -> Result<Self, MultiprocessorError> {
        Self::new(cores, 1.0)
    }

    /// Performance of a program alone in a phase, in threads on a small core
    /// (eq. 7 and 8).
    #[must_use]
    pub fn performance_alone(&self, phase: Phase) -> f64 {
        let all = self.n - 1.0 + self.a;
        match phase {
            Phase::Serial => all / self.n,
            Phase::Parallel => all,
        }
    }
}

/// Smallest, average and largest speedup over the placements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speedups {
    /// In the worst placement.
    pub min: f64,
    /// Over equally likely placements.
    pub avg: f64,
    /// In the best placement.
    pub max: f64,
}

/// Speedups of the program whose phase is `state.own` (Table 1, Table 3).
#[must_use]
pub fn speedups(scheduler: Scheduler, machine: Multiprocessor, state: JointState) -> Speedups {
    let Multiprocessor { n, a } = machine;
    let all = n - 1.0 + a;
    match (scheduler, state.own, state.other) {
        (_, Phase::Serial, Phase::Serial) => Speedups { min: n / all, avg: 1.0, max: a * n / all },
        (_, Phase::Parallel, Phase::Parallel) => {
            Speedups { min: n / (2.0 * all), avg: 0.5, max: (n - 2.0 + 2.0 * a) / (2.0 * all) }
        }
        (Scheduler::Baseline, Phase::Serial, Phase::Parallel) => {
            Speedups { min: 0.5 * n / all, avg: n / (n + 1.0), max: a * n / all }
        }
        (Scheduler::Baseline, Phase::Parallel, Phase::Serial) => {
            Speedups { min: (n - 1.0) / all, avg: n / (n + 1.0), max: (n - 1.5 + a) / all }
        }
        (Scheduler::Proposed, Phase::Serial, Phase::Parallel) => certain(a * n / all),
        (Scheduler::Proposed, Phase::Parallel, Phase::Serial) => certain((n - 1.0) / all),
    }
}

/// Worst fairness over the placements of a joint state: the smaller of each
/// program's least speedup over the other's largest. For the baseline these
/// are the cells of Table 2, the two cases of (S,P) taken together.
#[must_use]
pub fn worst_fairness(scheduler: Scheduler, machine: Multiprocessor, state: JointState) -> f64 {
    let own = speedups(scheduler, machine, state);
    let other = speedups(scheduler, machine, state.reversed());
    (own.min / other.max).min(other.min / own.max)
}

/// Fairness (eq. 4) of the average speedups in a joint state.
#[must_use]
pub fn expected_fairness(scheduler: Scheduler, machine: Multiprocessor, state: JointState) -> f64 {
    let own = speedups(scheduler, machine, state).avg;
    let other = speedups(scheduler, machine, state.reversed()).avg;
    metrics::fairness(&[own, other]).unwrap_or(0.0)
}

fn certain(speedup: f64) -> Speedups {
    Speedups { min: speedup, avg: speedup, max: speedup }
}
