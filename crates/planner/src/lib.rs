//! From what a policy wants to the moves that may be made now.
//!
//! # Problem
//! A policy may ask for anything. Moving threads costs, moving them to and fro
//! costs without end, and a thread must never be let beyond what its user and
//! the cpuset allow.
//!
//! # Approach
//! [`Planner::plan`] compares the wanted placement with what is in force and
//! gives the differences as moves, each legal by the sample it was made from.
//! A difference that may not be made now is withheld, with the reason.
//!
//! - A target is cut down to the online part of the thread's limit. If nothing
//!   is left the move is withheld; where else the thread should go is not
//!   guessed. If all of the limit is left, the target is the same as leaving
//!   the thread to the OS.
//! - An unsettled thread is not moved to where it could not be before, nor, if
//!   its children would inherit that, made more or less urgent ([`Stage`](symbiont_machine::Stage)).
//! - *Releases* (back to the OS, back to normal priority) are always made.
//! - All else is subject to [`Bounds`]; those whose last move is longest ago
//!   go first, so that a small budget starves nobody.
//! - What the machine says it cannot do is not asked of it, and [`Barred`]
//!   settings, of which the caller knows better, are left alone.
//!
//! Moves are ordered so that room is made before it is taken: first releases,
//! then affinities with the widest target first (the many that share the rest
//! leave a core before the one that gets it arrives), then priorities.
//!
//! # Terms and units
//! *Setting*: what a move changes, affinity or priority; each has its own
//! history. *Hold* is counted in plans (one per quantum).
//!
//! # Properties
//! - Every move is legal: it names an enrolled thread, and its target is a
//!   non-empty part of the online limit (`moves_are_legal`).
//! - Releases apart, there are never more moves than the budget
//!   (`the_budget_is_kept`).
//! - Carrying out a plan and planning the same again gives no moves
//!   (`a_plan_carried_out_is_not_planned_again`).
//! - Moves and withheld moves are all the differences there are
//!   (`moves_and_withheld_moves_cover_all_differences`).
//! - Releasing what is in force leaves nothing in force
//!   (`a_release_takes_back_all_that_is_in_force`).
//! - A target that is gone is undone, and no other
//!   (`a_target_of_which_nothing_is_left_is_undone`).
//! - With a budget, all get their turn (`a_small_budget_starves_nobody`).

mod bounds;
mod plan;

pub use bounds::Bounds;
pub use plan::{
    Barred, Plan, Planner, Setting, Situation, Why, Withheld, release, release_stranded,
};

#[cfg(test)]
mod tests;
