//! Decoded basic blocks.

use symbiont_profile::Mix;
use symbiont_profile::trace::{Code, StaticInstruction};
pub use symbiont_profile::trace::{FLAGS, Leaves, StaticOp as Op, TEMPORARY};

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
    /// Its bytes.
    pub length: u8,
}

/// Instructions that are translated together. What each execution needs comes first, in one line of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C, align(64))]
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
    /// The 64-byte lines that it lies in, in order.
    pub lines: Vec<u64>,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// Its micro-operations but loads and stores, which are counted as they happen.
    pub mix: Mix,
}

impl Block {
    /// Is it one string instruction with a repeat prefix?
    pub fn is_repeat(&self) -> bool {
        matches!(self.instructions.as_slice(), [only] if only.repeats)
    }

    /// As traces keep it.
    pub fn code(&self) -> Code {
        let kept =
            |one: &Instruction| StaticInstruction { length: one.length, ops: one.ops.clone() };
        let instructions = self.instructions.iter().map(kept).collect();
        Code { start: self.start, leaves: self.leaves, instructions }
    }

    /// Does it end with a string instruction with a repeat prefix?
    pub fn ends_with_repeat(&self) -> bool {
        self.instructions.last().is_some_and(|last| last.repeats)
    }
}

/// The string instruction with a repeat prefix that a block ends with.
#[derive(Debug)]
pub struct Repeat {
    /// Which instruction of the block.
    pub instruction: usize,
    /// Accesses of each element.
    pub accesses: usize,
    /// The instruction alone: what each further round executes.
    pub round: &'static Block,
}

impl Repeat {
    /// That of a block, of which `round` is the last instruction alone.
    pub fn of(block: &Block, round: &'static Block) -> Option<Self> {
        let last = block.instructions.last().filter(|last| last.repeats)?;
        let accesses = last.ops.iter().filter(|op| op.class.is_memory()).count();
        Some(Self { instruction: block.instructions.len() - 1, accesses, round })
    }
}
