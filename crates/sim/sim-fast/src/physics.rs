//! The physics of the simulated machine: how fast threads run, and why.
//!
//! # Problem
//! The speed of a thread depends on its program, on its core, and on all threads that share core,
//! caches and memory. A policy must be judged by what a machine would do, not by an interference
//! model of the kind that policies use themselves.
//!
//! # Approach
//! No time passes here; the functions are pure but for the [`State`] that is handed in.
//!
//! | module | what |
//! |---|---|
//! | [`pipeline`] | a core as one of its threads sees it, and what co-runners change of that |
//! | [`trace`], [`streams`], [`prepared`] | a phase of a profile, prepared for a machine |
//! | [`window`] | the instruction-window model: how fast micro-traces run through a core |
//! | [`table`], [`response_table`], [`part`], [`alike`] | the window model, tabulated |
//! | [`aet`], [`statcc`], [`caches`], [`occupancy`] | shared caches: steady state and transients |
//! | [`max_min_fair`], [`coupling`], [`memory`] | sharing of slots, ports, queues and bandwidth |
//! | [`domains`], [`tasks`], `groups` | the machine and its threads, laid out |
//! | [`solve`] with `columns`, `evaluation`, [`core_model`] | the fixed point of all that |
//! | `sensitivity`, [`linearization`] | when a changed environment need not be evaluated again |
//! | [`aitken`], `anderson` | how the fixed point is accelerated |
//! | [`rates`] | the result: events per instruction |
//!
//! # Terms and units
//! *ST*: single-threaded, alone on the machine. *Throttled ST*: alone, with the core in the SMT mode
//! of the co-schedule. *Reach* of a cache: the longest reuse time that still hits, as log₂ of
//! instructions. Latencies are in cycles of the core unless they say ns.
//!
//! # Properties
//! - A co-runner never speeds a thread up beyond throttled ST
//!   (`a_corunner_never_speeds_a_thread_up`); identical ones slow down equally
//!   (`identical_corunners_slow_down_equally`).
//! - Nothing gives more than it has (`shares_never_exceed_capacity`,
//!   `memory_gives_no_more_than_its_bandwidth`).
//! - With private resources threads run as in throttled ST
//!   (`private_resources_make_threads_run_as_throttled_st`), and each switch removes its own cause
//!   (`each_switch_takes_its_own_cause_away`).
//! - Equal inputs give equal rates (`equal_inputs_give_equal_rates`).
//! - Tables match the window model (`tables_meet_the_direct_solve`).

pub mod aet;
pub mod aitken;
pub mod alike;
mod anderson;
pub mod caches;
mod columns;
pub mod core_model;
pub mod coupling;
pub mod domains;
mod evaluation;
pub mod for_core;
mod groups;
pub mod linearization;
pub mod max_min_fair;
pub mod memory;
pub mod occupancy;
pub mod part;
pub mod pipeline;
pub mod prepared;
pub mod rates;
pub mod response_table;
mod sensitivity;
pub mod solve;
pub mod statcc;
pub mod streams;
pub mod table;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod window;

pub use solve::State;
