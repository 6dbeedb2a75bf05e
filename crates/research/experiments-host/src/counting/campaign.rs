//! Carries out the experiment.

use std::path::PathBuf;
use std::time::Duration;

use symbiont_linux::observe::raise_descriptor_limit;

use super::evaluate::evaluate;
use super::measure::{Costs, measure};
use super::page;
use super::plan::{Load, Size};
use symbiont_campaign::harness::{Error, Progress};
use symbiont_campaign::{InRound, Measure, Place, Repeats, Site};
use symbiont_report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct CountingOptions {
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// Carries out all runs that are not kept yet, evaluates all of them and writes the report.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept.
pub fn run(options: &CountingOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    if let Err(why) = raise_descriptor_limit() {
        progress.note(&format!("the limit of open files cannot be raised: {why}"));
    }
    let Size { rounds, quanta } = options.size;
    let site = Site::new(&options.output, Repeats::exactly(rounds), options.seed)?;
    let mut report = page::page(&evaluate(&site.carry_out(options, progress)?)?);
    let loads = Load::all().len();
    report.fact("Runs", format!("{rounds} rounds of {loads} loads, {quanta} quanta each"));
    site.write(&mut report)?;
    Ok(report)
}

impl Measure for CountingOptions {
    type Cell = Load;
    type Record = Costs;

    const NAME: &'static str = "counters";

    fn cells(&self) -> Vec<Load> {
        Load::all()
    }

    fn options(&self) -> String {
        self.size.quanta.to_string()
    }

    fn cost(&self, load: &Load) -> Duration {
        self.size.cost(*load)
    }

    fn measure(&self, run: &InRound<Load>, _: &Place<'_>) -> Result<Costs, Error> {
        measure(run.cell, self.size.quanta)
    }
}
