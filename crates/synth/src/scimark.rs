//! A multithreaded harness of SciMark's kernels.
//!
//! # Problem
//! Peternier et al. (WorkOver, sections 5.2 and 5.6) measure how a scheduler follows threads whose
//! use of the floating-point unit changes: persistent threads that run SciMark 2.0's five
//! kernels one after the other, each thread in its own random order.
//!
//! # Approach
//! The algorithms are those of textbooks, with SciMark's sizes (the small ones, which fit into
//! caches) and data from a seed. A thread has its own data and executes a kernel `repeat` times
//! before it goes on to the next. The order is drawn anew at each round.
//!
//! # Terms and units
//! *Execution*: one run of a kernel from its start, about a millisecond. *Round*: all kernels,
//! each `repeat` executions. *Score*: arithmetic operations per microsecond (SciMark's Mflops).
//!
//! # Properties
//! - An execution gives the same checksum on any thread, at any time, under any scheduler;
//!   executions whose checksum differs are counted
//!   (`a_seed_gives_one_result_at_each_execution`, `results_do_not_depend_on_threads`).
//! - Each thread executes each kernel equally often (`each_thread_runs_all_kernels_in_each_round`).
//! - No thread begins before all are started.

mod checksum;
mod fft;
mod harness;
mod kernel;
mod lu;
mod matrix;
mod monte_carlo;
mod report;
mod sor;
mod sparse;
mod worker;

pub use harness::{Options, Until, run};
pub use kernel::{Kernel, ParseKernelError, Workload};
pub use report::{KernelReport, Report, single};
