//! Simulated branch predictors of several sizes.
//!
//! # Properties
//! A predictor learns what can be learnt and no more (`a_loop_is_learnt`,
//! `coin_flips_are_not`); with tagged tables it learns loops that a gshare's history is too short for, and
//! is not spoilt by branches that cannot be known (`long_loops_are_learnt_with_long_histories`,
//! `coin_flips_do_not_spoil_what_tagged_tables_know`,
//! `a_target_that_depends_on_the_last_ones_is_learnt`).

mod gshare;
mod pair;
mod tage;
mod targets;

use gshare::Gshares;
use pair::Pair;
pub use tage::{Places, Tage};
pub use targets::Targets;

use crate::{PREDICTOR_CONFIGS, PREDICTORS, Prediction};

/// Depth of the stack of return addresses.
const RETURNS: usize = 16;
/// A table of n counters, or entries, goes with n / 16 targets of indirect branches.
const PER_TARGET: u32 = 16;
/// Predictors of the first kind, which come first, and of the second.
const GSHARES: usize = gshare::TABLES;
const TAGES: usize = PREDICTORS - GSHARES;
/// Branches in the history of indirect branches.
const TARGET_HISTORY: u64 = 0xff;

/// The predictors: at each size a gshare (McFarling) and a table of targets, or a TAGE and tagged tables of
/// targets; one stack of return addresses.
#[derive(Debug)]
pub struct Predictors {
    history: u128,
    gshares: Gshares,
    targets: [Vec<u64>; GSHARES],
    tages: Pair,
    tagged: [Targets; TAGES],
    returns: [u64; RETURNS],
    top: usize,
}

impl Default for Predictors {
    fn default() -> Self {
        Self::new()
    }
}

/// Spreads an address over 64 bits.
fn spread(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

impl Predictors {
    /// Cold predictors: every conditional branch is weakly predicted not taken.
    pub fn new() -> Self {
        let of = |prediction, number: usize| {
            let mut of_kind = PREDICTOR_CONFIGS.iter().filter(|size| size.prediction == prediction);
            of_kind.nth(number).map_or(1, |size| size.entries)
        };
        let gshare = |number| of(Prediction::Gshare, number);
        let tage = |number| of(Prediction::Tage, number);
        let targets = |entries: u32| (entries / PER_TARGET) as usize;
        Self {
            history: 0,
            gshares: Gshares::new(),
            targets: std::array::from_fn(|number| vec![0; targets(gshare(number))]),
            tages: Pair::new(),
            tagged: std::array::from_fn(|number| Targets::new(targets(tage(number)))),
            returns: [0; RETURNS],
            top: 0,
        }
    }

    /// Predicts and learns a conditional branch at `at`. Bit i of the result: the i-th predictor mispredicted it.
    #[inline]
    pub fn conditional(&mut self, at: u64, taken: bool) -> u8 {
        let mut wrong = self.gshares.mispredict(spread(at) ^ self.history as u64, taken);
        wrong |= self.tages.mispredict(&Places::of(at, self.history), taken) << GSHARES;
        self.history = self.history << 1 | u128::from(taken);
        wrong
    }

    /// Predicts and learns an indirect jump or call at `at` that went to `target`. Bits as above.
    pub fn indirect(&mut self, at: u64, target: u64) -> u8 {
        let place = spread(at) ^ (self.history as u64 & TARGET_HISTORY);
        let mut wrong = 0;
        for (bit, targets) in self.targets.iter_mut().enumerate() {
            let index = place as usize & (targets.len() - 1);
            wrong |= u8::from(targets[index] != target) << bit;
            targets[index] = target;
        }
        for (tagged, bit) in self.tagged.iter_mut().zip(GSHARES..) {
            wrong |= u8::from(tagged.mispredicts(at, self.history, target)) << bit;
        }
        self.history = self.history << 2 | u128::from(spread(target) & 3);
        wrong
    }

    /// Notes a call, which will return to `after`.
    pub fn call(&mut self, after: u64) {
        self.top = (self.top + 1) % RETURNS;
        self.returns[self.top] = after;
    }

    /// Predicts a return that went to `target`. All bits of the result are set or none, since there is one stack
    /// of return addresses.
    pub fn returned(&mut self, target: u64) -> u8 {
        let predicted = self.returns[self.top];
        self.top = (self.top + RETURNS - 1) % RETURNS;
        if predicted == target { 0 } else { u8::MAX >> (u8::BITS as usize - PREDICTORS) }
    }
}

#[cfg(test)]
mod tests {
    use super::{GSHARES, Predictors, TAGES};
    use crate::PREDICTORS;

    /// Mispredictions per size over the outcomes, the first `warm_up` not counted.
    fn missed(outcomes: impl Iterator<Item = (u64, bool)>, warm_up: usize) -> [usize; PREDICTORS] {
        let mut predictors = Predictors::new();
        let mut missed = [0; PREDICTORS];
        for (index, (at, taken)) in outcomes.enumerate() {
            let wrong = predictors.conditional(at, taken);
            for (size, missed) in missed.iter_mut().enumerate() {
                *missed += usize::from(index >= warm_up && wrong >> size & 1 == 1);
            }
        }
        missed
    }

    fn coin(state: &mut u64) -> bool {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *state >> 63 == 1
    }

    #[test]
    fn a_loop_is_learnt() {
        let outcomes = (0..20_000).map(|round| (0x40_1000, round % 7 != 6));
        assert_eq!(missed(outcomes, 5_000), [0; PREDICTORS]);
    }

    #[test]
    fn coin_flips_are_not() {
        let mut state = 1;
        let outcomes = (0..20_000).map(|_| (0x40_1000, coin(&mut state)));
        for missed in missed(outcomes, 0) {
            assert!((9_000..11_000).contains(&missed), "{missed}");
        }
    }

    #[test]
    fn smaller_predictors_suffer_from_many_branches() {
        // 2,000 branches, each with a direction of its own, in a fixed order.
        let outcomes = (0..400_000_u64).map(|round| {
            let branch = round % 2_000;
            (0x40_0000 + 16 * branch, branch.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1)
        });
        let missed = missed(outcomes, 200_000);
        let (gshares, tages) = missed.split_at(GSHARES);
        assert!(gshares.is_sorted() && tages.is_sorted(), "{missed:?}");
        assert!(gshares[GSHARES - 1] > 5 * gshares[0], "{missed:?}");
    }

    #[test]
    fn long_loops_are_learnt_with_long_histories() {
        // The way out of 60 rounds, and a branch that goes as one 60 branches ago went.
        let outcomes = (0..200_000).map(|round| (0x40_1000, round % 60 != 59));
        let missed = missed(outcomes, 100_000);
        let (gshares, tages) = missed.split_at(GSHARES);
        assert!(gshares.iter().all(|missed| *missed > 1_000), "{missed:?}");
        assert!(tages.iter().all(|missed| *missed < 100), "{missed:?}");
    }

    #[test]
    fn coin_flips_do_not_spoil_what_tagged_tables_know() {
        // Eleven flips between two rounds of 500 branches with a direction of their own.
        let mut state = 1;
        let outcomes: Vec<(u64, bool)> = (0..600_u64)
            .flat_map(|_| {
                let flips: Vec<_> = (0..11).map(|n| (0x10 + n, coin(&mut state))).collect();
                let known = (0..500_u64).map(|branch| {
                    let taken = branch.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1;
                    (0x40_0000 + 16 * branch, taken)
                });
                flips.into_iter().chain(known)
            })
            .collect();
        let flips = 300 * 11 / 2;
        let missed = missed(outcomes.into_iter(), 511 * 300);
        let (gshares, tages) = missed.split_at(GSHARES);
        assert!(tages.iter().all(|missed| *missed < flips * 5 / 4), "{missed:?} of {flips}");
        assert!(tages[0] < gshares[0], "{missed:?}");
    }

    #[test]
    fn a_target_that_depends_on_the_last_ones_is_learnt() {
        let mut predictors = Predictors::new();
        let mut wrong = [0; PREDICTORS];
        for round in 0..4_000_u64 {
            // An interpreter's only jump, over a program of eleven operations.
            let target = 0x1000 + 64 * ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5][round as usize % 11]);
            let bits = predictors.indirect(0x40_2000, target);
            for (size, wrong) in wrong.iter_mut().enumerate() {
                *wrong += u32::from(round >= 2_000 && bits >> size & 1 == 1);
            }
        }
        assert_eq!(wrong[GSHARES..], [0; TAGES]);
    }

    #[test]
    fn returns_go_where_the_call_came_from() {
        let mut predictors = Predictors::new();
        for depth in 0..16 {
            predictors.call(depth);
        }
        for depth in (0..16).rev() {
            assert_eq!(predictors.returned(depth), 0);
        }
        assert_ne!(predictors.returned(99), 0);
    }

    #[test]
    fn an_indirect_jump_goes_where_it_went_before() {
        let mut predictors = Predictors::new();
        assert_ne!(predictors.indirect(1, 100), 0);
        let wrong: Vec<u8> = (0..20).map(|_| predictors.indirect(1, 100)).collect();
        assert_eq!(wrong.last(), Some(&0));
    }
}
