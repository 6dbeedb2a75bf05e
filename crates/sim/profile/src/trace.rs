//! Windows of real instruction traces, for simulators that work cycle by cycle.
//!
//! # Problem
//! A micro-trace has reuse times. A simulator with caches and predictors of its own needs addresses and branch
//! outcomes, over millions of instructions, and caches that are warm at the start.
//!
//! # Approach
//! For each of a program's most frequent phases one *window* is kept: by default four million instructions, the
//! first half of them for warm-up. In front of them are the lines that the thread had used most recently, in that
//! order ([`Window::data`], [`Window::code`]): touching these fills caches of any geometry, as a memory timestamp
//! record does (Barr et al., ISPASS 2005). The warm-up is for what that order does not restore: predictors, and
//! the accesses to an outer cache below an inner one.
//!
//! A block of instructions is stored once, decoded. The trace is the sequence of blocks with the addresses of
//! their accesses. Dependences, branch outcomes and operations are derived while reading; a reader holds one
//! chunk of a file at a time.
//!
//! # Terms and units
//! *Instruction*, *micro-operation*: as in the crate. *Line number*: virtual address / 64. *Block*: instructions
//! that are always executed together, with one entry and at most one branch, at its end. Addresses are virtual
//! ones, in bytes.
//!
//! # Properties
//! - What is written is read back equal (`windows_round_trip`), in chunks whose number, not size, grows with the
//!   window (`long_windows_come_in_many_chunks`).
//! - Damage, cuts, other files and other versions are reported, never a panic
//!   (`damage_anywhere_is_reported`, `any_bytes_are_refused`,
//!   `chunks_that_fit_their_checksum_but_make_no_sense_are_refused`).
//! - A source is never before the window, and a branch goes where execution goes on
//!   (`sources_lie_within_the_window`, `branches_go_where_execution_goes_on`).

mod chunk;
mod code;
mod encode;
mod error;
mod file;
mod follow;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lines;
mod ops;
mod unroll;

use serde::{Deserialize, Serialize};

use crate::{FromStore, OpClass};
pub use code::{Code, FLAGS, Leaves, REGISTERS, StaticInstruction, StaticOp, TEMPORARY};
pub use encode::{RawWindow, WindowEncoder};
pub use error::TraceError;
pub use file::{MOST_WINDOWS, TraceFile, is_trace, write};
pub use follow::DataAccess;
pub use lines::{Line, MOST_LINES};
pub use ops::TraceOps;
pub use unroll::{Dependences, unroll};

/// The version that is written and read: it grows when the layout or the
/// meaning of a field changes.
pub const VERSION: u32 = 2;

/// One micro-operation as it was executed.
///
/// Class, sources and the division into instructions are those of [`crate::MicroOp`]. Where that has what follows
/// from the address and the outcome, this has the address and the outcome themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceOp {
    /// What it needs.
    pub class: OpClass,
    /// Is it the first micro-operation of its instruction?
    pub starts_instruction: bool,
    /// How many micro-operations back its sources were made: 1 is the one
    /// before. 0 is no source, or one from before the window or farther than
    /// 65,535 operations. Of more than two sources, the two that were made last.
    pub sources: [u16; 2],
    /// Of a load, the store of this window that wrote what it reads.
    pub stored: Option<FromStore>,
    /// Bytes of its instruction.
    pub length: u8,
    /// Address of its instruction.
    pub at: u64,
    /// Address of the data that it accesses; all loads and stores have one, and
    /// nothing else.
    pub address: Option<u64>,
    /// What it did, if it is a branch that ended its block.
    pub branch: Option<Branch>,
}

/// What a branch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Its kind.
    pub kind: BranchKind,
    /// Did it leave the sequence of instructions? Only conditional ones may stay in it.
    pub taken: bool,
    /// Where execution went on.
    pub next: u64,
}

/// Kinds of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// A conditional jump.
    Conditional,
    /// A direct jump.
    Jump,
    /// A direct call.
    Call,
    /// A jump through a register or memory.
    IndirectJump,
    /// A call through a register or memory.
    IndirectCall,
    /// A return.
    Return,
}

/// What a trace was taken of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The program's name: that of its profile.
    pub program: String,
    /// The command that was traced.
    pub command: Vec<String>,
    /// SHA-256 of the executable file, in hexadecimal digits.
    pub digest: String,
    /// Instructions that the traced thread executed in all.
    pub instructions: u64,
    /// What the capture could not do, in plain words.
    pub gaps: Vec<String>,
}

/// What a window shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowInfo {
    /// Index into the phases of the program's profile.
    pub phase: u16,
    /// That phase's share of the thread's instructions: the weight of the window.
    pub share: f64,
    /// Instructions that the thread had executed before the window.
    pub start: u64,
    /// Instructions at the start of the window that are there to warm up: fewer than all.
    pub warm_up: u64,
    /// Instructions of the window, those to warm up included.
    pub instructions: u64,
    /// Its micro-operations.
    pub ops: u64,
    /// Address of the instruction behind the window.
    pub after: u64,
}

/// A window that is being read.
#[derive(Debug)]
pub struct Window {
    /// Lines of data that the thread had used before, at most
    /// [`MOST_LINES`], the least recently used first.
    pub data: Vec<Line>,
    /// The same of lines of instructions.
    pub code: Vec<Line>,
    /// Its operations, in program order.
    pub ops: TraceOps,
}

#[cfg(test)]
mod tests;
