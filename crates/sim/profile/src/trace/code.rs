//! Decoded instructions.

use serde::{Deserialize, Serialize};

use super::BranchKind;
use crate::{OpClass, Operand};

/// Registers that dependences are tracked through: 16 general ones, 32 vector
/// ones, 8 mask and 8 x87 ones, the flags, and one that instructions hand values
/// on in between their own micro-operations.
pub const REGISTERS: usize = 66;
/// The flags, as a register.
pub const FLAGS: u8 = 64;
/// What a micro-operation hands to the next ones of its instruction.
pub const TEMPORARY: u8 = 65;

/// A micro-operation as decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticOp {
    /// What it needs.
    pub class: OpClass,
    /// Registers that it reads.
    pub reads: Vec<u8>,
    /// Registers that it writes.
    pub writes: Vec<u8>,
    /// What it reads or writes in memory; only loads and stores do.
    pub operand: Operand,
}

/// An instruction as decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticInstruction {
    /// Its length in bytes.
    pub length: u8,
    /// Its micro-operations, in the order in which they execute; at least one.
    pub ops: Vec<StaticOp>,
}

/// How control leaves a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leaves {
    /// To the instruction that follows.
    Onward,
    /// By a conditional branch.
    Conditionally,
    /// By a direct jump.
    Jump,
    /// By a direct call.
    Call,
    /// By a jump through a register or memory.
    IndirectJump,
    /// By a call through a register or memory.
    IndirectCall,
    /// By a return.
    Return,
}

impl Leaves {
    /// The kind of its branch, if it is one.
    pub fn branch(self) -> Option<BranchKind> {
        match self {
            Self::Onward => None,
            Self::Conditionally => Some(BranchKind::Conditional),
            Self::Jump => Some(BranchKind::Jump),
            Self::Call => Some(BranchKind::Call),
            Self::IndirectJump => Some(BranchKind::IndirectJump),
            Self::IndirectCall => Some(BranchKind::IndirectCall),
            Self::Return => Some(BranchKind::Return),
        }
    }
}

/// A block of instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Address of its first instruction.
    pub start: u64,
    /// How it is left.
    pub leaves: Leaves,
    /// Its instructions; at least one.
    pub instructions: Vec<StaticInstruction>,
}

impl Code {
    /// Address behind it.
    pub(super) fn after(&self) -> u64 {
        let lengths = self.instructions.iter().map(|one| u64::from(one.length));
        lengths.fold(self.start, u64::wrapping_add)
    }

    /// Its micro-operations.
    pub(super) fn ops(&self) -> usize {
        self.instructions.iter().map(|one| one.ops.len()).sum()
    }

    /// Each load and store: of which instruction, and is it a store?
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, OpClass)> + '_ {
        self.instructions.iter().enumerate().flat_map(|(index, instruction)| {
            let ops = instruction.ops.iter().filter(|op| op.class.is_memory());
            ops.map(move |op| (index, op.class))
        })
    }

    /// Why no block can be like this.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.instructions.is_empty() || self.instructions.len() > LONGEST {
            return Err("a block has an impossible number of instructions");
        }
        let known = |registers: &[u8]| registers.iter().all(|r| usize::from(*r) < REGISTERS);
        for instruction in &self.instructions {
            if instruction.ops.is_empty() {
                return Err("an instruction does nothing");
            }
            if !instruction.ops.iter().all(|op| known(&op.reads) && known(&op.writes)) {
                return Err("a register is unknown");
            }
        }
        Ok(())
    }
}

/// No block has more instructions.
const LONGEST: usize = 1 << 14;
