//! The physics of the simulated machine: how fast threads run, and why.
//!
//! # Problem
//! How fast a thread runs depends on its program, on the core, and on all threads that share
//! core, caches, memory. A policy must be judged by what a
//! machine would do, not by a model of interference like those that policies use.
//!
//! # Approach
//! No time passes here; the functions are pure but for the [`State`] that is handed in.
//!
//! | module | what |
//! |---|---|
//! | [`pipeline`] | a core as one of its threads sees it, and what co-runners change of that |
//! | [`trace`], [`streams`], [`prepared`] | a profile's phase, made ready |
//! | [`window`] | how fast micro-traces run through a core: a dataflow model |
//! | [`table`], [`response`], [`part`], [`alike`] | the window model's answers, tabulated |
//! | [`footprint`], [`sharing`], [`caches`], [`occupancy`] | how far shared caches reach, and how soon |
//! | [`shares`], [`coupling`], [`memory`] | what others leave of slots, ports, queues, bandwidth |
//! | [`domains`], [`tasks`], `groups` | the machine and the threads, laid out |
//! | [`solve`] with `columns`, `asking`, `near`, [`local`], [`respond`], [`step`], `mixing` | the fixed point of all that |
//! | [`rates`] | what comes out |
//!
//! # Terms and units
//! *ST*: alone on the machine. *Throttled ST*: alone, with the core in the SMT mode
//! of the coschedule. *Reach*: how many instructions back a line was used that is still
//! cached, as log₂. Latencies are cycles of the core, unless ns is said.
//!
//! # Properties
//! - A co-runner never speeds a thread up beyond throttled ST
//!   (`a_corunner_never_speeds_a_thread_up`); identical ones slow down equally
//!   (`identical_corunners_slow_down_equally`).
//! - Nothing gives more than it has (`shares_never_exceed_capacity`,
//!   `memory_gives_no_more_than_its_bandwidth`).
//! - With private resources threads run as in throttled ST
//!   (`private_resources_make_threads_run_as_throttled_st`), and each switch takes its own cause
//!   away (`each_switch_takes_its_own_cause_away`).
//! - Equal inputs give equal rates (`equal_inputs_give_equal_rates`).
//! - Tables match the window model (`tables_meet_the_direct_solve`).

pub mod alike;
mod asking;
pub mod caches;
mod columns;
pub mod coupling;
pub mod domains;
pub mod footprint;
pub mod for_core;
mod groups;
pub mod local;
pub mod memory;
mod mixing;
mod near;
pub mod occupancy;
pub mod part;
pub mod pipeline;
pub mod prepared;
pub mod rates;
pub mod respond;
pub mod response;
pub mod shares;
pub mod sharing;
pub mod solve;
pub mod step;
pub mod streams;
pub mod table;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod window;

pub use solve::State;
