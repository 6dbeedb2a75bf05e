//! The loop: sample, characterise, decide, plan, apply, record.
//!
//! # Problem
//! Policies and the planner are functions, machines only measure and act. The loop connects them,
//! although threads and CPUs change between a sample and the moves made from it.
//!
//! # Approach
//! [`Controller::step`] does one round; [`Controller::run`] repeats it and passes each [`Step`] to the
//! caller, which may record it, report it, or end the loop. A setting counts as applied when the
//! machine reported that it carried it out. A move may fail, which is counted in the [`Tally`]:
//!
//! - *Gone*: the thread is forgotten.
//! - *Externally changed*: another process changed the setting, which is left alone from then on.
//! - *Refused*: the setting is not tried again for 2, 4, 8, … up to 64 quanta, doubled with each refusal
//!   in a row; a success starts over.
//! - *Lapsed*: found to be applied no more without a move; noted before the policy decides.
//! - *Not enforced*: the machine does not act. Nothing is applied.
//!
//! If the machine fails as a whole for a moment, applied settings stay and the next quantum tries again,
//! as many times in a row as the caller tolerates. Programs run on while a decision is taken:
//! [`Deciding`] says where. [`Summary`] adds up where each program ran, with which co-runners, and why.
//! When a process replaces its program (exec), the thread that lives on is a new one without settings.
//!
//! # Terms and units
//! *Step*: one round of the loop, once per quantum. The first step has no characterizations.
//!
//! # Properties
//! - Applied settings are those of the last successful moves (`what_is_applied_is_what_was_done`).
//! - A machine that cannot measure what the policy needs is refused
//!   (`a_missing_signal_is_reported_before_anything_is_done`).
//! - Memory is kept for living threads only (`nothing_is_kept_of_threads_that_are_gone`).
//! - A reserved core is left during a decision (`a_reserved_core_is_left_while_it_is_decided`).
//! - A failure is tolerated (`a_failure_of_the_machine_is_passed_over_and_many_in_a_row_end_the_loop`).
//! - Threads of offline CPUs are placed on others (`threads_of_an_offline_cpu_are_placed_on_the_others`).
//! - An external change is noticed without a move and counted once
//!   (`a_change_from_outside_is_noticed_without_a_move_and_counted_once`).
//! - Releasing leaves nothing applied (`release_undoes_everything`).

mod applied;
mod controller;
mod deciding;
mod holding;
mod step;
mod summary;
mod tally;

pub use controller::{ControlError, Controller};
pub use deciding::Deciding;
pub use holding::Holding;
pub use step::Step;
pub use summary::{
    CoRunner, CoRunners, CpuShare, PredictedSlowdown, ProgramSummary, ReasonCount, Summary,
    SummaryReport, ThreadSummary,
};
pub use tally::Tally;
