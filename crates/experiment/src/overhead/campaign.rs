//! Carries out the experiment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_synth::many;
use symbiont_synth::watch::Watched;

use super::evaluate::evaluate;
use super::page;
use super::plan::{self, Load, QUANTUM, Run, Size, WAKES_PER_S, WORK};
use crate::harness::{
    self, Costs, Error, Journal, Machine, Managed, Programs, Progress, read_json, read_report,
};
use crate::report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs and of the moments of wake-ups.
    pub seed: u64,
}

/// Time that a run may take beyond what it should.
const PATIENCE: Duration = Duration::from_secs(30);

/// One finished run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: Run,
    /// Seconds that it took, with everything around it.
    pub wall_s: f64,
    /// What the load reported.
    pub load: many::Report,
    /// What the manager told of itself.
    pub told: Managed,
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
        let folder = &fs::canonicalize(folder).map_err(Error::io(folder))?;
        let setting = setting(options, folder)?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let all = plan::plan(&setting.size, setting.seed);
        let done: BTreeSet<String> = records.iter().map(|record| record.run.id()).collect();
        let left: Vec<&Run> = all.iter().filter(|run| !done.contains(&run.id())).collect();
        if !left.is_empty() {
            harness::same_kernel(folder, &setting.machine)?;
        }
        progress.begin(all.len(), all.len() - left.len(), plan::estimate(left.iter().copied()));
        for run in left {
            progress.running(&run.load.to_string());
            let (record, _) = harness::attempt(&run.id(), progress, |_, progress| {
                carry_out(options, folder, run, progress)
            })?;
            journal.append(&record)?;
            records.push(record);
            progress.done();
        }
        let mut report = page::page(&evaluate(&records)?);
        report.facts = setting.machine.facts();
        let wall: f64 = records.iter().map(|record| record.wall_s).sum();
        let Size { rounds, time } = &setting.size;
        report.fact("Runs", format!("{rounds} rounds of {} loads, {time:?} each", Load::ALL.len()));
        report.fact("Wall time of all runs", format!("{:.1} min", wall / 60.0));
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

fn carry_out(
    options: &Options,
    folder: &Path,
    run: &Run,
    progress: &dyn Progress,
) -> Result<Record, Error> {
    let scratch = folder.join("running");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir(&scratch).map_err(Error::io(&scratch))?;
    let file = |name: &str| scratch.join(name);
    let (out, report) = (file("load.json"), file("report.json"));
    let words = words(&options.programs, run, options.seed, &report);
    let limit = run.time + PATIENCE;
    let finished = harness::run(&words, &out, &file("stderr"), limit, &|| progress.cancelled())?;
    let load: many::Report = read_json(&out)?;
    let told = match run.load {
        Load::Sleepers(_) | Load::Busy(_) => read_report(&report)?,
        Load::Bare(_) => bare(load.watched).ok_or_else(|| {
            Error::Evaluation("this kernel does not tell a thread's CPU time".to_owned())
        })?,
    };
    let record = Record { run: run.clone(), wall_s: finished.wall.as_secs_f64(), load, told };
    fs::remove_dir_all(&scratch).map_err(Error::io(&scratch))?;
    Ok(record)
}

/// What a bare loop told, in the terms of a manager.
fn bare(watched: Option<Watched>) -> Option<Managed> {
    let Watched { quanta, thread_quanta, cpu_ns } = watched?;
    let manager = Costs { cpu_ns: cpu_ns?, start_ns: 0, quanta, thread_quanta, rss_kb: None };
    Some(Managed { manager, ..Managed::default() })
}

fn words(programs: &Programs, run: &Run, seed: u64, report: &Path) -> Vec<String> {
    let count = run.load.threads();
    let (busy, watch) = match run.load {
        Load::Sleepers(_) => (0, None),
        Load::Busy(count) => (count, None),
        Load::Bare(_) => (0, Some(format!("--watch={}ms", QUANTUM.as_millis()))),
    };
    let manager = [
        programs.symbiont.display().to_string(),
        "run".to_owned(),
        "--policy=phases".to_owned(),
        format!("--quantum={}ms", QUANTUM.as_millis()),
        "--report=json".to_owned(),
        format!("--report-file={}", report.display()),
        "--".to_owned(),
    ];
    let load = [
        programs.synth.display().to_string(),
        "threads".to_owned(),
        format!("--count={count}"),
        format!("--busy={busy}"),
        format!("--wakes={WAKES_PER_S}"),
        format!("--work={WORK}"),
        format!("--duration={}ms", run.time.as_millis()),
        format!("--seed={}", seed.wrapping_add(u64::from(run.round))),
        "--json".to_owned(),
    ];
    let managed = manager.into_iter().filter(|_| watch.is_none());
    managed.chain(load).chain(watch.clone()).collect()
}
