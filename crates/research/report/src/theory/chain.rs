//! Speedups of whole runs from the chain of joint states (our extension).
//!
//! The paper gives speedups per joint state and draws the transitions between
//! them (Fig. 2), but not how long the programs stay in each. We add that:
//!
//! 1. Lengths of phases vary at random, and the two programs' lengths are
//!    independent of each other.
//! 2. In a joint state each program progresses at the average speedup of
//!    Table 1 or 3: placements change often within a phase, or runs are many.
//! 3. A program never waits for anything but a core, and switching phases
//!    costs nothing.
//!
//! With memoryless lengths the joint state is a Markov chain on the ring
//! SS – SP – PP – PS, a program leaving its phase at the rate speedup / mean
//! length alone. Both programs have the same speedups in the same situation,
//! so the product of the rates around the ring is the same in both directions:
//! the chain is reversible (Kolmogorov's criterion), and its steady state is a
//! product of the phases' mean lengths and of quotients of speedups. So only
//! each program's ratio of lengths matters, not how long phases are. Nor does
//! their distribution, as simulation shows for lengths as the paper's benchmark
//! draws them, where the serial length of a cycle is proportional to the
//! parallel one (`lengths_as_the_benchmark_draws_them_change_nothing`).

use super::{JointState, Multiprocessor, Phase, Scheduler, speedups};
use crate::metrics;

/// A program by the mean lengths of its phases, each in time alone on the
/// machine. Only their ratio matters to [`predict`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Program {
    parallel: f64,
    serial: f64,
}

/// Lengths that describe no program.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "mean phase lengths must be finite, ≥ 0 and not both 0, not parallel {parallel}, serial {serial}"
)]
pub struct ProgramError {
    /// Mean length of parallel phases that was given.
    pub parallel: f64,
    /// Mean length of serial phases that was given.
    pub serial: f64,
}

impl Program {
    /// Only parallel phases, labelled (∞:1).
    pub const ALL_PARALLEL: Self = Self { parallel: 1.0, serial: 0.0 };
    /// Only serial phases, labelled (1:∞).
    pub const ALL_SERIAL: Self = Self { parallel: 0.0, serial: 1.0 };

    /// A program from the mean time that each kind of phase takes alone. As
    /// eq. (1) divides parallel work by the number of cores, a label (p:s)
    /// means parallel : serial = p : s in time alone, on asymmetric machines
    /// too. 0 stands for "has none".
    pub fn new(parallel: f64, serial: f64) -> Result<Self, ProgramError> {
        let valid = [parallel, serial].iter().all(|l| l.is_finite() && *l >= 0.0);
        if valid && parallel + serial > 0.0 {
            Ok(Self { parallel, serial })
        } else {
            Err(ProgramError { parallel, serial })
        }
    }

    /// Share of the time alone that the program is in `phase`.
    #[must_use]
    pub fn share_alone(&self, phase: Phase) -> f64 {
        self.length(phase) / (self.parallel + self.serial)
    }

    pub(super) fn length(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Serial => self.serial,
            Phase::Parallel => self.parallel,
        }
    }

    /// Mean rate of work alone, in threads on a small core.
    fn work_alone(&self, machine: Multiprocessor) -> f64 {
        [Phase::Serial, Phase::Parallel]
            .iter()
            .map(|&phase| self.share_alone(phase) * machine.performance_alone(phase))
            .sum()
    }
}

/// What the chain predicts for programs A and B side by side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Long-run speedup of A and of B against each alone (eq. 3).
    pub speedup: [f64; 2],
    /// Share of the time in each joint state, in the order of
    /// [`JointState::ALL`], seen from A.
    pub share: [f64; 4],
    /// Work of A and of B per time, in threads on a small core.
    pub performance: [f64; 2],
    /// Work of both per time, in threads on a small core: the sum of
    /// iterations/s of two synthetic benchmarks over that of one thread.
    pub throughput: f64,
    /// [`Self::throughput`] over the mean of the two programs' rates alone:
    /// what running both at once gains over running one after the other for
    /// equal times.
    pub throughput_over_alone: f64,
}

impl Prediction {
    pub(super) fn new(
        machine: Multiprocessor,
        programs: [Program; 2],
        speedup: [f64; 2],
        share: [f64; 4],
    ) -> Self {
        let alone = programs.map(|program| program.work_alone(machine));
        let performance = [speedup[0] * alone[0], speedup[1] * alone[1]];
        let throughput = performance[0] + performance[1];
        let throughput_over_alone = throughput / ((alone[0] + alone[1]) / 2.0);
        Self { speedup, share, performance, throughput, throughput_over_alone }
    }

    /// Fairness (eq. 4) of the long-run speedups.
    #[must_use]
    pub fn fairness(&self) -> f64 {
        metrics::fairness(&self.speedup).unwrap_or(0.0)
    }
}

/// Speedups and throughput of `a` co-running with `b` in the long run.
#[must_use]
pub fn predict(
    scheduler: Scheduler,
    machine: Multiprocessor,
    a: Program,
    b: Program,
) -> Prediction {
    long_run(|state| speedups(scheduler, machine, state).avg, machine, a, b)
}

/// What follows from the speedups that the first program of each joint state has.
fn long_run(
    speed: impl Fn(JointState) -> f64,
    machine: Multiprocessor,
    a: Program,
    b: Program,
) -> Prediction {
    let share = steady_state(&speed, a, b);
    let mean = |of: &dyn Fn(JointState) -> f64| -> f64 {
        JointState::ALL.iter().zip(share).map(|(&state, share)| share * of(state)).sum()
    };
    let speedup = [mean(&|state| speed(state)), mean(&|state| speed(state.reversed()))];
    Prediction::new(machine, [a, b], speedup, share)
}

/// Share of the time in each joint state, in the order of [`JointState::ALL`].
/// From one state to the next on the ring the share grows by the rate there
/// over the rate back.
fn steady_state(speed: impl Fn(JointState) -> f64, a: Program, b: Program) -> [f64; 4] {
    let mixed = speed(JointState::SS) / speed(JointState::PS);
    let parallel = mixed * speed(JointState::SP) / speed(JointState::PP);
    let weights = [
        a.serial * b.serial,
        a.serial * b.parallel * mixed,
        a.parallel * b.serial * mixed,
        a.parallel * b.parallel * parallel,
    ];
    let total: f64 = weights.iter().sum();
    weights.map(|weight| weight / total)
}
