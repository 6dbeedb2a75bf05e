//! Training: runs that show how threads on one core slow each other down, and the interference model fitted on
//! them.
//!
//! # Problem
//! The model's coefficients hold for one machine and one way of reading its counters, so each machine is
//! trained once, from scratch.
//!
//! # Approach
//! Feliu et al., section 3.2. On one core, quantum by quantum: each program alone, isolated; each alone,
//! throttled to each SMT mode; all pairs, each program with itself included; a sample of groups of four
//! ([`plan`]). Counts are read through the same seam as a policy's ([`watch`]), of runs alone five times as
//! often. [`evaluate`] sets each quantum of a group against the same instructions alone, fits, and
//! cross-validates on programs left out. The stack is coarse or fine ([`Depth`](symbiont_model::Depth)).
//!
//! A [`Site`] carries the runs out. On the simulated machine a core is throttled by setting it up for more
//! threads than run ([`simulated`]); on Linux, programs share their core with processes that execute nothing but
//! no-operations ([`real`]). What these cost beyond the SMT mode is measured on the simulated machine.
//!
//! What is captured of the headroom is reported for profiled stacks, for those that the inverse makes of SMT
//! stacks, and for these as they are ([`Stacks`]). What was kept of a training also gives models without any
//! programs that are named ([`LeftOut`]). [`observe`] carries the runs out ([`symbiont_campaign`]), [`judge`]
//! fits and evaluates, [`train`] does both and writes `model.toml`, `slowdowns.json` and a report.
//!
//! # Terms and units
//! *Width*: threads of a group, and with it the SMT mode. Quanta are 100 ms by default.
//!
//! # Properties
//! - An interrupted training goes on, with the same result
//!   (`training_gives_a_model_that_fits_and_goes_on_where_it_stopped`).
//! - The same instructions are compared, through changes of phase and past the end of what was
//!   recorded (`programs_that_change_their_phases_are_set_against_themselves`).
//! - No-operations cost less than programs do (`what_no_operations_cost_is_measured_and_reported`).
//! - Too few programs are reported first (`too_few_programs_are_refused_before_anything_runs`).
//! - Each pair is planned once (`each_pair_is_planned_once`); each core type has a model of its own
//!   (`each_core_type_is_trained_and_scheduled_by_its_own_model`).

mod campaign;
mod evaluate;
mod gains;
mod groups;
mod heat;
#[cfg(test)]
mod hybrid_tests;
mod left_out;
mod options;
mod page;
mod plan;
pub mod real;
pub mod simulated;
mod site;
#[cfg(test)]
pub mod synthetic;
#[cfg(test)]
mod tests;
mod watch;

pub use campaign::{judge, observe, train};
pub use evaluate::{Evaluation, TrainingResult, evaluate};
pub use gains::{CapturedGain, Stacks};
pub use groups::{Throughputs, explore};
pub use left_out::{LeftOut, Models};
pub use options::TrainingOptions;
pub use plan::{TrainingRun, TrainingSize, plan};
pub use site::Site;
pub use watch::{WatchedRun, watch};
