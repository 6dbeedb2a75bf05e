//! What kinds of micro-operations a program executes.

use serde::{Deserialize, Serialize};

/// The class of a micro-operation: what it needs to execute.
///
/// An instruction that computes on memory is split as processors split it:
/// a load, the computation, a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum OpClass {
    /// Integer arithmetic, logic, moves between registers, address computation.
    Integer,
    /// Integer multiplication.
    Multiply,
    /// Integer division.
    Divide,
    /// Floating-point addition, comparison, conversion.
    FpAdd,
    /// Floating-point multiplication.
    FpMultiply,
    /// Fused multiply-add.
    FpFma,
    /// Floating-point division, square root and x87 functions beyond them.
    FpDivide,
    /// Vector work that is not arithmetic on floating-point numbers: integers,
    /// logic, shuffles, moves.
    Vector,
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
    /// Changes the flow of control: jumps, calls, returns.
    Branch,
    /// None of these: no-operations, fences, system calls.
    Other,
}

impl OpClass {
    /// How many classes there are.
    pub const COUNT: usize = 12;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Integer,
        Self::Multiply,
        Self::Divide,
        Self::FpAdd,
        Self::FpMultiply,
        Self::FpFma,
        Self::FpDivide,
        Self::Vector,
        Self::Load,
        Self::Store,
        Self::Branch,
        Self::Other,
    ];

    /// Its index in a [`Mix`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Is it arithmetic on floating-point numbers?
    pub fn is_floating_point(self) -> bool {
        matches!(self, Self::FpAdd | Self::FpMultiply | Self::FpFma | Self::FpDivide)
    }

    /// Does it access data in memory?
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Load | Self::Store)
    }
}

/// How many micro-operations of each class a phase executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Micro-operations by [`OpClass::index`].
    pub ops: [u64; OpClass::COUNT],
    /// Floating-point and vector micro-operations by width: one scalar value,
    /// 128 bits, 256 bits, 512 bits.
    pub by_width: [u64; 4],
    /// Floating-point operations on single values: an addition of four values
    /// counts 4, a fused multiply-add of one 2.
    pub flops: u64,
}

impl Mix {
    /// Micro-operations of a class.
    pub fn count(&self, class: OpClass) -> u64 {
        self.ops[class.index()]
    }

    /// All micro-operations.
    pub fn total(&self) -> u64 {
        self.ops.iter().fold(0, |sum, ops| sum.saturating_add(*ops))
    }

    /// Loads and stores.
    pub fn memory(&self) -> u64 {
        self.count(OpClass::Load).saturating_add(self.count(OpClass::Store))
    }

    /// Adds all of another stretch of execution.
    pub fn merge(&mut self, other: &Self) {
        let slots = self.ops.iter_mut().chain(&mut self.by_width);
        for (mine, more) in slots.zip(other.ops.iter().chain(&other.by_width)) {
            *mine = mine.saturating_add(*more);
        }
        self.flops = self.flops.saturating_add(other.flops);
    }
}
