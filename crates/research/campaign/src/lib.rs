//! One form for all experiments: what runs, what one run gives, and when there is enough of it.
//!
//! # Problem
//! Experiments differ in what they run. How they resume after an interruption, use the CPUs, repeat until a
//! figure is decided and compare should be the same for all; and a change of one machine should not repeat
//! runs that do not depend on it.
//!
//! # Approach
//! [`carry_out`] is the only loop:
//!
//! ```text
//! while runs = experiment.next(finished) is not empty
//!     for each of the runs, by several workers if simulated, by one on the real machine
//!         record = kept[key(run)], or else carry the run out and keep its record
//!     finished += runs with their records, in the order in which they were asked for
//! ```
//!
//! Each record is kept under a key: the SHA-256 of the experiment's name, of the run and of
//! all else that the record follows from ([`Experiment::basis`]). So an interrupted experiment resumes where
//! it stopped, and a run is repeated only if something that it depends on has changed.
//!
//! Decisions depend on finished rounds alone, and records are written and read back before anything
//! uses them. So an experiment chooses the same runs and gives the same figures, however often it is interrupted.
//!
//! Comparisons are made of [`Row`]s: the metrics of a contender in one repeat of a workload. The contenders of a
//! repeat ran the same programs from the same starts, so that gains are paired ([`Rows::gain`]).
//!
//! # Terms and units
//! *Run*: one measurement. *Round*: the runs that are chosen at once. *Record*: what a run gave.
//! *Gain*: a metric over that of a baseline in the same repeat, minus 1. Intervals are 95 %.
//!
//! # Properties
//! - An experiment that is interrupted anywhere ends with the same records
//!   (`an_interrupted_experiment_ends_with_the_same_records`).
//! - What does not depend on a change is not run again (`only_what_depends_on_a_change_runs_again`).
//! - A run that fails is tried again as often as the experiment says (`a_run_that_fails_is_tried_again_a_few_times`).
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
    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<Self::Run>;

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
pub struct FinishedRun<Run, Record> {
    /// The run.
    pub run: Run,
    /// What it gave.
    pub record: Record,
}

/// A finished run of an experiment.
pub type FinishedRunOf<E> = FinishedRun<<E as Experiment>::Run, <E as Experiment>::Record>;
