//! What Morad et al. measured on eight cores, on simulated ones.
//!
//! # Problem
//! The published gains of serial phases first (sections 5 to 7) are of eight
//! cores, alike and not. Few users that try the policy have such a machine at hand, and
//! on two cores most of the effects cannot show.
//!
//! # Approach
//! The simulated machines `morad-8-symmetric` and `morad-8-asymmetric` (a = 2) run
//! the paper's synthetic benchmark: serial and parallel phases of a calculation
//! that fits into the cache, under `stay` (which leaves all to the simulated OS)
//! and under `phases`, on an OS as the paper's and on one of today ([`SYSTEMS`]).
//!
//! | part | as in the paper | runs |
//! |---|---|---|
//! | [`Part::Cores`] | Fig. 6 and 7 | (∞:1) co-running with (1:∞) on the first n cores |
//! | [`Part::Matrix`] | Tables 4 and 5, Fig. 8, idle time | all pairs of nine ratios |
//!
//! As in the paper each run starts with all threads on cores drawn at random, from
//! where the OS's balancing takes them on; a while passes before anything is
//! measured. In one round all contenders meet the same programs and seeds.
//!
//! # Terms and units
//! *Performance* of a program: instructions per time, in units of one thread on a
//! small core (section 5). *Gain*: throughput over that under `stay`, less 1. *Idle*: share of the
//! cores' time in which they ran nothing. Intervals: rounds drawn anew (percentile bootstrap).
//!
//! # Properties
//! - Equal seeds give equal results (`equal_seeds_give_equal_records`).
//! - A round holds each run once, and all contenders meet the same
//!   (`contenders_meet_the_same_runs`).
//! - Serial phases first gains and idles less
//!   (`serial_phases_first_gain_on_eight_simulated_cores`); where no phase is ever
//!   serial there is nothing to gain (`without_serial_phases_there_is_no_gain`).

mod carry_out;
mod evaluate;
mod plan;
#[cfg(test)]
mod tests;

pub use carry_out::{CalibratedMachine, PhasesRecord, stages};
pub use evaluate::{Figure, Pair, Runs};
pub use plan::{
    BASELINE, CONTENDERS, CORES, MACHINES, Part, RunKind, SYSTEMS, SimulatedPhasesRun,
    SimulatedPhasesSize, plan,
};
