//! The loop: sample, characterise, decide, plan, apply, record.
//!
//! # Problem
//! Policies and the planner are functions, machines only measure and act.
//! Something must bring them together, and must cope with a world that changes
//! between a sample and the moves made from it.
//!
//! # Approach
//! [`Controller::step`] does one round; [`Controller::run`] repeats it and
//! hands each [`Step`] to the caller, who may record it, report it, or end the
//! loop. What is in force is what the machine said it carried out, nothing
//! else. A move may fail, which is counted in the [`Tally`]:
//!
//! - *Gone*: the thread is forgotten.
//! - *Foreign*: somebody else changed the setting; it is theirs from then on,
//!   for the life of the thread. It is not fought over.
//! - *Refused*: the setting is not tried again for 2, 4, 8, … up to 64 quanta,
//!   doubled with each refusal in a row; a success starts over.
//! - *Lapsed*: found without a move to be applied no more. It is booked like the move that would
//!   have undone it, before the policy decides.
//! - *Not enforced*: the machine does not act. Nothing is in force.
//!
//! A machine may fail as a whole, for a moment (no memory, no descriptors): what is in force stays
//! so, and the next quantum is another try, for as many times in a row as the caller tolerates.
//!
//! Programs run on while a decision is taken. [`Deciding`] says where: as they are, or under the OS
//! off a core that is reserved for it. What the policy sees is from before in both cases.
//!
//! [`Summary`] adds up, over all steps, where each program ran, with which co-runners, and why.
//!
//! When a process replaces its program (exec), the machine puts back what was
//! in force: the thread that lives on is a new one, with nothing in force.
//!
//! # Terms and units
//! *Step*: one round of the loop, once per quantum. The first step has no
//! characterizations, for there is nothing to compare its sample with.
//!
//! # Properties
//! - What is in force is what the last successful moves say
//!   (`what_is_in_force_is_what_was_done`).
//! - A machine that cannot measure what the policy needs is refused at once
//!   (`a_missing_signal_is_told_before_anything_is_done`).
//! - What is kept in memory belongs to living threads
//!   (`nothing_is_kept_of_threads_that_are_gone`).
//! - A reserved core is left while a decision is taken, and all are placed after it
//!   (`a_reserved_core_is_left_while_it_is_decided`).
//! - A failure is passed over, many in a row are not
//!   (`a_failure_of_the_machine_is_passed_over_and_many_in_a_row_end_the_loop`).
//! - Threads whose hardware threads went offline get their own setting back, and are placed on what is
//!   left (`threads_of_an_offline_cpu_are_placed_on_the_others`).
//! - What another process changed is noticed without a move, and counted once
//!   (`a_change_from_outside_is_noticed_without_a_move_and_counted_once`).
//! - Releasing leaves nothing in force (`release_puts_everything_back`).

mod controller;
mod deciding;
mod ledger;
mod summary;
mod tally;

pub use controller::{ControlError, Controller, Step};
pub use deciding::Deciding;
pub use summary::{
    CoRunner, CoRunners, CpuShare, PredictedSlowdown, ProgramSummary, ReasonCount, Summary,
    SummaryReport, ThreadSummary,
};
pub use tally::Tally;
