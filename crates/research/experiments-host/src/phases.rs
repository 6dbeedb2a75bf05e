//! The experiment `symbiont bench phases`: serial phases first against the OS.
//!
//! # Problem
//! Morad et al. predict (section 5) and measure (section 7) what a scheduler
//! gains that gives the serial phases of programs a core of their own. Does
//! that hold on this machine, with this kernel, from user space?
//!
//! # Approach
//! Pairs of the synthetic benchmark run side by side under each policy, by the
//! product's own command line, and so does a pair of real programs ([`real`]).
//! [`mod@plan`] lists the runs, [`run`] carries them out, [`mod@evaluate`] turns them into [`figures`],
//! [`page`] these into a report.
//!
//! What makes the comparison fair:
//! - Policies are interleaved: each round holds each alone run and each policy and grouping of each cell
//!   once, in random order, so that slow changes of the machine hit all alike.
//! - In one round a cell has the same seeds under all policies and groupings.
//! - Phase lengths are fixed work, from one calibration before the first run.
//! - Both programs start at one time of day, each at a random moment of its first cycle of phases, and run
//!   equally long. One that is ready too late fails the run, which is repeated with more time.
//! - `stay` runs under the same manager, at its own quantum. Runs alone are not managed: what managing
//!   costs is in every speedup.
//! - All programs in one session, or each in its own: Linux shares CPU time between sessions first.
//!
//! # Terms and units
//! *Cell*: two programs side by side. *Performance* of a program: its progress, serial iterations plus
//! parallel ones divided by n, per second ([`symbiont_synth::Report::progress_per_s`]). *Speedup*: mean
//! performance side by side over that alone (eq. 3). *Throughput*: iterations per second of both programs
//! together, in units of what one thread does on the idle machine, so at most n. *Fairness*: eq. 4 of the
//! mean speedups. *Jitter*: eq. 6 over the inverse of performances.
//!
//! # Properties
//! - A round holds each run once (`a_round_holds_each_run_once`); parts that are not asked for are left
//!   out (`parts_that_are_not_asked_for_are_left_out`).
//! - Policies meet the same programs (`policies_meet_the_same_programs`).
//! - A seed fixes the plan (`a_seed_fixes_the_plan`).
//! - An interrupted campaign goes on where it stopped
//!   (`an_interrupted_campaign_goes_on_where_it_stopped`).
//! - Verdicts follow from the runs alone (`verdicts_follow_the_runs`).

mod campaign;
pub mod checks;
pub(crate) mod command;
pub mod evaluate;
pub mod figures;
pub mod managers;
pub mod page;
pub mod plan;
pub mod prediction;
pub mod real;
mod record;
mod sentence;

pub use campaign::{Outcome, PhasesOptions, carry_out, run};
pub use evaluate::evaluate;
pub use figures::Evaluation;
pub use plan::{Grouping, Part, PhasesRun, PhasesSize, RunKind, SyntheticProgram, plan};
pub use prediction::Cpus;
pub use record::PhasesRecord;
pub use sentence::sentence;

#[cfg(test)]
mod tests;
