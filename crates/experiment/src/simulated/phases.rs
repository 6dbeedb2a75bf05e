//! The experiment `symbiont bench simulated-phases`: what Morad et al. measured
//! on eight cores, on simulated ones.
//!
//! # Problem
//! The published gains of serial phases first (sections 5 to 7) are of eight
//! cores, alike and not. Few who try the policy have such a machine at hand, and
//! on two cores most of the effects cannot show.
//!
//! # Approach
//! The simulated machines `morad-8-symmetric` and `morad-8-asymmetric` (a = 2) run
//! the paper's synthetic benchmark: serial and parallel phases of a calculation
//! that fits into the cache, under `stay` (which leaves all to the simulated OS)
//! and under `phases`.
//!
//! | part | as in the paper | runs |
//! |---|---|---|
//! | [`Part::Cores`] | Fig. 6 and 7 | (∞:1) beside (1:∞) on the first n cores |
//! | [`Part::Matrix`] | Tables 4 and 5, Fig. 8, idle time | all pairs of nine ratios |
//! | [`Part::Orders`] | Fig. 5, eq. 5 | both orders of two programs, to their end |
//!
//! As in the paper each run starts with all threads on cores drawn at random, from
//! where the OS's balancing takes them on; a while passes before anything is
//! measured. In one round both policies meet the same programs and seeds.
//!
//! Unlike the paper: the simulated OS gives a lone thread the large core, where the
//! model, and perhaps Linux 2.6, takes any core as likely; and phases are drawn by
//! the length of a cycle, as our benchmark draws them ([`symbiont_synth`]), since the
//! paper does not print its lengths.
//!
//! # Terms and units
//! *Performance* of a program: instructions per time, in units of one thread on a
//! small core (section 5). *Gain*: throughput under `phases` over that under
//! `stay`, less 1. *Idle*: share of the cores' time in which they ran nobody.
//! Speedup, fairness and jitter as in [`crate::metrics`]; fairness of the mean speedups,
//! and the mean of that of single runs. Intervals: rounds drawn anew (percentile bootstrap).
//! Fairness of the mean speedups rises in some pairs and falls in others by Tables 1 and 3
//! alone, as it does in the paper's Table 7: it is held against what they say of each
//! pair ([`Predicted`]), once as they stand and once with the seniority boost, which they
//! do not know. A pair that goes against them is named with its *departures*: by how much
//! fairness under `stay` differs from Table 1, and that under `phases` from Table 3. Table 1
//! takes all placements as equally likely, so that a serial thread beside a parallel program
//! shares its core with probability 2/(n+1); how often it did is counted (`sharing`), and what
//! Table 1 says with that stands beside. Pairs that lose throughput are named, too.
//!
//! # Properties
//! - Equal seeds give equal results (`equal_seeds_give_equal_records`).
//! - A round holds each run once, and both policies meet the same
//!   (`policies_meet_the_same_runs`).
//! - Serial phases first gains and idles less
//!   (`serial_phases_first_gain_on_eight_simulated_cores`); where no phase is ever
//!   serial there is nothing to gain (`without_serial_phases_there_is_no_gain`).
//! - A pair whose fairness goes against the tables, or that gets slower, is named
//!   (`pairs_against_what_is_told_are_named_with_the_side_that_departs`,
//!   `pairs_that_get_slower_are_named`).

mod campaign;
mod carry_out;
mod checks;
mod evaluate;
mod page;
mod plan;
mod sharing;
#[cfg(test)]
mod tests;

pub use campaign::{Campaign, Options};
pub use carry_out::{Record, Stage, Timed};
pub use evaluate::{Cell, Evaluation, Matrix, Ordered, Point, Predicted, Shared, evaluate};
pub use page::page;
pub use plan::{MACHINES, Part, Run, Size, What, plan};
