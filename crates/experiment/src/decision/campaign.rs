//! Carries out the experiment.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::evaluate::evaluate;
use super::measure::FittedModels;
use super::page;
use super::plan::{Load, Size};
use symbiont_campaign::harness::{Error, Progress};
use symbiont_campaign::{InRound, Measure, Place, Repeats, Site};
use symbiont_report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct DecisionOptions {
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// Decisions are timed one after the other, by models that are fitted when they are needed.
struct Decisions<'a> {
    size: &'a Size,
    known: Mutex<FittedModels>,
}

/// Carries out all runs that are not kept yet, evaluates all of them and writes the report.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept.
pub fn run(options: &DecisionOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    let Size { rounds, quanta } = options.size;
    let site = Site::new(&options.output, Repeats::exactly(rounds), options.seed)?;
    let decisions = Decisions { size: &options.size, known: Mutex::new(FittedModels::new()?) };
    let mut report = page::page(&evaluate(&site.carry_out(&decisions, progress)?)?);
    let loads = Load::all().len();
    report.fact("Runs", format!("{rounds} rounds of {loads} loads, {quanta} decisions each"));
    site.write(&mut report)?;
    Ok(report)
}

impl Measure for Decisions<'_> {
    type Cell = Load;
    type Record = Vec<f64>;

    const NAME: &'static str = "decision";

    fn cells(&self) -> Vec<Load> {
        Load::all()
    }

    fn options(&self) -> String {
        self.size.quanta.to_string()
    }

    fn cost(&self, load: &Load) -> Duration {
        self.size.cost(*load)
    }

    fn measure(&self, run: &InRound<Load>, _: &Place<'_>) -> Result<Vec<f64>, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.measure(run.cell, self.size.quanta)
    }
}
