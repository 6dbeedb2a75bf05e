//! Branches, and how often predictors of several sizes mispredict them.

use serde::{Deserialize, Serialize};

/// Sizes at which the branch predictor was simulated: entries of its table of
/// two-bit counters. Each is half the one before, since threads that share a
/// predictor of B entries have B/2, B/4, … each.
pub const PREDICTOR_ENTRIES: [u32; PREDICTORS] = [65_536, 32_768, 16_384, 8_192, 4_096, 2_048];

/// How many sizes were simulated.
pub const PREDICTORS: usize = 6;

/// Branches of a phase and their mispredictions.
///
/// The predictor is a gshare of n entries whose history has log₂ n branches,
/// beside a table of n / 16 targets for indirect jumps and calls and a
/// stack of 16 return addresses. Modern predictors are better than a gshare of
/// their size: a machine description chooses the size that fits its measured
/// misprediction ratio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branches {
    /// Branch instructions, of every kind.
    pub executed: u64,
    /// Conditional ones.
    pub conditional: u64,
    /// Those that were taken.
    pub taken: u64,
    /// Jumps and calls through a register or memory; returns are not counted.
    pub indirect: u64,
    /// Mispredictions of any kind, at each size of [`PREDICTOR_ENTRIES`].
    pub mispredicted: [u64; PREDICTORS],
}

impl Branches {
    /// Adds all of another stretch of execution.
    pub fn merge(&mut self, other: &Self) {
        self.executed = self.executed.saturating_add(other.executed);
        self.conditional = self.conditional.saturating_add(other.conditional);
        self.taken = self.taken.saturating_add(other.taken);
        self.indirect = self.indirect.saturating_add(other.indirect);
        for (mine, more) in self.mispredicted.iter_mut().zip(&other.mispredicted) {
            *mine = mine.saturating_add(*more);
        }
    }
}
