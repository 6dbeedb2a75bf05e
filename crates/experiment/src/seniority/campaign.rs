//! Carries out the experiment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_policy::Phases;
use symbiont_synth::Ratio;

use super::judge::{Judged, judge, moments};
use super::page::page;
use super::plan::{self, Run, Size};
use crate::harness::{self, Error, Journal, Machine, Programs, Progress, read_report};
use crate::phases::Program;
use crate::phases::command::{self, Ask};
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
    /// Seed of the order of runs.
    pub seed: u64,
}

/// Time that a run may take beyond what it should.
const PATIENCE: Duration = Duration::from_secs(30);
/// Programs start so long after the command: the manager has to be there first.
const LEAD: Duration = Duration::from_millis(500);
/// Mean length of a phase: none ends within a run.
const PHASE: Duration = Duration::from_secs(100_000);

/// One finished run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: Run,
    /// Seconds that it took, with everything around it.
    pub wall_s: f64,
    /// Length of a quantum, in ms.
    pub quantum_ms: Option<f64>,
    /// What it showed.
    pub judged: Judged,
}

/// What stays the same, also when the experiment is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    iterations_per_s: f64,
    machine: Machine,
}

/// The experiment over an output folder, which holds `campaign.json` (the setting),
/// `runs.jsonl` (a line for each finished run) and the report.
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
        let setting = setting(options, folder, progress)?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let all = plan::plan(&setting.size, setting.seed);
        let done: BTreeSet<String> = records.iter().map(|record| record.run.id()).collect();
        let left: Vec<&Run> = all.iter().filter(|run| !done.contains(&run.id())).collect();
        if !left.is_empty() {
            harness::same_kernel(folder, &setting.machine)?;
        }
        progress.begin(all.len(), all.len() - left.len(), plan::estimate(left.iter().copied()));
        for run in left {
            progress.running(&run.to_string());
            let (record, _) = harness::attempt(&run.id(), progress, |_, progress| {
                carry_out(options, &setting, folder, run, progress)
            })?;
            journal.append(&record)?;
            records.push(record);
            progress.done();
        }
        let mut report = page(&records, setting.machine.cpus)?;
        report.facts = setting.machine.facts();
        let wall: f64 = records.iter().map(|record| record.wall_s).sum();
        report.fact("Runs", records.len().to_string());
        report.fact("Wall time of all runs", format!("{:.1} min", wall / 60.0));
        report.fact("Seed", setting.seed.to_string());
        report.fact("Version", env!("CARGO_PKG_VERSION"));
        report.write(folder)?;
        Ok(report)
    }
}

fn setting(options: &Options, folder: &Path, progress: &dyn Progress) -> Result<Setting, Error> {
    let machine = Machine::read();
    let same = |kept: &Setting| {
        (&kept.size, kept.seed, kept.machine.cpus) == (&options.size, options.seed, machine.cpus)
    };
    harness::keep(folder, same, || {
        let iterations_per_s = options.programs.calibrate(folder, progress)?.iterations_per_s;
        let (size, seed, machine) = (options.size.clone(), options.seed, machine.clone());
        Ok(Setting { size, seed, iterations_per_s, machine })
    })
}

fn carry_out(
    options: &Options,
    setting: &Setting,
    folder: &Path,
    run: &Run,
    progress: &dyn Progress,
) -> Result<Record, Error> {
    let scratch = folder.join("running");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir(&scratch).map_err(Error::io(&scratch))?;
    let file = |name: &str| scratch.join(name);
    let ask = Ask {
        threads: setting.machine.cpus,
        iterations_per_phase: setting.iterations_per_s * PHASE.as_secs_f64(),
        time: run.time,
        start: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + LEAD,
    };
    let programs = run.parallel + u32::from(run.beside_serial);
    let outputs: Vec<PathBuf> = (0..programs).map(|n| file(&format!("{n}.json"))).collect();
    let commands: Vec<(Vec<String>, &Path)> = (outputs.iter().zip(0_u32..))
        .map(|(output, number)| {
            let ratio = if number < run.parallel { Ratio::PARALLEL } else { Ratio::SERIAL };
            let seed = setting.seed.wrapping_add(u64::from(1000 * run.round + number));
            let program = Program { ratio, seed };
            (command::synth(&options.programs.synth, program, ask), output.as_path())
        })
        .collect();
    let text = command::job_file(&commands, run.grouping)
        .map_err(|error| Error::Evaluation(error.to_string()))?;
    let (jobs, report, recording) =
        (file("jobs.toml"), file("report.json"), file("recording.jsonl"));
    fs::write(&jobs, text).map_err(Error::io(&jobs))?;
    let symbiont = &options.programs.symbiont;
    let mut words = command::symbiont(symbiont, run.policy(), &[], &jobs, &report);
    words.push(format!("--record={}", recording.display()));
    if let Some(timeout) = run.timeout {
        words.push(format!("--set={}", Phases::SENIORITY.written(&timeout)));
    }
    let limit = LEAD + run.time + PATIENCE;
    let (out, err) = (file("stdout"), file("stderr"));
    let finished = harness::run(&words, &out, &err, limit, &|| progress.cancelled())?;
    let managed = read_report(&report)?;
    let seen = moments(&recording).map_err(|error| Error::Evaluation(error.to_string()))?;
    let parallel: Vec<u32> = (0..run.parallel).collect();
    let judged = judge(&seen, &parallel)
        .ok_or_else(|| Error::Evaluation(format!("{run}: nothing was recorded")))?;
    fs::remove_dir_all(&scratch).map_err(Error::io(&scratch))?;
    Ok(Record {
        run: run.clone(),
        wall_s: finished.wall.as_secs_f64(),
        quantum_ms: managed.quantum_ms,
        judged,
    })
}
