//! A plugin for qemu-user that observes a program instruction by instruction.
//!
//! # Problem
//! A profile needs every basic block, branch and data access of a run of billions of instructions, at no less
//! than a tenth of native speed.
//!
//! # Approach
//! qemu-user translates a program block by block, and calls the plugin back:
//!
//! ```text
//! a block is translated:        decode its instructions                                 decode
//! a block is executed:          count it, fetch its lines, predict its branch           meter
//! memory is accessed:           reuse time := time − time of the line's last access     clock
//! 50 million instructions of a thread: write its counts to a file and start anew; predictors and tables stay warm
//! ```
//!
//! Reuse times are exact: a table of pages holds the time of the last access to each of their lines. Micro-traces
//! are taken at eight places of each interval; between them blocks and accesses are collected and observed many at
//! once, the blocks apart from the accesses, which takes less time. Where instruction traces are wanted, windows of
//! one process are recorded block by block ([`window`]).
//!
//! Each virtual CPU has its own meter, so that threads share nothing but the decoded blocks. A forked child goes
//! on with its parent's warm tables, in a file of its own.
//!
//! # Terms and units
//! As in `symbiont_profile`. *Block*: instructions that qemu translates together; it is entered only at its first
//! one and ends at a branch or earlier. A string instruction with a repeat prefix is one instruction; its
//! accesses count once per 32 bytes, as hardware moves them.
//!
//! # Properties
//! - Reuse times are those of a list of all accesses
//!   (`reuse_times_are_those_of_a_naive_list`).
//! - What is observed later is what would have been observed at once (`what_is_observed_later_is_the_same`).
//! - Each kind of instruction becomes the micro-operations that hardware splits
//!   it into (`instructions_are_split_as_hardware_does`).

pub mod block;
pub mod clock;
pub mod command_line;
pub mod decode;
pub mod executed;
pub mod interface;
pub mod interval;
pub mod meter;
pub mod recorder;
pub mod window;

#[cfg(not(test))]
mod plugin;
