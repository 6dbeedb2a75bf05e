//! Short stretches of execution, operation by operation.

use crate::{FromStore, OpClass, PREDICTORS, ReuseBin};
use serde::{Deserialize, Serialize};

/// Lines of a data access or an instruction fetch, and their reuse times.
///
/// Reuse times were taken warm: they reach back before the micro-trace, to the
/// start of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Virtual address / 64. Lines of 128 bytes: `line / 2`; pages: `line / 64`.
    pub line: u64,
    /// Reuse time of the 64-byte line, in accesses of its stream.
    pub reuse_64: ReuseBin,
    /// Reuse time of the 128-byte line. For a fetch, [`ReuseBin::NONE`] if the
    /// fetch before was from the same 128-byte line.
    pub reuse_128: ReuseBin,
    /// Reuse time of the 4-KiB page. For a fetch, [`ReuseBin::NONE`] if the
    /// fetch before was from the same page.
    pub reuse_page: ReuseBin,
}

/// One micro-operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MicroOp {
    /// What it needs.
    pub class: OpClass,
    /// Is it the first micro-operation of its instruction?
    pub starts_instruction: bool,
    /// How many micro-operations back its sources were made: 1 is the one before. 0 is no source, or one long
    /// before. A source may be from before the micro-trace. Of more than two sources, the two that were made
    /// last. Sources are registers, flags and, within an instruction, what its load or computation hands on; not
    /// what passes through memory.
    pub sources: [u16; 2],
    /// Of a load, the store that wrote what it reads, in this micro-trace or shortly before.
    pub stored: Option<FromStore>,
    /// The data that it accesses; only loads and stores do. An access that
    /// crosses into a second line is one access, to the first.
    pub access: Option<Access>,
    /// The instruction line that is fetched for it: only where the instruction
    /// lies in another 64-byte line than the instruction before.
    pub fetch: Option<Access>,
    /// Bit i: mispredicted by a predictor of the i-th size of
    /// [`crate::PREDICTOR_CONFIGS`].
    pub mispredicted: u8,
}

impl MicroOp {
    /// An operation without sources, access, fetch or misprediction, that
    /// is an instruction of its own.
    pub fn plain(class: OpClass) -> Self {
        Self {
            class,
            starts_instruction: true,
            sources: [0; 2],
            stored: None,
            access: None,
            fetch: None,
            mispredicted: 0,
        }
    }

    /// Was it mispredicted by the predictor of the i-th size?
    pub fn mispredicted_at(&self, size: usize) -> bool {
        size < PREDICTORS && self.mispredicted >> size & 1 == 1
    }
}

/// A stretch of 1,000 to 1,500 instructions as they were executed, or fewer
/// where a program ended or a repeated string instruction filled it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MicroTrace {
    /// In program order.
    pub ops: Vec<MicroOp>,
}

impl MicroTrace {
    /// Instructions in it.
    pub fn instructions(&self) -> usize {
        self.ops.iter().filter(|op| op.starts_instruction).count()
    }
}
