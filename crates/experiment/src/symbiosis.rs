//! Symbiotic scheduling against other policies, on a simulated machine.
//!
//! # Problem
//! A model that predicts well need not schedule well. What counts is the work
//! that whole workloads get done.
//!
//! # Approach
//! Feliu et al., sections 5 and 6. Workloads of two, then of four programs for
//! each core, drawn with a seed from real programs, run on cores 0 to c − 1,
//! for c from 4 to 10, under each policy, as [`crate::simulated`] does it: targets
//! from runs alone, whoever is ahead starts again, repeats from random starts. The
//! paper's 80 workloads of either kind do not divide by seven core counts: the first
//! three counts have 12 each, the others 11. All policies meet the same workloads,
//! so that gains over `random` are taken workload by workload.
//!
//! Headroom captured is Σ (STP − STP of random) / Σ (STP of the oracle − STP of
//! random) over workloads of two programs per core. Workloads share programs, and intervals respect
//! that ([`crate::stats::crossed`]).
//!
//! The model may know the programs, as in the paper; or each workload is predicted by a model that was
//! fitted without any of its programs ([`crate::training::LeftOut`]). Workloads of four programs on
//! many cores use so many of the programs that no such model is left; those are refused ([`check`]), so
//! that all policies meet the same workloads.
//!
//! Negative controls ([`Terms`]): some of the workloads also run with measurements exchanged between
//! programs, for good and anew each quantum, and with execution units and caches private to each thread.
//! What `symbiotic` gains over `random` must vanish there. Moves are free in all of these, and leave no
//! cold caches: `random` moves each quantum, and whoever does not would gain by that (0.35 % of STP for
//! two threads a core, with measurements exchanged anew each quantum).
//! A scheduler that remembers what came of its decisions is a search: whoever's a measurement is taken for,
//! all of them together still tell how good a placement was, and it gains by that. So with measurements
//! exchanged it recalls nothing, which controls what it predicts; what it remembers is controlled by private
//! units and caches, where placements are all the same but for the branch predictor and memory.
//!
//! Programs run on while a decision is taken (section 4.3). The same workloads are run with decisions
//! that take a millisecond, in which programs stay where they are, or are left to the OS on all cores but
//! one, as in the paper ([`Terms::Late`], [`Terms::Reserved`]).
//!
//! Section 5 of the paper leaves SMT8 out because the OS gained nothing by it. That is looked at too:
//! workloads of eight programs for each core, run by the simulated OS on all eight hardware threads
//! of each core, and in turns on four of them ([`Terms::Narrow`]).
//!
//! Nothing of this is measured on hardware.
//!
//! # Properties
//! - The workloads are divided as stated, the same for the same seed
//!   (`workloads_are_divided_as_stated`); controls have a baseline under the same terms
//!   (`controls_are_planned_with_their_baseline`); so have workloads of eight programs a core
//!   (`eight_programs_a_core_run_in_smt8_and_in_smt4`).
//! - Workloads that leave nothing to fit a model on are told before anything runs, unless no policy asks
//!   for one (`workloads_that_leave_no_model_are_refused_before_anything_runs`).
//! - An interrupted evaluation goes on where it stopped, and a short one runs
//!   from end to end (`a_short_evaluation_runs_and_goes_on`).

mod campaign;
mod checks;
mod evaluate;
mod left_out;
mod page;
mod plan;
#[cfg(test)]
mod tests;

pub use campaign::{Campaign, Options, Place, Record};
pub use evaluate::{Captured, Contrast, Control, Evaluation, Gain, Near, Wide, evaluate};
pub use left_out::{Lacking, NoModel, check};
pub use plan::{Case, DECISION, Run, Size, Terms, WIDE, plan};
