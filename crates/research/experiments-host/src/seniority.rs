//! The experiment `symbiont bench seniority`: turns of parallel programs, and that
//! no program starves.
//!
//! # Problem
//! Two programs that both want all of the machine only take it from each other; so
//! `phases` boosts one of them, and after a timeout the next (Morad et al., section 6).
//! Does the boost act, does it spare context switches, are the turns as long as they
//! should be, and does each program get on, also with a serial program without an end?
//!
//! # Approach
//! Programs that are parallel all the time, with as many threads as CPUs, run side by
//! side under `stay` and under `phases` with several timeouts, interleaved; each run
//! keeps a recording, from which all figures come ([`judge()`]). What counts is CPU time
//! as the scheduler accounts for it, so that the figures hold on a machine that has
//! other things to do as well. Context switches are the exception: what other sessions
//! run takes a CPU away after each of its slices, whichever program has it. Fewer switches
//! can show only on a quiet machine.
//!
//! The boost is a nice value, and nice values weigh threads of one session (autogroup)
//! only. So one session is where it has to act; with sessions of their own it
//! cannot, and must not harm.
//!
//! # Terms and units
//! *Holder*: the program that is boosted. *Share*: a program's part of the CPU time that
//! all of the run's parallel programs got meanwhile, 0 to 1; k programs have 1/k each
//! under `stay`. *Turn*: how long a program held the boost until the next one got it.
//! *Wait*: how long a program was without it, counting only time in which a program had
//! it. *Reaction*: from the decision that a program's turn has come until it got more
//! than half of a quantum's CPU time.
//!
//! # Properties
//! - Turns, waits and shares follow from the recording alone
//!   (`turns_waits_and_shares_follow_from_who_held_the_boost`).
//! - On a simulated machine each of three programs gets its turn for ten minutes, and
//!   an endless serial program stops no other program (`no_program_starves_on_a_simulated_machine`).
//! - A program that never gets on is found (`a_program_that_stands_still_is_found`).

mod campaign;
mod judge;
mod page;
mod plan;
mod record;
#[cfg(test)]
mod tests;

pub use campaign::{SeniorityOptions, run};
pub use judge::{Judged, Moment, Story, judge};
pub use plan::Size;
