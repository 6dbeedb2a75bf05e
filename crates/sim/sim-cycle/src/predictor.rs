//! Branch predictors: tables of two-bit counters or tagged entries, a target table, return stacks.
//!
//! # Approach
//! A table of n counters goes with n / 16 targets of indirect branches. A return is predicted by the thread's
//! return-address stack, as deep as those of the profile's predictors. Better predictors than these are
//! described by the share of the table's mispredictions that remains: so many of them count, evenly spaced.
//!
//! # Properties
//! `a_bias_is_learnt_by_two_bits`, `a_pattern_is_learnt_with_history`,
//! `threads_spoil_a_shared_table`, `a_target_is_learnt`, `returns_are_known_so_deep`,
//! `a_share_of_the_wrong_guesses_remains`, `tagged_tables_learn_long_loops`.

use symbiont_profile::Prediction;
use symbiont_profile::predict::{Places, Tage, Targets};

use crate::op::Branch;

/// Counters for each target that is remembered.
const PER_TARGET: usize = 16;
/// Calls of which a thread's predictor remembers where they came from.
const RETURNS: usize = 16;
/// Branches in the history of indirect ones.
const TARGET_HISTORY: u64 = 0xff;

/// What is remembered for one thread or all.
#[derive(Debug, Clone)]
enum Table {
    Counters { counters: Vec<u8>, targets: Vec<u32> },
    Tagged { tage: Tage, targets: Targets },
}

/// What a thread did.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    history: u128,
    /// Where the last calls return to, and which was the last.
    returns: [u32; RETURNS],
    top: usize,
    /// Mispredictions that remain, not counted yet.
    owed: f64,
}

impl Past {
    fn call(&mut self, after: u32) {
        self.top = (self.top + 1) % RETURNS;
        self.returns[self.top] = after;
    }

    /// Did it go elsewhere than expected?
    fn returns(&mut self, target: u32) -> bool {
        let expected = self.returns[self.top];
        self.top = (self.top + RETURNS - 1) % RETURNS;
        expected != target
    }
}

/// The predictor of a core.
#[derive(Debug, Clone)]
pub struct Predictor {
    table: Table,
    pasts: Vec<Past>,
    remains: f64,
}

fn spread(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

impl Predictor {
    /// Of this kind and so many entries: counters, rounded up to a power of two, that weakly predict not
    /// taken, or tagged ones. `remains`: the share of the mispredictions that count.
    #[must_use]
    pub fn new((prediction, entries): (Prediction, u32), threads: usize, remains: f64) -> Self {
        let entries = entries.clamp(2, 1 << 24);
        let table = match prediction {
            Prediction::Gshare => {
                let entries = entries.next_power_of_two() as usize;
                let targets = vec![0; (entries / PER_TARGET).max(1)];
                Table::Counters { counters: vec![1; entries], targets }
            }
            Prediction::Tage => Table::Tagged {
                tage: Tage::new(entries),
                targets: Targets::new(entries as usize / PER_TARGET),
            },
        };
        let pasts = vec![Past::default(); threads];
        Self { table, pasts, remains: remains.clamp(0.0, 1.0) }
    }

    /// A thread's branch at `pc` does what it does: was it mispredicted?
    #[inline]
    pub fn wrong(&mut self, thread: usize, pc: u64, branch: Branch) -> bool {
        match branch {
            Branch::Foreseen => false,
            Branch::Given { wrong } => wrong,
            branch => self.predicts_wrong(thread, pc, branch),
        }
    }

    fn predicts_wrong(&mut self, thread: usize, pc: u64, branch: Branch) -> bool {
        let wrong = match branch {
            Branch::Foreseen | Branch::Given { .. } => return false,
            Branch::Conditional { taken } => self.direction(thread, pc, taken),
            Branch::Indirect { target } => self.target(thread, pc, target),
            Branch::Call { after } => {
                self.pasts[thread].call(after);
                return false;
            }
            Branch::IndirectCall { target, after } => {
                self.pasts[thread].call(after);
                self.target(thread, pc, target)
            }
            Branch::Return { target } => self.pasts[thread].returns(target),
        };
        let past = &mut self.pasts[thread];
        past.owed += if wrong { self.remains } else { 0.0 };
        let counts = past.owed >= 1.0;
        past.owed -= f64::from(u8::from(counts));
        counts
    }

    fn direction(&mut self, thread: usize, pc: u64, taken: bool) -> bool {
        let past = &mut self.pasts[thread];
        let wrong = match &mut self.table {
            Table::Counters { counters, .. } => {
                let place = spread(pc) ^ past.history as u64;
                let at = place as usize & (counters.len() - 1);
                let counter = counters[at];
                counters[at] = if taken { (counter + 1).min(3) } else { counter.saturating_sub(1) };
                (counter >= 2) != taken
            }
            Table::Tagged { tage, .. } => tage.mispredicts(&Places::of(pc, past.history), taken),
        };
        past.history = past.history << 1 | u128::from(taken);
        wrong
    }

    fn target(&mut self, thread: usize, pc: u64, target: u32) -> bool {
        let past = &mut self.pasts[thread];
        let wrong = match &mut self.table {
            Table::Counters { targets, .. } => {
                let place = spread(pc) ^ (past.history as u64 & TARGET_HISTORY);
                let at = place as usize & (targets.len() - 1);
                std::mem::replace(&mut targets[at], target) != target
            }
            Table::Tagged { targets, .. } => targets.mispredicts(pc, past.history, target.into()),
        };
        past.history = past.history << 2 | u128::from(spread(target.into()) & 3);
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gshare(entries: u32) -> (Prediction, u32) {
        (Prediction::Gshare, entries)
    }

    fn conditional(taken: bool) -> Branch {
        Branch::Conditional { taken }
    }

    fn wrongs(predictor: &mut Predictor, thread: usize, way: impl Fn(u64) -> bool) -> u64 {
        (0..1000).map(|n| u64::from(predictor.wrong(thread, 64, conditional(way(n))))).sum()
    }

    #[test]
    fn a_bias_is_learnt_by_two_bits() {
        let mut predictor = Predictor::new(gshare(64), 1, 1.0);
        // Once in ten it falls through: one misprediction each time, the bias stays. Beyond these there are
        // those of each history that is new.
        let wrong = wrongs(&mut predictor, 0, |n| n % 10 != 9);
        assert!((100..=120).contains(&wrong), "{wrong}");
    }

    #[test]
    fn a_pattern_is_learnt_with_history() {
        let mut predictor = Predictor::new(gshare(4096), 1, 1.0);
        assert!(wrongs(&mut predictor, 0, |n| n % 3 == 0) < 40);
    }

    #[test]
    fn tagged_tables_learn_long_loops() {
        let of = |prediction| {
            let mut one = Predictor::new((prediction, 4096), 1, 1.0);
            let rounds = |n: u64| n % 50 != 49;
            wrongs(&mut one, 0, rounds);
            wrongs(&mut one, 0, rounds)
        };
        assert_eq!(of(Prediction::Gshare), 20);
        assert!(of(Prediction::Tage) < 5, "{}", of(Prediction::Tage));
    }

    /// Branches at one address, with one history, that go one way in one thread and the other way in the other.
    #[test]
    fn threads_spoil_a_shared_table() {
        let spoilt = |threads: usize| -> u64 {
            let mut both = Predictor::new(gshare(64), 2, 1.0);
            let mut wrong = 0;
            for _ in 0..500 {
                for thread in 0..threads {
                    for _ in 0..8 {
                        both.wrong(thread, 4096, conditional(true));
                    }
                    wrong += u64::from(both.wrong(thread, 64, conditional(thread == 0)));
                }
            }
            wrong
        };
        assert!(spoilt(1) < 10 && spoilt(2) > 450, "{} {}", spoilt(1), spoilt(2));
    }

    #[test]
    fn a_target_is_learnt() {
        let mut predictor = Predictor::new(gshare(4096), 1, 1.0);
        let mut wrong = |target: fn(u64) -> u64| -> u64 {
            let went = |n| Branch::Indirect { target: target(n) as u32 };
            (0..1000).map(|n| u64::from(predictor.wrong(0, 64, went(n)))).sum()
        };
        assert!(wrong(|_| 4096) < 20);
        assert!(wrong(|n| 64 * (n % 3)) < 40);
        assert!(wrong(|n| spread(n * n) % 64) > 800);
    }

    #[test]
    fn returns_are_known_so_deep() {
        let wrong = |depth: u32| {
            let mut predictor = Predictor::new(gshare(64), 2, 1.0);
            for call in 0..depth {
                assert!(!predictor.wrong(0, 64, Branch::Call { after: call }));
                // The other thread has a stack of its own.
                predictor.wrong(1, 64, Branch::IndirectCall { target: 7, after: 1000 + call });
            }
            let returns = (0..depth).rev().map(|target| Branch::Return { target });
            returns.filter(|branch| predictor.wrong(0, 64, *branch)).count()
        };
        assert_eq!([1, 16, 17, 20].map(wrong), [0, 0, 1, 4]);
    }

    #[test]
    fn a_share_of_the_wrong_guesses_remains() {
        let of = |remains| {
            let mut half = Predictor::new(gshare(64), 1, remains);
            wrongs(&mut half, 0, |n| spread(n * n) % 2 == 0)
        };
        assert!(of(1.0) > 300);
        assert_eq!(of(0.5), of(1.0) / 2);
        assert_eq!(of(0.0), 0);
    }
}
