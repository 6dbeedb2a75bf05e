//! Rounds of cells that are measured by anything, within a time.
//!
//! An interrupted campaign goes on where it stopped. What counts of it are whole rounds: so each cell is measured
//! equally often whenever it ends, by the user or since its time is over.

use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::harness::ATTEMPTS;
use serde::Serialize;
use serde::de::DeserializeOwned;
use symbiont_campaign::{
    Error, Experiment, FinishedRun, FinishedRunOf, InRound, Progress, Repeats, Rounds, carry_out,
};

use super::evaluate::Speeds;

/// What measures cells: a machine, or what stands in for one.
pub trait Bench: Sync {
    /// What is measured at once.
    type Cell: Clone + Display + Serialize + DeserializeOwned + Send + Sync;

    /// The name of the file of finished runs.
    fn name(&self) -> String;

    /// A digest of all that a cell's speeds follow from.
    fn basis(&self, cell: &Self::Cell) -> String;

    /// Measures a cell; `stop` asks to end early.
    ///
    /// # Errors
    /// When it fails or was stopped.
    fn measure(&self, cell: &Self::Cell, stop: &AtomicBool) -> Result<Speeds, Error>;

    /// About how long a cell takes.
    fn cost(&self, cell: &Self::Cell) -> Duration;
}

/// Whole rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Even<Cell> {
    /// Their measurements, round by round.
    pub done: Vec<FinishedRun<InRound<Cell>, Speeds>>,
    /// How many rounds there are.
    pub rounds: u32,
    /// How many were to be.
    pub planned: u32,
}

/// When and in what order.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Rounds, each in an order of its own.
    pub rounds: u32,
    /// Seed of the orders.
    pub seed: u64,
    /// When it ends at the latest.
    pub deadline: Instant,
    /// Does nothing follow, so that it is said where all was done before?
    pub last: bool,
}

/// Measures what is not kept in the folder yet, and gives all whole rounds.
///
/// # Errors
/// When a measurement fails or the folder cannot be used; when it ended before the first round was whole.
pub fn measure_evenly<B: Bench>(
    bench: &B,
    cells: &[B::Cell],
    bounds: Bounds,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<Even<B::Cell>, Error> {
    let Bounds { rounds: planned, seed, deadline, last } = bounds;
    let campaign = |rounds, measures| {
        let rounds = Rounds { repeats: Repeats::exactly(rounds), seed };
        Campaign { bench, cells, rounds, measures }
    };
    let even = |done, rounds| Even { done, rounds, planned };
    let stopped = match carry_out(
        &campaign(planned, true),
        folder,
        1,
        &mut Within { progress, deadline, last },
    ) {
        Err(stopped @ Error::Cancelled) => stopped,
        other => return Ok(even(other?, planned)),
    };
    for rounds in (1..planned).rev() {
        if let Ok(done) = carry_out(&campaign(rounds, false), folder, 1, &mut ()) {
            return Ok(even(done, rounds));
        }
    }
    Err(stopped)
}

struct Campaign<'a, B: Bench> {
    bench: &'a B,
    cells: &'a [B::Cell],
    rounds: Rounds,
    /// Or is only what is kept wanted?
    measures: bool,
}

impl<B: Bench> Experiment for Campaign<'_, B> {
    type Run = InRound<B::Cell>;
    type Record = Speeds;

    fn name(&self) -> String {
        self.bench.name()
    }

    fn basis(&self, run: &Self::Run) -> String {
        self.bench.basis(&run.cell)
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<Self::Run> {
        self.rounds.next(self.cells, done.len(), || false)
    }

    fn carry_out(&self, run: &Self::Run, stop: &AtomicBool) -> Result<Speeds, Error> {
        if self.measures { self.bench.measure(&run.cell, stop) } else { Err(Error::Cancelled) }
    }

    fn cost(&self, run: &Self::Run) -> Duration {
        self.bench.cost(&run.cell)
    }

    fn attempts(&self) -> u32 {
        ATTEMPTS
    }
}

/// Progress of what ends at a deadline.
struct Within<'a> {
    progress: &'a mut dyn Progress,
    deadline: Instant,
    last: bool,
}

impl Progress for Within<'_> {
    fn begin(&mut self, runs: usize, done: Option<usize>, estimate: Duration) {
        if self.last || done != Some(runs) {
            self.progress.begin(runs, done, estimate);
        }
    }

    fn running(&mut self, what: &str) {
        self.progress.running(what);
    }

    fn done(&mut self) {
        self.progress.done();
    }

    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }

    fn cancelled(&self) -> bool {
        self.progress.cancelled() || Instant::now() >= self.deadline
    }
}
