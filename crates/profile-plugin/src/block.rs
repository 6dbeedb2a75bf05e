//! Decoded basic blocks.

use symbiont_profile::{Mix, OpClass};

/// Registers that dependences are tracked through: 16 general ones, 32 vector
/// ones, 8 mask and 8 x87 ones, the flags, and one that instructions hand values
/// on in between their own micro-operations.
pub const REGISTERS: usize = 66;
/// The flags, as a register.
pub const FLAGS: u8 = 64;
/// What a micro-operation hands to the next ones of its instruction.
pub const TEMPORARY: u8 = 65;

/// A micro-operation as decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// What it needs.
    pub class: OpClass,
    /// Registers that it reads.
    pub reads: Vec<u8>,
    /// Registers that it writes.
    pub writes: Vec<u8>,
}

/// An instruction as decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// In the order in which they execute; at least one.
    pub ops: Vec<Op>,
    /// Bytes of its widest memory operand; 0 without one.
    pub access_bytes: u32,
    /// A string instruction with a repeat prefix: executed once per element.
    pub repeats: bool,
    /// Index into [`Block::lines`] of the line that its last byte lies in.
    pub last_line: usize,
}

/// How control leaves a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Instructions that are translated together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// A number of its own, from 0.
    pub id: usize,
    /// Address of its first instruction.
    pub start: u64,
    /// Address of its last instruction.
    pub last: u64,
    /// Address behind it.
    pub after: u64,
    /// How it is left.
    pub leaves: Leaves,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// The 64-byte lines that it lies in, in order.
    pub lines: Vec<u64>,
    /// Its micro-operations but loads and stores, which are counted as they happen.
    pub mix: Mix,
}

impl Block {
    /// Is it one string instruction with a repeat prefix?
    pub fn is_repeat(&self) -> bool {
        matches!(self.instructions.as_slice(), [only] if only.repeats)
    }

    /// Does it end with a string instruction with a repeat prefix?
    pub fn ends_with_repeat(&self) -> bool {
        self.instructions.last().is_some_and(|last| last.repeats)
    }
}
