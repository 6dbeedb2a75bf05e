//! The experiment `symbiont bench detection`: how rightly and how soon phases
//! are seen.
//!
//! # Problem
//! Serial phases can only be preferred while they are known. The manager reads
//! the scheduler's accounts once per quantum, so it is late by up to a quantum
//! and blind for shorter phases; the scheduler's tracepoints report each change at
//! once. How much of a program's time is it taken for what it is?
//!
//! # Approach
//! The synthetic benchmark alternates between serial and parallel phases (1:1)
//! of a mean length from 1 ms to 1 s and reports when each of them was. Meanwhile
//! the program is watched by
//! - the *manager* of `symbiont run` under `phases`, in a dry run, so that it
//!   changes nothing. Its recording shows what it took the program for. It looks
//!   once per quantum, or is also woken by tracepoints (`--see-by`).
//! - the *tracepoints alone*: [`symbiont_linux::switches`], in this process. What
//!   it had read at a moment is what it could have known then.
//!
//! Each length is tried alone, and co-running with a program that is parallel all the
//! time, which is when it matters.
//!
//! # Terms and units
//! *Right*: share of the true phases' time in which the program was taken for
//! what it was, 0 to 1. *Noticed*: share of the true changes after which the
//! reader changed its mind to the right phase before the next change.
//! *Reaction*: time from such a change until then; 0 for a reader that changed its
//! mind a little early. A reader that always says the same is right for about
//! half of the time and notices nothing.
//!
//! # Properties
//! - A reader that is late by a constant is right for the rest of each phase
//!   (`a_late_reader_is_right_for_the_rest_of_a_phase`).
//! - One that says always the same notices nothing
//!   (`who_always_says_the_same_notices_nothing`).

mod campaign;
mod judge;
mod page;
mod plan;
mod readers;

pub(crate) use campaign::Done;
pub use campaign::{DetectionOptions, run};
pub use judge::{Belief, Judged, judge};
pub use plan::Size;

#[cfg(test)]
mod tests;
