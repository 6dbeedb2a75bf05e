//! One form for all experiments: what runs, what one run gives, and when there is enough of it.
//!
//! # Problem
//! Experiments differ in what they run. They should not differ in how they go on after an interruption,
//! use the CPUs, repeat until a figure is decided, and compare; and changing one machine should not run
//! again what does not depend on it.
//!
//! # Approach
//! An [`Experiment`] is asked for its next runs, given all that is finished ([`Experiment::next`]), until
//! there are none. [`carry_out`] is the only loop: simulated runs go to several workers, runs on the real
//! machine to one. Each record is kept under a key: the SHA-256 of the experiment's name, of the run and of
//! all else that the record follows from ([`Experiment::basis`]). So an interrupted experiment goes on where
//! it stopped, and a run is repeated only if something changed that it depends on.
//!
//! Decisions depend on finished rounds alone, and records pass through their written form before anything
//! uses them. So the same runs are chosen, with the same figures, however often it was interrupted.
//!
//! [`Row`]s are what comparisons are made of: metrics of a contender in a repeat of a workload. Contenders
//! of one repeat ran the same programs from the same starts, so that gains are paired ([`Rows::gain`]).
//!
//! # Terms and units
//! *Run*: one measurement. *Round*: the runs that are chosen at once. *Record*: what a run gave.
//! *Gain*: a metric over that of a baseline in the same repeat, minus 1. Intervals are 95 %.
//!
//! # Properties
//! - An experiment that is interrupted anywhere ends with the same records
//!   (`an_interrupted_experiment_ends_with_the_same_records`).
//! - What does not depend on a change is not run again
//!   (`only_what_depends_on_a_change_runs_again`).
//! - A run that fails is tried again as often as the experiment says
//!   (`a_run_that_fails_is_tried_again_a_few_times`).
//! - Repeats end when the interval decides, or at the cap (`repeats_end_when_the_interval_decides`).
//! - Equal contenders are rarely found different, and a difference of 5 % is mostly found
//!   (`equal_contenders_are_rarely_found_different`, `a_difference_of_five_percent_is_mostly_found`).

mod compare;
mod error;
mod journal;
mod progress;
mod repeats;
mod rounds;
mod runner;
mod store;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use compare::{Loser, Metric, Row, Rows};
pub use error::Error;
pub use journal::{Journal, make_folder, read_json};
pub use progress::Progress;
pub use repeats::{Decision, Repeats};
pub use rounds::{InRound, Rounds};
pub use runner::carry_out;
pub use store::digest;

/// Something that is measured run by run.
pub trait Experiment: Sync {
    /// What one run is.
    type Run: Clone + Display + Serialize + DeserializeOwned + Send + Sync;
    /// What one run gives.
    type Record: Clone + Serialize + DeserializeOwned + Send + Sync;

    /// Its name, which is also its file's: lower-case letters, digits and hyphens.
    fn name(&self) -> String;

    /// A digest of all that the record of a run follows from, but for the run itself: code,
    /// machine, programs, models.
    fn basis(&self, run: &Self::Run) -> String;

    /// The runs of the next round, given the finished ones in the order in which they were asked for;
    /// none: there is enough.
    fn next(&self, done: &[Done<Self>]) -> Vec<Self::Run>;

    /// Carries out a run; `stop` asks to end early.
    ///
    /// # Errors
    /// When the run fails or was stopped.
    fn carry_out(&self, run: &Self::Run, stop: &AtomicBool) -> Result<Self::Record, Error>;

    /// About how long a run takes on one CPU.
    fn cost(&self, run: &Self::Run) -> Duration;

    /// How often a run that fails is tried; more than once where it may fail for reasons of the moment.
    fn attempts(&self) -> u32 {
        1
    }
}

/// A run with what it gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<Run, Record> {
    /// What ran.
    pub run: Run,
    /// What it gave.
    pub record: Record,
}

/// A finished run of an experiment.
pub type Done<E> = Finished<<E as Experiment>::Run, <E as Experiment>::Record>;
