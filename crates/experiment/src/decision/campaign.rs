//! Carries out the experiment.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::evaluate::evaluate;
use super::measure::Known;
use super::page;
use super::plan::{self, Load, Run, Size};
use crate::harness::{self, Error, Journal, Machine, Progress};
use crate::report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// One finished run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: Run,
    /// Wall time of each decision; the first one found no groups.
    pub times_ms: Vec<f64>,
}

/// What stays the same, also when the experiment is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    machine: Machine,
}

/// The experiment over an output folder, which holds `campaign.json` (the
/// setting), `runs.jsonl` (a line for each finished run) and the report.
#[derive(Debug)]
pub struct Campaign;

impl Campaign {
    /// Carries out all runs that are not done yet, then evaluates all of them
    /// and writes the report.
    ///
    /// # Errors
    /// When a run fails, the folder cannot be used, or the campaign is
    /// cancelled; finished runs are kept in each case.
    pub fn run(options: &Options, progress: &mut dyn Progress) -> Result<Report, Error> {
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let setting = setting(options, folder)?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let all = plan::plan(&setting.size, setting.seed);
        let done = |run: &&Run| records.iter().any(|record: &Record| record.run == **run);
        let left: Vec<&Run> = all.iter().filter(|run| !done(run)).collect();
        if !left.is_empty() {
            harness::same_kernel(folder, &setting.machine)?;
        }
        progress.begin(all.len(), all.len() - left.len(), plan::estimate(left.iter().copied()));
        let mut known = Known::new()?;
        for run in left {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            progress.running(&run.load.to_string());
            let times_ms = known.measure(run.load, run.quanta)?;
            let record = Record { run: run.clone(), times_ms };
            journal.append(&record)?;
            records.push(record);
            progress.done();
        }
        let mut report = page::page(&evaluate(&records)?);
        report.facts = setting.machine.facts();
        let Size { rounds, quanta } = &setting.size;
        let loads = Load::all().len();
        report.fact("Runs", format!("{rounds} rounds of {loads} loads, {quanta} decisions each"));
        report.fact("Seed", setting.seed.to_string());
        report.fact("Version", env!("CARGO_PKG_VERSION"));
        report.write(folder)?;
        Ok(report)
    }
}

fn setting(options: &Options, folder: &Path) -> Result<Setting, Error> {
    let new = Setting { size: options.size.clone(), seed: options.seed, machine: Machine::read() };
    let same = |kept: &Setting| {
        (&kept.size, kept.seed, kept.machine.cpus) == (&new.size, new.seed, new.machine.cpus)
    };
    harness::keep(folder, same, || Ok(new.clone()))
}
