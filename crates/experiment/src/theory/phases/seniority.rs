//! Whole runs under the proposed scheduler with its seniority boost (section 6; our
//! extension, as [`super::predict`] is).
//!
//! # Problem
//! Table 3 gives two parallel programs half of the machine each. The scheduler that the
//! paper proposes does not: it boosts the one that entered its parallel phase first, until
//! the state ends, or a timeout passes the boost on. How fast does each program run then?
//!
//! # Approach
//! The chain of joint states of [`super::predict`], with its assumptions, whose states also
//! say who is the senior, and how far its turn has come.
//!
//! | from | to | at the rate |
//! |---|---|---|
//! | (S,P) | (P,P), held by B, which was parallel before | speedup in (S,P) / length |
//! | (P,S) | (P,P), held by A | the same, of B |
//! | (P,P) | (S,P), (P,S) | share / length: the holder's for it, the rest for the other one |
//! | (P,P) | its next stage; after the last one (P,P), held by the other one | stages / timeout |
//!
//! Speedups outside (P,P) are those of Table 3. In (P,P) both have a thread on each core
//! and share it by weight, so the holder runs at its share and the other one at what is
//! left, whatever the cores' speeds. As in the policy, what has passed of a turn stands
//! over while the state is left and entered again with the same senior. The policy's turns
//! all last as long as the timeout: turns of many memoryless stages come near that, where
//! turns of one stage would not (`turns_of_fixed_length_change_nothing`). The chain is not
//! reversible, so its balance is solved as linear equations.
//!
//! It leaves out that the scheduler acts once in a quantum, up to one late, so that a
//! parallel phase of few quanta is boosted for a part of it only, and that the benchmark's
//! serial phases are in proportion to the parallel ones before them, neither of them
//! memoryless. Other than without seniority the latter matters: speedups differ by up to
//! 0.05 in the pairs that were simulated
//! (`lengths_as_the_benchmark_draws_them_change_a_twentieth_at_most`).
//!
//! # Terms and units
//! *Share*: part of each core's time that the holder gets beside the other one. Timeout
//! and lengths of phases are in one unit: their absolute values matter here.
//!
//! # Properties
//! - It agrees with a simulation event by event (`it_agrees_with_a_simulation_of_events`),
//!   also with turns that all last as long (`turns_of_fixed_length_change_nothing`).
//! - It is the chain of Table 3 where the share is a half, and where a program is never
//!   parallel (`without_a_preference_it_is_the_chain_of_table_3`).
//! - Shares of the time sum to one, and programs may change places
//!   (`shares_sum_to_one_and_programs_change_places`).
//! - Equal programs get the same (`equal_programs_are_treated_alike`).

use nalgebra::{DMatrix, DVector};

use super::{JointState, Multiprocessor, Phase, Prediction, Program, Scheduler, speedups};

#[cfg(test)]
mod tests;

/// Factor of weight that a level of nice is worth (Linux, sched-nice-design.rst).
const LEVEL: f64 = 1.25;

/// Memoryless stages of a turn.
const STAGES: u32 = 16;

/// How much the holder of the boost is preferred, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seniority {
    share: f64,
    timeout: f64,
}

/// A boost that is none.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "the holder's share must be in 0.5..=1 and the timeout finite and > 0, not {share} and {timeout}"
)]
pub struct SeniorityError {
    /// Share that was given.
    pub share: f64,
    /// Timeout that was given.
    pub timeout: f64,
}

impl Seniority {
    /// A boost that gives this share of each core, for at most the timeout.
    pub fn new(share: f64, timeout: f64) -> Result<Self, SeniorityError> {
        let valid = (0.5..=1.0).contains(&share) && timeout.is_finite() && timeout > 0.0;
        if valid { Ok(Self { share, timeout }) } else { Err(SeniorityError { share, timeout }) }
    }

    /// A boost by so many levels of nice, for at most the timeout.
    pub fn by_levels(levels: u8, timeout: f64) -> Result<Self, SeniorityError> {
        let weight = LEVEL.powi(i32::from(levels));
        Self::new(weight / (weight + 1.0), timeout)
    }

    /// Part of each core's time that the holder gets.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }
}

/// Speedups and throughput of `a` beside `b` in the long run, under the proposed
/// scheduler with seniority. None where lengths are too far apart for the equations to be
/// solved.
#[must_use]
pub fn predict_with_seniority(
    seniority: Seniority,
    machine: Multiprocessor,
    a: Program,
    b: Program,
) -> Option<Prediction> {
    let chain = Chain { seniority, machine, programs: [a, b] };
    let (mut speedup, mut share) = ([0.0; 2], [0.0; 4]);
    for (state, part) in chain.steady_state()? {
        let of_both = chain.speedups(state);
        speedup.iter_mut().zip(of_both).for_each(|(sum, of)| *sum += of * part);
        let joint = JointState::ALL.into_iter().position(|joint| joint == state.joint)?;
        share[joint] += part;
    }
    Some(Prediction::new(machine, [a, b], speedup, share))
}

/// The states and how they follow each other.
struct Chain {
    seniority: Seniority,
    machine: Multiprocessor,
    programs: [Program; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct State {
    joint: JointState,
    /// Who was parallel first, of those that are parallel.
    senior: Option<usize>,
    /// Stages of its turn that have passed.
    stage: u32,
}

impl State {
    fn phase(self, program: usize) -> Phase {
        if program == 0 { self.joint.own } else { self.joint.other }
    }

    /// When a program ends its phase.
    fn after_phase_of(self, program: usize) -> Self {
        let other = 1 - program;
        let phase = match self.phase(program) {
            Phase::Serial => Phase::Parallel,
            Phase::Parallel => Phase::Serial,
        };
        let beside = self.phase(other);
        let joint = match program {
            0 => JointState { own: phase, other: beside },
            _ => JointState { own: beside, other: phase },
        };
        let senior = match (phase, beside) {
            (_, Phase::Parallel) => Some(other),
            (Phase::Parallel, Phase::Serial) => Some(program),
            (Phase::Serial, Phase::Serial) => None,
        };
        let stage = if senior == self.senior { self.stage } else { 0 };
        Self { joint, senior, stage }
    }

    /// When a stage of the senior's turn ends.
    fn after_stage(self) -> Self {
        match self.stage + 1 {
            STAGES => Self { senior: self.senior.map(|senior| 1 - senior), stage: 0, ..self },
            stage => Self { stage, ..self },
        }
    }
}

impl Chain {
    /// Speedups of A and of B.
    fn speedups(&self, state: State) -> [f64; 2] {
        let table_3 = |joint| speedups(Scheduler::Proposed, self.machine, joint).avg;
        let (own, other) = (self.seniority.share, 1.0 - self.seniority.share);
        match (state.joint, state.senior) {
            (JointState::PP, Some(0)) => [own, other],
            (JointState::PP, Some(_)) => [other, own],
            (joint, _) => [table_3(joint), table_3(joint.reversed())],
        }
    }

    fn has(&self, program: usize, phase: Phase) -> bool {
        self.programs[program].length(phase) > 0.0
    }

    /// Where a state leads to, at which rates.
    fn exits(&self, state: State) -> Vec<(State, f64)> {
        let speeds = self.speedups(state);
        let mut exits = Vec::new();
        for (program, speed) in speeds.into_iter().enumerate() {
            if self.has(program, Phase::Serial) && self.has(program, Phase::Parallel) {
                let length = self.programs[program].length(state.phase(program));
                exits.push((state.after_phase_of(program), speed / length));
            }
        }
        if state.joint == JointState::PP {
            exits.push((state.after_stage(), f64::from(STAGES) / self.seniority.timeout));
        }
        exits.retain(|(_, rate)| *rate > 0.0);
        exits
    }

    /// Share of the time in each state that is ever entered.
    fn steady_state(&self) -> Option<Vec<(State, f64)>> {
        let [own, other] = [0, 1].map(|program| match self.has(program, Phase::Parallel) {
            true => Phase::Parallel,
            false => Phase::Serial,
        });
        let parallel = [own, other].into_iter().position(|phase| phase == Phase::Parallel);
        let joint = JointState { own, other };
        let mut states = vec![State { joint, senior: parallel, stage: 0 }];
        let mut rates = Vec::new();
        let mut from = 0;
        while let Some(state) = states.get(from).copied() {
            for (next, rate) in self.exits(state) {
                let to = states.iter().position(|known| *known == next);
                rates.push((from, to.unwrap_or(states.len()), rate));
                if to.is_none() {
                    states.push(next);
                }
            }
            from += 1;
        }
        // What flows in, less what flows out: a row for each state, a column for where from.
        let mut flow = DMatrix::zeros(states.len(), states.len());
        for (from, to, rate) in rates {
            flow[(to, from)] += rate;
            flow[(from, from)] -= rate;
        }
        // One equation follows from the others; in its place stands the sum of all shares.
        let mut balance = DVector::zeros(states.len());
        flow.row_mut(0).fill(1.0);
        balance[0] = 1.0;
        let shares = flow.lu().solve(&balance)?;
        Some(states.into_iter().zip(shares.iter().copied()).collect())
    }
}
