//! Aligns runs: the same instructions, alone and with co-runners.
//!
//! # Problem
//! A slowdown compares the same instructions. But a quantum is a fixed time, so that quantum 7 of a thread with
//! co-runners covers other instructions than quantum 7 of its run alone.
//!
//! # Approach
//! Feliu et al., section 3.2, interpolate the isolated stacks between two quanta. We interpolate cumulative
//! cycles: within a quantum, each component is taken to grow in proportion to the instructions, so that the
//! cycles between any two instruction counts are the difference of two interpolated sums.
//!
//! ```text
//! C(i) = cycles of each component until instruction i, linear between the ends of quanta
//! alone(quantum of a run together, from instruction i to j) = C(j) − C(i) of the run alone
//! ```
//!
//! That holds for intervals over several quanta as well, and to cut an interval in two changes nothing.
//!
//! # Terms and units
//! Positions count instructions completed since the start of the program.

use serde::{Deserialize, Serialize};

use symbiont_model::{CpiStack, StackError};

use crate::{Observation, Observed};

/// What a thread did in one quantum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantum {
    /// Instructions completed.
    pub instructions: f64,
    /// Its stack; none if it could not be measured.
    pub stack: Option<CpiStack>,
}

/// A run of a program alone, in the SMT mode of interest.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    components: usize,
    /// Position at the end of each quantum, in ascending order; starts with 0.
    positions: Vec<f64>,
    /// Cycles of each component since the start, at each position.
    cycles: Vec<f64>,
    /// Positions that no measured quantum led up to.
    unknown: Vec<usize>,
}

/// Why there is no stack for some instructions.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AlignError {
    /// The interval holds no instructions, or is not one.
    #[error("no instructions from {from} to {to}")]
    Nothing {
        /// Position of its start.
        from: f64,
        /// Position of its end.
        to: f64,
    },
    /// The run alone does not reach that far.
    #[error("the run alone ends at instruction {end}, before {to}")]
    PastEnd {
        /// Last position of the profile.
        end: f64,
        /// Position of the interval's end.
        to: f64,
    },
    /// A quantum of the run alone, within the interval, was not measured.
    #[error("quantum {0} (from 0) of the run alone has no stack")]
    Unmeasured(usize),
    /// The run alone has no cycles there, or another number of components.
    #[error(transparent)]
    Stack(#[from] StackError),
}

impl Profile {
    /// The profile of a run, from its quanta in order. Quanta without instructions, in
    /// which the program slept, add nothing.
    ///
    /// # Errors
    /// [`StackError::Length`] when stacks have different numbers of
    /// components, [`StackError::Empty`] when nothing was measured.
    pub fn new(quanta: &[Quantum]) -> Result<Self, StackError> {
        let first = quanta.iter().find_map(|q| q.stack.as_ref()).ok_or(StackError::Empty)?;
        let want = first.parts().len();
        let mut sums = vec![0.0; want];
        let mut position = 0.0;
        let mut profile =
            Self { components: want, positions: vec![0.0], cycles: sums.clone(), unknown: vec![] };
        for quantum in quanta.iter().filter(|q| q.instructions > 0.0 && q.instructions.is_finite())
        {
            position += quantum.instructions;
            match &quantum.stack {
                Some(stack) if stack.parts().len() != want => {
                    return Err(StackError::Length { got: stack.parts().len(), want });
                }
                Some(stack) => {
                    for (sum, part) in sums.iter_mut().zip(stack.parts()) {
                        *sum += part * quantum.instructions;
                    }
                }
                None => profile.unknown.push(profile.positions.len()),
            }
            profile.positions.push(position);
            profile.cycles.extend_from_slice(&sums);
        }
        Ok(profile)
    }

    /// How many instructions it covers.
    #[must_use]
    pub fn end(&self) -> f64 {
        self.positions.last().copied().unwrap_or(0.0)
    }

    /// The stack alone over the instructions between two positions.
    ///
    /// # Errors
    /// When the run alone does not cover them, or was not measured there.
    pub fn over(&self, from: f64, to: f64) -> Result<CpiStack, AlignError> {
        let valid = from >= 0.0 && to > from && to.is_finite();
        if !valid {
            return Err(AlignError::Nothing { from, to });
        }
        let end = self.end();
        // Positions are sums; the last instruction may be off by a rounding.
        if to > end * (1.0 + 1e-9) {
            return Err(AlignError::PastEnd { end, to });
        }
        let to = to.min(end);
        let (first, last) = (self.quantum_at(from), self.quantum_to(to));
        if let Some(&gap) = self.unknown.iter().find(|&&gap| first <= gap && gap <= last) {
            return Err(AlignError::Unmeasured(gap - 1));
        }
        let (early, late) = (self.cycles_at(first, from), self.cycles_at(last, to));
        let parts = late.iter().zip(&early).map(|(b, a)| ((b - a) / (to - from)).max(0.0));
        Ok(CpiStack::new(parts.collect())?)
    }

    /// The quantum that holds the instruction after a position, by the index
    /// of its end.
    fn quantum_at(&self, position: f64) -> usize {
        self.positions.partition_point(|&p| p <= position).min(self.positions.len() - 1)
    }

    /// The quantum that holds the instruction before a position.
    fn quantum_to(&self, position: f64) -> usize {
        self.positions.partition_point(|&p| p < position).min(self.positions.len() - 1)
    }

    /// Cycles of each component up to a position within a quantum.
    fn cycles_at(&self, quantum: usize, position: f64) -> Vec<f64> {
        let row = |at: usize| self.cycles.iter().skip(at * self.components).take(self.components);
        let before = quantum.saturating_sub(1);
        let at = |index: usize| self.positions.get(index).copied().unwrap_or(0.0);
        let length = at(quantum) - at(before);
        let part = if length > 0.0 { (position - at(before)) / length } else { 1.0 };
        row(before).zip(row(quantum)).map(|(a, b)| a + (b - a) * part).collect()
    }
}

/// One thread of a group that ran together.
#[derive(Debug, Clone, Copy)]
pub struct Together<'a> {
    /// Its program.
    pub program: &'a str,
    /// The program alone, in the same SMT mode.
    pub alone: &'a Profile,
    /// Position of the thread when the group started.
    pub start: f64,
    /// What it did in each quantum of the group; all threads have the same
    /// quanta.
    pub quanta: &'a [Quantum],
}

/// The result of aligning a group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Aligned {
    /// The quanta that could be used.
    pub observations: Vec<Observation>,
    /// Quanta in which a thread slept or was not measured.
    pub idle: usize,
    /// Quanta in which a thread executed instructions that its run alone does not cover.
    pub uncovered: usize,
}

/// Aligns each quantum of a group with the same instructions run alone. A
/// quantum in which one thread cannot be used is left out for all of them, since
/// it is then not known what the others ran with.
#[must_use]
pub fn align(group: &[Together<'_>]) -> Aligned {
    let mut aligned = Aligned::default();
    let mut positions: Vec<f64> = group.iter().map(|thread| thread.start).collect();
    let length = group.iter().map(|thread| thread.quanta.len()).min().unwrap_or(0);
    for at in 0..length {
        let mut observed = Vec::with_capacity(group.len());
        let (mut idle, mut uncovered) = (false, false);
        for (thread, position) in group.iter().zip(&mut positions) {
            let Some(quantum) = thread.quanta.get(at) else { continue };
            let from = *position;
            *position += quantum.instructions.max(0.0);
            match (&quantum.stack, thread.alone.over(from, *position)) {
                (None, _) | (_, Err(AlignError::Nothing { .. })) => idle = true,
                (_, Err(_)) => uncovered = true,
                (Some(together), Ok(alone)) => {
                    let program = thread.program.into();
                    observed.push(Observed { program, alone, together: together.clone() });
                }
            }
        }
        match Observation::new(observed) {
            _ if idle => aligned.idle += 1,
            Ok(observation) if !uncovered => aligned.observations.push(observation),
            _ => aligned.uncovered += 1,
        }
    }
    aligned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quantum(instructions: f64, parts: &[f64]) -> Quantum {
        Quantum { instructions, stack: Some(CpiStack::new(parts.to_vec()).unwrap()) }
    }

    /// 100 instructions at CPI 1 + 1, then 50 at 1 + 3.
    fn profile() -> Profile {
        Profile::new(&[quantum(100.0, &[1.0, 1.0]), quantum(50.0, &[1.0, 3.0])]).unwrap()
    }

    #[test]
    fn an_interval_between_two_quanta_takes_its_part_of_each() {
        // 50 instructions of the first, 25 of the second: (50 + 75) / 75.
        let stack = profile().over(50.0, 125.0).unwrap();
        assert!((stack.parts()[0] - 1.0).abs() < 1e-12);
        assert!((stack.parts()[1] - 125.0 / 75.0).abs() < 1e-12);
    }

    #[test]
    fn an_interval_within_a_quantum_has_its_stack() {
        assert_eq!(profile().over(110.0, 120.0).unwrap().parts()[1].round(), 3.0);
    }

    #[test]
    fn what_the_run_alone_does_not_cover_is_refused() {
        let past = AlignError::PastEnd { end: 150.0, to: 151.0 };
        assert_eq!(profile().over(149.0, 151.0), Err(past));
        assert_eq!(profile().over(5.0, 5.0), Err(AlignError::Nothing { from: 5.0, to: 5.0 }));
        assert!(profile().over(f64::NAN, 5.0).is_err());
    }

    #[test]
    fn an_unmeasured_quantum_is_no_quantum_of_zero_cycles() {
        let gap = Quantum { instructions: 10.0, stack: None };
        let profile = Profile::new(&[quantum(10.0, &[1.0]), gap, quantum(10.0, &[2.0])]).unwrap();
        assert_eq!(profile.over(5.0, 12.0), Err(AlignError::Unmeasured(1)));
        assert_eq!(profile.over(0.0, 10.0).unwrap().cpi(), 1.0);
        assert_eq!(profile.over(20.0, 30.0).unwrap().cpi(), 2.0);
    }

    #[test]
    fn a_quantum_in_which_a_thread_slept_is_left_out_for_all() {
        let alone = profile();
        let co_running =
            [quantum(30.0, &[2.0, 2.0]), quantum(0.0, &[1.0, 1.0]), quantum(30.0, &[2.0, 2.0])];
        let busy = vec![quantum(40.0, &[2.0, 2.0]); 3];
        let thread = |quanta| Together { program: "a", alone: &alone, start: 0.0, quanta };
        let aligned = align(&[thread(&co_running), thread(&busy)]);
        assert_eq!((aligned.observations.len(), aligned.idle, aligned.uncovered), (2, 1, 0));
        assert_eq!(aligned.observations[0].threads()[0].slowdown(), 2.0);
    }

    #[test]
    fn quanta_past_the_end_of_the_run_alone_are_counted() {
        let alone = profile();
        let quanta = vec![quantum(100.0, &[2.0, 2.0]); 2];
        let thread = Together { program: "a", alone: &alone, start: 0.0, quanta: &quanta };
        let aligned = align(&[thread, thread]);
        assert_eq!((aligned.observations.len(), aligned.uncovered), (1, 1));
    }

    fn quanta() -> impl Strategy<Value = Vec<Quantum>> {
        let one = (1.0..100.0_f64, prop::array::uniform2(0.1..4.0_f64));
        prop::collection::vec(one.prop_map(|(i, parts)| quantum(i, &parts)), 1..12)
    }

    proptest! {
        #[test]
        fn cutting_an_interval_changes_nothing(
            quanta in quanta(), mut at in prop::array::uniform3(0.0..1.0_f64),
        ) {
            let profile = Profile::new(&quanta).unwrap();
            at.sort_by(f64::total_cmp);
            let [a, b, c] = at.map(|part| part * profile.end());
            prop_assume!(b - a > 1e-6 && c - b > 1e-6);
            let (left, right) = (profile.over(a, b).unwrap(), profile.over(b, c).unwrap());
            let whole = profile.over(a, c).unwrap();
            let cycles = left.cpi() * (b - a) + right.cpi() * (c - b);
            prop_assert!((whole.cpi() * (c - a) - cycles).abs() < 1e-6);
        }

        #[test]
        fn a_run_set_against_itself_has_slowdown_one(quanta in quanta()) {
            let alone = Profile::new(&quanta).unwrap();
            let thread = Together { program: "a", alone: &alone, start: 0.0, quanta: &quanta };
            let aligned = align(&[thread, thread]);
            prop_assert_eq!(aligned.observations.len(), quanta.len());
            for thread in aligned.observations.iter().flat_map(Observation::threads) {
                prop_assert!((thread.slowdown() - 1.0).abs() < 1e-9);
            }
        }
    }
}
