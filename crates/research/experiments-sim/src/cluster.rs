//! A simulated cluster: which jobs share a node, at the size of a computing centre.
//!
//! # Problem
//! What choosing partners gains on many nodes, and what it costs in waiting, cannot be tried on one machine.
//!
//! # Approach
//! Nodes have two slots, the hardware threads of one core of a simulated machine. How fast a job runs there
//! follows from the program in the other slot, by a table of slowdowns of pairs ([`PairTable`]) that the window
//! model gives; a job of two slots runs next to itself. A workload has what the Standard Workload Format (Chapin
//! et al., 1999) says of a job, and is drawn from a seed ([`generate`]) or taken from a log ([`given`]). [`play`]
//! starts jobs as a scheduler says, every few seconds ([`Scheduler`]): in the order of the queue, with backfilling
//! (Lifka, *The ANL/IBM SP scheduling system*, 1995; one reservation), or as `symbiont slurm` does
//! ([`symbiont_jobs::choose()`]).
//!
//! # Terms and units
//! Times in simulated seconds. *Slowdown*: time on the node / time alone there. *Throughput*: jobs per hour until
//! the last one ends. *Wait*: from submission to start.
//!
//! # Properties
//! - Every job runs once, for as long as its slowdowns say (`jobs_run_for_as_long_as_their_slowdowns_say`), and
//!   never more jobs than slots (`never_more_than_the_slots`).
//! - A first job that does not fit is not delayed by those that are filled in
//!   (`backfilling_does_not_delay_the_first_job`).
//! - Without interference the choice of partners gains nothing (`without_interference_nothing_is_gained`); where
//!   programs disturb each other it does (`partners_that_disturb_each_other_less_save_time`).
//! - Equal seeds draw equal workloads (`equal_seeds_draw_equal_workloads`), at the load that was asked for
//!   (`the_load_is_what_was_asked_for`). A log's jobs keep their times and sizes
//!   (`a_log_gives_times_and_sizes_and_the_seed_its_programs`).

mod order;
mod play;
mod table;
#[cfg(test)]
mod tests;
mod workload;

pub use order::Scheduler;
pub use play::{Cluster, ClusterOutcome, play};
pub use table::{PairTable, TableError};
pub use workload::{QueuedJob, generate, given, nodes_for};
