//! What a program does, phase by phase, independent of any machine.
//!
//! # Problem
//! The simulated machine is to run real programs on cores, caches and memories that are not at hand, thousands of
//! times faster than instruction by instruction. And activity vectors need to know which regions of a cache a
//! program uses.
//!
//! # Approach
//! A [`Profile`] holds what determines a program's speed on any machine, in terms of the program alone: for each
//! kind of [`Phase`] the mix of micro-operations, mispredictions of simulated branch predictors of several sizes,
//! distributions of reuse times of data lines, instruction lines and pages, activity by super-set, and
//! micro-traces for a window model. The miss ratio of a cache of any size, shared or not, follows from a
//! distribution of reuse times ([`ReuseCurve`]). Intervals of 50 million instructions that behave alike are one
//! phase. A sequence says when each phase was executed, and a [`Continuation`] extends it beyond the recorded
//! end. Windows of instruction traces are stored separately ([`trace`]).
//!
//! # Terms and units
//! *Instruction*: an instruction of the profiled machine language (x86-64). *Micro-operation*: what remains when
//! loads and stores are split from computation. *Stream*: the data accesses, or the fetches of instruction lines,
//! of one thread. *Reuse time*: accesses of the same stream from one access to a line until the next one to it,
//! that one counted, so at least 1. *Cold*: the first access to a line. *Line number*: virtual address / 64.
//! *Super-set*: one of 32 contiguous groups of sets of a cache.
//!
//! # Properties
//! - Survival falls from 1 to the share of cold accesses, and its integral is the mean of reuse times cut at t
//!   (`survival_falls_from_one_to_the_share_of_cold_accesses`, `the_integral_is_the_mean_of_times_cut_at_t`).
//! - A larger cache never misses more (`a_larger_cache_never_misses_more`).
//! - What is written is read back equal; anything else is refused without a panic (`profiles_round_trip`,
//!   `any_bytes_are_refused`, `damage_anywhere_is_reported`).
//! - Equal intervals give equal profiles, in which every interval is in exactly one phase
//!   (`intervals_that_behave_alike_become_one_phase_with_their_sum`, `every_interval_is_in_exactly_one_group`).
//! - A continuation has no period of the recording's length and keeps the shares of the phases
//!   (`the_continuation_has_no_period_of_the_recordings_length`, `shares_of_phases_stay_as_recorded`).

mod bins;
mod branches;
pub mod capture;
mod code_sketch;
mod continuation;
mod format;
mod microtrace;
mod mix;
pub mod observe;
mod phase;
pub mod predict;
mod profile;
pub mod raw;
mod reuse;
mod stored;
mod super_sets;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
pub mod trace;
pub mod vectors;

pub use bins::ReuseBin;
pub use branches::{Branches, PREDICTOR_CONFIGS, PREDICTORS, Prediction, PredictorConfig};
pub use code_sketch::CodeSketch;
pub use continuation::Continuation;
pub use format::{LONGEST_FILE, ProfileError, VERSION, from_bytes, to_bytes};
pub use microtrace::{Access, MicroOp, MicroTrace};
pub use mix::{Mix, OpClass};
pub use phase::{FEWEST_TRACES, Footprint, Phase, Reuse};
pub use profile::{Profile, Span, Thread};
pub use reuse::{ReuseCurve, ReuseHistogram};
pub use stored::{FromStore, Operand, Stores};
pub use super_sets::{SUPER_SET_CACHES, SUPER_SETS, Stream, SuperSetMap};
