//! What a program does in one kind of phase.

use crate::{Branches, CodeSketch, MicroTrace, Mix, ReuseHistogram, SuperSetMap};
use serde::{Deserialize, Serialize};

/// The fewest micro-traces that should stand for a phase; fewer may miss much of what it does.
pub const FEWEST_TRACES: usize = 5;

/// Reuse times of one stream at each granularity. Times and accesses are
/// counted in accesses of that very histogram's stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reuse {
    /// Of 64-byte lines.
    pub line_64: ReuseHistogram,
    /// Of 128-byte lines.
    pub line_128: ReuseHistogram,
    /// Of 4-KiB pages.
    pub page: ReuseHistogram,
}

impl Reuse {
    /// Adds another stretch of the same stream.
    pub fn merge(&mut self, other: &Self) {
        self.line_64.merge(&other.line_64);
        self.line_128.merge(&other.line_128);
        self.page.merge(&other.page);
    }
}

/// Distinct lines and pages touched per interval of a phase: the mean
/// over its intervals. Estimated from a sample of the lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// 64-byte lines of data.
    pub data_lines: u64,
    /// Those of them that were written.
    pub written_lines: u64,
    /// 4-KiB pages of data.
    pub data_pages: u64,
    /// 64-byte lines of instructions.
    pub code_lines: u64,
}

/// One kind of phase: the sum over the intervals that behave alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Instructions over which all other counts were taken.
    pub instructions: u64,
    /// Micro-operations.
    pub mix: Mix,
    /// Branches.
    pub branches: Branches,
    /// Reuse times of data: each load or store is one access.
    pub data: Reuse,
    /// Reuse times of instructions: one access whenever execution goes on in
    /// another line (or page) than before.
    pub code: Reuse,
    /// Activity by super-set, one map for each of [`crate::SUPER_SET_CACHES`].
    pub super_sets: Vec<SuperSetMap>,
    /// Size of what was touched.
    pub footprint: Footprint,
    /// Which lines of instructions were touched, to find phases of one program that have code in common.
    pub code_sketch: CodeSketch,
    /// Micro-traces out of the interval that stands for the phase.
    pub traces: Vec<MicroTrace>,
}

impl Phase {
    /// Any of its counts per instruction; 0 in an empty phase.
    pub fn per_instruction(&self, count: u64) -> f64 {
        if self.instructions == 0 { 0.0 } else { count as f64 / self.instructions as f64 }
    }

    /// Floating-point operations per instruction.
    pub fn flops_per_instruction(&self) -> f64 {
        self.per_instruction(self.mix.flops)
    }

    /// Has it fewer micro-traces than [`FEWEST_TRACES`]?
    pub fn is_thin(&self) -> bool {
        self.traces.len() < FEWEST_TRACES
    }

    /// The share of the lines it touches that it also writes: of the lines that
    /// leave a cache, about as many are written back. 0 if it touches none.
    pub fn written_share(&self) -> f64 {
        match self.footprint.data_lines {
            0 => 0.0,
            lines => (self.footprint.written_lines as f64 / lines as f64).min(1.0),
        }
    }
}
