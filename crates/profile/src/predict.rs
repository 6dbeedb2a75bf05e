//! Simulated branch predictors of several sizes.
//!
//! # Properties
//! A predictor learns what can be learnt and no more (`a_loop_is_learnt`,
//! `coin_flips_are_not`).

use crate::{PREDICTOR_ENTRIES, PREDICTORS};

/// Depth of the stack of return addresses.
const RETURNS: usize = 16;
/// A table of n counters goes with n / 16 targets of indirect branches.
const PER_TARGET: u32 = 16;
/// Branches in the history of indirect branches.
const TARGET_HISTORY: u64 = 0xff;

/// The predictors: at each size a gshare (McFarling) and a table of targets;
/// one stack of return addresses.
#[derive(Debug)]
pub struct Predictors {
    history: u64,
    counters: [Vec<u8>; PREDICTORS],
    targets: [Vec<u64>; PREDICTORS],
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
    /// Cold: every conditional branch is weakly predicted not taken.
    pub fn new() -> Self {
        Self {
            history: 0,
            counters: PREDICTOR_ENTRIES.map(|entries| vec![1; entries as usize]),
            targets: PREDICTOR_ENTRIES.map(|entries| vec![0; (entries / PER_TARGET) as usize]),
            returns: [0; RETURNS],
            top: 0,
        }
    }

    /// A conditional branch at `at`. Bit i: the i-th predictor mispredicted it.
    #[inline]
    pub fn conditional(&mut self, at: u64, taken: bool) -> u8 {
        let place = spread(at) ^ self.history;
        let mut wrong = 0;
        for (bit, counters) in self.counters.iter_mut().enumerate() {
            let index = place as usize & (counters.len() - 1);
            let counter = &mut counters[index];
            wrong |= u8::from((*counter >= 2) != taken) << bit;
            *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        }
        self.history = self.history << 1 | u64::from(taken);
        wrong
    }

    /// An indirect jump or call at `at` that went to `target`. Bits as above.
    pub fn indirect(&mut self, at: u64, target: u64) -> u8 {
        let place = spread(at) ^ (self.history & TARGET_HISTORY);
        let mut wrong = 0;
        for (bit, targets) in self.targets.iter_mut().enumerate() {
            let index = place as usize & (targets.len() - 1);
            wrong |= u8::from(targets[index] != target) << bit;
            targets[index] = target;
        }
        self.history = self.history << 2 | (spread(target) & 3);
        wrong
    }

    /// A call, which will return to `after`.
    pub fn call(&mut self, after: u64) {
        self.top = (self.top + 1) % RETURNS;
        self.returns[self.top] = after;
    }

    /// A return that went to `target`. All bits are set or none.
    pub fn returned(&mut self, target: u64) -> u8 {
        let predicted = self.returns[self.top];
        self.top = (self.top + RETURNS - 1) % RETURNS;
        if predicted == target { 0 } else { (1 << PREDICTORS) - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::Predictors;
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
        // 8,000 branches, each with a direction of its own, in a fixed order.
        let outcomes = (0..400_000_u64).map(|round| {
            let branch = round % 8_000;
            (0x40_0000 + 16 * branch, branch.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1)
        });
        let missed = missed(outcomes, 200_000);
        assert!(missed.is_sorted(), "{missed:?}");
        assert!(missed[PREDICTORS - 1] > 5 * missed[0], "{missed:?}");
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
