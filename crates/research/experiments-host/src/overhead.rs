//! The experiment `symbiont bench self overhead`: what managing costs.
//!
//! # Problem
//! A manager that looks at every thread every few milliseconds takes CPU time
//! and memory from the programs that it serves, and is late itself when they
//! keep all CPUs busy. How much, and how does that grow with the number of
//! threads?
//!
//! # Approach
//! Programs of 8 to 2,048 threads run under `phases`, by the product's own
//! command line; the manager reports at the end what it used. Two loads:
//! - *sleepers*: each thread wakes ten times a second, at a moment of its own,
//!   and works for about 20 µs: many threads, each active in part of the
//!   quanta, as in servers. The whole load stays below half a CPU.
//! - *busy*: no thread ever sleeps, as in numeric programs; for lateness.
//!
//! With them unmanaged sleepers, and a bare loop that does the
//! least that any manager of threads does: wake, and read two files of each.
//!
//! Cells are interleaved: each round holds each of them once, in random order.
//!
//! # Terms and units
//! *Cost*: CPU time of all threads of the manager, by the scheduler's own
//! nanosecond account, per managed thread and quantum, in µs. It includes
//! starting and ending the manager, spread over the run. *Lateness*: actual
//! less planned wake-up of the loop, in ms. *Memory*: the manager's own
//! (anonymous) memory at the end of a run, in KiB.
//!
//! # Properties
//! - Verdicts follow from the runs alone (`verdicts_follow_the_runs`).
//! - The fit of a line finds its ends (`a_line_is_found_again`).

mod campaign;
pub mod evaluate;
pub mod page;
pub mod plan;
mod record;

pub use campaign::{OverheadOptions, run};
pub use evaluate::{Evaluation, evaluate};
pub use plan::{Load, Size};
pub use record::{Done, OverheadRecord};

#[cfg(test)]
mod tests;
