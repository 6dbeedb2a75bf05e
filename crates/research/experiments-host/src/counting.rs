//! The experiment `symbiont bench self counters`: what counting costs.
//!
//! # Problem
//! Counting events of every thread takes CPU time at each quantum's end, file
//! descriptors, and memory of the kernel. How much of each, and does the time
//! for a thread stay small when there are many?
//!
//! # Approach
//! Six events of the kernel in two groups of three, which any machine has, on
//! 16, 128 and 1,024 threads of this process, by the product's own code
//! (`linux::perf`). Opening, reading, turning from one group to the other and
//! closing are measured apart. Two loads: *quiet* threads sleep all the time,
//! *active* ones run for a moment between two quanta. Cells are interleaved:
//! each round holds each of them once, in random order.
//!
//! # Terms and units
//! *Cost*: CPU time of the thread that counts, in µs for each counted thread;
//! of reading and turning, for each quantum as well. *Share*: cost of reading
//! over a quantum of 100 ms, of one CPU. *Memory*: growth of the kernel's
//! memory that cannot be reclaimed, in bytes for each event; whatever else the
//! machine does moves it too.
//!
//! # Properties
//! - Verdicts follow from the runs alone (`verdicts_follow_the_runs`).
//! - A real run counts each of its threads (`a_cell_counts_all_its_threads`).

mod campaign;
pub mod evaluate;
mod measure;
pub mod page;
pub mod plan;

pub use campaign::{CountingOptions, run};
pub use evaluate::{Evaluation, evaluate};
pub use measure::Done;
pub use measure::{Costs, measure};
pub use plan::{Activity, Load, Size};

#[cfg(test)]
mod tests;
