//! Experiments on the real machine that measure the same cells in every round.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Machine, run, scratch};
use symbiont_campaign::{
    Error, Experiment, FinishedRun, FinishedRunOf, InRound, Progress, Repeats, Rounds, carry_out,
    make_folder,
};
use symbiont_report::Report;

/// How often a run is tried: another manager may hold the lock, or the machine may stand still for longer
/// than a run may take.
pub const ATTEMPTS: u32 = 3;

/// What one cell of an experiment is, and how it is measured.
pub trait Measure: Sync {
    /// What differs between runs of a round.
    type Cell: Clone + Display + Serialize + DeserializeOwned + Send + Sync;
    /// What a run gives.
    type Record: Clone + Serialize + DeserializeOwned + Send + Sync;

    /// The name of the experiment and of its file.
    const NAME: &'static str;

    /// The cells of each round.
    fn cells(&self) -> Vec<Self::Cell>;

    /// The options that records depend on.
    fn options(&self) -> String;

    /// Is the outcome decided, so that no more rounds are needed?
    fn decided(&self, _: &[MeasuredRun<Self>]) -> bool {
        false
    }

    /// Carries out one run.
    fn measure(
        &self,
        run: &InRound<Self::Cell>,
        place: &RunFolder<'_>,
    ) -> Result<Self::Record, Error>;

    /// About how long a run takes.
    fn cost(&self, cell: &Self::Cell) -> Duration;
}

/// A finished run of an experiment.
pub type MeasuredRun<M> = FinishedRun<InRound<<M as Measure>::Cell>, <M as Measure>::Record>;

/// Where one run is carried out.
pub struct RunFolder<'a> {
    /// The machine.
    pub machine: &'a Machine,
    folder: &'a Path,
    stop: &'a AtomicBool,
}

impl RunFolder<'_> {
    /// A file of this run; it is removed when the run has ended.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of this run; it is removed when the run has ended.
    pub fn folder(&self) -> &Path {
        self.folder
    }

    /// Shall the run end early?
    pub fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs a program, whose standard output goes to a file.
    pub fn run(&self, words: &[String], output: &Path, limit: Duration) -> Result<Duration, Error> {
        run(words, output, &self.file("stderr"), limit, &|| self.cancelled())
    }
}

/// This machine, and the folder in which an experiment keeps its runs and its report.
#[derive(Debug, Clone)]
pub struct Site {
    /// The folder.
    pub folder: PathBuf,
    /// The machine.
    pub machine: Machine,
    /// Rounds, and their order.
    pub rounds: Rounds,
}

impl Site {
    /// Reads the machine, and creates the folder if need be.
    pub fn new(output: &Path, repeats: Repeats, seed: u64) -> Result<Self, Error> {
        make_folder(output)?;
        let folder = std::fs::canonicalize(output).map_err(Error::io(output))?;
        let machine = Machine::measured_in(&folder)?;
        Ok(Self { folder, machine, rounds: Rounds { repeats, seed } })
    }

    /// Carries out all runs that are not kept yet, one after the other, and gives all, round by round.
    pub fn carry_out<M: Measure>(
        &self,
        measure: &M,
        progress: &mut dyn Progress,
    ) -> Result<Vec<MeasuredRun<M>>, Error> {
        carry_out(&Here { measure, site: self }, &self.folder, 1, progress)
    }

    /// Adds what each report of a measurement here says, and writes it.
    pub fn write(&self, report: &mut Report) -> Result<(), Error> {
        let own = std::mem::replace(&mut report.facts, self.machine.facts());
        report.facts.extend(own);
        report.fact("Seed", self.rounds.seed.to_string());
        report.fact("Version", env!("CARGO_PKG_VERSION"));
        report.write(&self.folder)?;
        Ok(())
    }
}

/// An experiment on this machine.
struct Here<'a, M> {
    measure: &'a M,
    site: &'a Site,
}

impl<M: Measure> Experiment for Here<'_, M> {
    type Run = InRound<M::Cell>;
    type Record = M::Record;

    fn name(&self) -> String {
        M::NAME.to_owned()
    }

    fn basis(&self, _: &Self::Run) -> String {
        self.site.machine.basis(&[&self.site.rounds.seed.to_string(), &self.measure.options()])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<Self::Run> {
        let decided = || self.measure.decided(done);
        self.site.rounds.next(&self.measure.cells(), done.len(), decided)
    }

    fn carry_out(&self, run: &Self::Run, stop: &AtomicBool) -> Result<M::Record, Error> {
        let folder = scratch(&self.site.folder)?;
        let place = RunFolder { machine: &self.site.machine, folder: folder.path(), stop };
        self.measure.measure(run, &place)
    }

    fn cost(&self, run: &Self::Run) -> Duration {
        self.measure.cost(&run.cell)
    }

    fn attempts(&self) -> u32 {
        ATTEMPTS
    }
}
