//! Training: runs that tell how threads on one core slow each other down, and
//! the interference model fitted on them.
//!
//! # Problem
//! The model's coefficients hold for one machine and one way of reading its
//! counters, so each machine is trained once, from scratch.
//!
//! # Approach
//! Feliu et al., section 3.2. On one core, quantum by quantum: each program
//! alone, isolated; each alone, throttled to each SMT mode; all pairs, programs
//! beside themselves included; a sample of groups of four ([`plan`]). Counts
//! are read through the same seam as a policy's, so errors of counters are in
//! them ([`watch`]); of runs alone five times as often, since phases may be shorter than a
//! quantum. [`evaluate`] sets each quantum of a group against the
//! same instructions alone, fits, and cross-validates on programs left out.
//!
//! The model is made of the catalogue's coarse stack or of its fine one
//! ([`Depth`](symbiont_model::Depth)), and says which; the policy asks for the same.
//!
//! A [`Site`] carries the runs out. On the simulated machine a core is
//! throttled by setting it up for more threads than run ([`simulated`]). On
//! Linux, programs share their core with processes that execute nothing but
//! no-operations ([`real`]). What these cost beyond the SMT mode is measured where the two can be
//! told apart, which is on the simulated machine.
//!
//! A scheduler has no stacks measured alone; what is captured of the headroom is reported for profiled
//! stacks, for those that the inverse makes of SMT stacks, and for these as they are ([`Stacks`]).
//!
//! What was kept of a training gives models without any programs that are named ([`LeftOut`]): to
//! evaluate policies with programs that their model does not know.
//!
//! [`observe`] carries the runs out ([`symbiont_campaign`]) and goes on where it stopped; [`judge`] fits and
//! evaluates. [`train`] does both, and writes `model.toml`, `slowdowns.json` (mean slowdowns of pairs, for
//! the oracle) and a report beside the finished runs (`training.jsonl`).
//!
//! # Terms and units
//! *Width*: threads of a group, and with it the SMT mode. Quanta are 100 ms
//! unless asked otherwise. CPI in cycles per instruction.
//!
//! # Properties
//! - The model fits the machine that it was trained on and no other; an
//!   interrupted training goes on, with the same result
//!   (`training_gives_a_model_that_fits_and_goes_on_where_it_stopped`).
//! - The same instructions are compared, through changes of phase and past the end of what was
//!   recorded (`programs_that_change_their_phases_are_set_against_themselves`).
//! - No-operations cost programs less than other programs do
//!   (`what_no_operations_cost_is_measured_and_told`).
//! - Programs too few to judge a model by are told before anything runs
//!   (`too_few_programs_are_refused_before_anything_runs`).
//! - Equal seeds plan equal runs; each pair is there once
//!   (`each_pair_is_planned_once`).
//! - Each sort of core has a model of its own, by which threads on it are grouped
//!   (`each_sort_of_core_is_trained_and_scheduled_by_its_own_model`).

mod campaign;
mod evaluate;
mod gains;
mod groups;
mod heat;
#[cfg(test)]
mod hybrid_tests;
mod left_out;
#[cfg(test)]
pub mod made_up;
mod page;
mod plan;
pub mod real;
pub mod simulated;
#[cfg(test)]
mod tests;
mod watch;

pub use campaign::{Options, Site, judge, observe, train};
pub use evaluate::{Evaluated, Evaluation, evaluate};
pub use gains::{Captured, Stacks};
pub use groups::{Throughputs, explore};
pub use left_out::{LeftOut, Models};
pub use plan::{Run, Size, plan};
pub use watch::{Ran, watch};
