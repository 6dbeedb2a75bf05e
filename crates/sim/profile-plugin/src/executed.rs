//! What a thread executed in an interval: blocks and branches.

use symbiont_profile::{Branches, PREDICTORS};

use crate::block::Block;

/// Executions of a block.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockCount {
    /// Times, in this interval.
    pub times: u64,
    /// The block, once it was executed.
    pub block: Option<&'static Block>,
}

/// Counts of branches.
#[derive(Debug, Clone)]
pub struct BranchCounts {
    /// All.
    pub executed: u64,
    /// Those that may fall through.
    pub conditional: u64,
    /// Those that were taken.
    pub taken: u64,
    /// Those whose target is data.
    pub indirect: u64,
    /// How often each set of predictors was wrong together.
    pub wrong: [u64; 1 << PREDICTORS],
}

impl Default for BranchCounts {
    fn default() -> Self {
        let wrong = [0; 1 << PREDICTORS];
        Self { executed: 0, conditional: 0, taken: 0, indirect: 0, wrong }
    }
}

impl BranchCounts {
    /// As a profile has them.
    pub fn branches(&self) -> Branches {
        let mut mispredicted = [0; PREDICTORS];
        for (set, count) in self.wrong.iter().enumerate() {
            for (size, sum) in mispredicted.iter_mut().enumerate() {
                *sum += count * (set as u64 >> size & 1);
            }
        }
        Branches {
            executed: self.executed,
            conditional: self.conditional,
            taken: self.taken,
            indirect: self.indirect,
            mispredicted,
        }
    }
}
