//! The moves that lead from the applied placement to the one that a policy decided.
//!
//! # Problem
//! A policy may ask for anything. Each move costs time, and no thread may run beyond what its user and the
//! cpuset allow.
//!
//! # Approach
//! [`Planner::plan`] compares the wanted placement with the applied one and gives the differences as moves, each
//! legal by the sample it was made from. A difference that may not be made now is withheld, with the reason.
//!
//! - A thread is *held* on its target by a mask that stays, or *nudged* there: by a move that leaves its mask
//!   as it is, and is made again at each plan that finds it running elsewhere. One that runs there already is
//!   not moved, nor is one that sleeps: it would wake where it was.
//! - A target is cut down to the online part of the thread's allowed CPUs. If nothing is left, the
//!   move is withheld. If all of them are left, the target means: leave the thread to the OS.
//! - An unsettled thread is not moved to where it could not be before. If its children would
//!   inherit it, its urgency does not change either ([`Lifecycle`](symbiont_machine::Lifecycle)).
//! - *Releases* (back to the OS, back to normal priority) are always made.
//! - All else is subject to [`Bounds`]; settings whose last move is longest ago go first, so that a
//!   small budget starves no thread.
//! - A setting that the machine does not support, and a [`Barred`] one, is left alone.
//!
//! Moves are ordered so that room is made before it is taken: first releases, then masks with the widest
//! first, then all nudges in a row, then priorities.
//!
//! # Terms and units
//! *Setting*: what a move changes, affinity or priority; each has its own history. *Hold* is counted
//! in plans (one per quantum).
//!
//! # Properties
//! - A move names an enrolled thread; its target is a non-empty part of the online allowed CPUs
//!   (`moves_are_legal`).
//! - Releases apart, there are never more moves than the budget (`the_budget_is_kept`).
//! - Planning again after a plan was carried out gives no moves (`a_plan_carried_out_is_not_planned_again`).
//! - Moves and withheld moves are all differences (`moves_and_withheld_moves_cover_all_differences`).
//! - Releasing undoes all that is applied (`a_release_undoes_all_that_is_applied`).
//! - A nudge is made once, and again when its thread has left
//!   (`a_thread_is_nudged_to_its_target_and_again_when_it_has_left`).
//! - A machine that keeps threads on their targets by itself gets no nudges
//!   (`a_machine_that_keeps_threads_by_itself_is_asked_for_no_nudges`).
//! - A mask that is gone is undone, and no other (`a_target_of_which_nothing_is_left_is_undone`).
//! - With a budget, all get their turn (`a_small_budget_starves_no_thread`).

mod bounds;
mod plan;

pub use bounds::Bounds;
pub use plan::{
    Barred, Plan, Planner, Setting, Situation, Why, Withheld, release, release_stranded,
};

#[cfg(test)]
mod tests;
