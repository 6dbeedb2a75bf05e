//! Carries out the experiment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use symbiont_profile::Profile;
use symbiont_sim::description::Description;

use super::carry_out::{Record, Stage};
use super::evaluate::evaluate;
use super::page::page;
use super::plan::{MACHINES, Run, Size, plan};
use crate::harness::{self, Error, Journal, Progress};
use crate::report::Report;
use crate::simulated::{Library, Provenance, Setup, SimulateError};

/// The calculation that the programs make: as in the paper, one that fits into
/// the cache.
const CALCULATION: &str = "synthetic-integer";
/// How often is looked whether the experiment is to stop.
const SLICE: Duration = Duration::from_millis(250);
/// Simulated seconds that a second of one processor brings, about.
const PACE: f64 = 60.0;

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Runs carried out at a time, at least one.
    pub workers: usize,
}

/// What stays the same, also when the experiment is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    version: String,
}

/// The experiment over an output folder, which holds `campaign.json` (the
/// setting), `runs.jsonl` (a line for each finished run) and the report.
#[derive(Debug)]
pub struct Campaign;

impl Campaign {
    /// Carries out all runs that are not done yet, then evaluates all of them and
    /// writes the report.
    ///
    /// # Errors
    /// When a run fails, the folder cannot be used, or the campaign is
    /// cancelled; finished runs are kept in each case.
    pub fn run(options: &Options, progress: &mut dyn Progress) -> Result<Report, Error> {
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        setting(options, folder)?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let all = plan(&options.size, options.seed);
        let done: BTreeSet<String> = records.iter().map(|record| record.run.id()).collect();
        let left: Vec<&Run> = all.iter().filter(|run| !done.contains(&run.id())).collect();
        let simulated: f64 = left.iter().map(|run| run.time.as_secs_f64()).sum();
        let seconds = simulated / PACE / options.workers.max(1) as f64;
        progress.begin(all.len(), all.len() - left.len(), Duration::from_secs_f64(seconds));
        let profile = Library::default().load(CALCULATION).map_err(no_result)?;
        let stages = stages(&profile)?;
        let begin = Instant::now();
        carry_out(&stages, &left, options.workers, progress, &mut |record| {
            journal.append(&record)?;
            records.push(record);
            Ok(())
        })?;
        let factors: Vec<f64> = stages.iter().map(Stage::factor).collect();
        let evaluation = evaluate(&records, &options.size, &factors, options.seed)?;
        let described = |stage: &Stage<'_>| {
            let setup = Setup { policy: String::new(), ..Setup::default() };
            Provenance::new(stage.description(), &setup)
        };
        let machines: Vec<Provenance> = stages.iter().map(described).collect();
        let mut report = page(&evaluation, &machines);
        report.fact("Calculation", format!("{CALCULATION}, the same in all programs"));
        report.fact("Runs", records.len().to_string());
        report.fact("Seed", options.seed.to_string());
        if !left.is_empty() {
            let wall = begin.elapsed().as_secs_f64();
            report.fact("Pace", format!("{:.0} simulated s per s", simulated / wall));
        }
        report.fact("Version", env!("CARGO_PKG_VERSION"));
        report.write(folder)?;
        Ok(report)
    }
}

fn no_result(error: impl std::fmt::Display) -> Error {
    Error::Evaluation(error.to_string())
}

fn setting(options: &Options, folder: &Path) -> Result<(), Error> {
    let (size, seed) = (options.size.clone(), options.seed);
    let wanted = Setting { size, seed, version: env!("CARGO_PKG_VERSION").to_owned() };
    harness::keep(folder, |kept| *kept == wanted, || Ok(wanted.clone())).map(drop)
}

/// All machines, in the order of [`MACHINES`].
pub(super) fn stages(profile: &Profile) -> Result<Vec<Stage<'_>>, Error> {
    let stage = |(name, _): &(&str, f64)| {
        let description = Description::named(name).map_err(no_result)?;
        Stage::new(description, profile).map_err(no_result)
    };
    MACHINES.iter().map(stage).collect()
}

/// Carries out runs by several workers; `keep` gets each record, in no order.
fn carry_out(
    stages: &[Stage<'_>],
    runs: &[&Run],
    workers: usize,
    progress: &mut dyn Progress,
    keep: &mut dyn FnMut(Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let work = |sender: mpsc::Sender<Result<Record, SimulateError>>| {
        while !stop.load(Ordering::Relaxed) {
            let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let Some(stage) = stages.get(run.machine) else { break };
            if sender.send(stage.carry_out(run)).is_err() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        let mut outcome = Ok(());
        loop {
            if outcome.is_ok() && progress.cancelled() {
                outcome = Err(Error::Cancelled);
            }
            stop.store(outcome.is_err(), Ordering::Relaxed);
            match receiver.recv_timeout(SLICE) {
                Ok(Ok(record)) => {
                    let what = record.run.to_string();
                    outcome = outcome.and(keep(record));
                    progress.running(&what);
                    progress.done();
                }
                Ok(Err(error)) => outcome = outcome.and(Err(no_result(error))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return outcome,
            }
        }
    })
}
