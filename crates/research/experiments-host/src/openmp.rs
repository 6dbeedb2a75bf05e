//! The experiment `symbiont bench openmp`: serial phases first for real parallel
//! programs.
//!
//! # Problem
//! The synthetic benchmark has the phases that it was written to have. Morad et al. also
//! measure SPEC OMP2001 (Tables 6 and 7), which is not free. What do serial phases
//! first bring to programs whose phases come from what they compute?
//!
//! # Approach
//! Well-known OpenMP kernels (`kernels.c`, built here by the machine's C compiler),
//! in all pairs, each pair in both orders at the same time ([`crate::orders`]), under
//! `stay` and `phases`, interleaved, in one session and in sessions of their own.
//! As in the paper (section 3) loops are scheduled dynamically. Threads sleep while
//! they wait (`OMP_WAIT_POLICY=passive`): a thread that polls looks ready, which would
//! hide the serial phases.
//!
//! Their parallel regions last milliseconds. With regions of a tenth of that, three kernels took longer
//! with two threads than with one on a machine of virtual CPUs, and a policy that kept both of their threads
//! running made them slower; the report names such kernels.
//!
//! Each kernel does the same work in every run; its checksum is compared with that of
//! an unmanaged run. What the model predicts rests on the share of its time that a
//! kernel is in parallel regions, measured with one thread.
//!
//! # Terms and units
//! As in [`crate::orders`]; times in seconds of wall time, alone on the machine or in
//! the pair.
//!
//! # Properties
//! - A round holds each cell once (`a_round_holds_each_cell_once_and_takes_what_it_says`).
//! - A kernel computes the same with any number of threads
//!   (`kernels_compute_the_same_with_any_number_of_threads`).
//! - It goes on where it stopped (`two_kernels_go_on_where_they_stopped`).

mod campaign;
mod evaluate;
mod kernels;
mod page;
mod plan;
mod record;
#[cfg(test)]
mod tests;

pub use campaign::{OpenmpOptions, measure, run};
pub use evaluate::{Evaluation, OpenmpCell};
pub use kernels::KERNELS;
pub use plan::OpenmpSize;
pub use record::TimeSpent;
