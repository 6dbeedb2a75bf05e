//! Carries out the experiment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_machine::ProgramId;
use symbiont_policy::Phases;
use symbiont_topology::HostTopology;

use super::judge::{Judged, judge};
use super::page;
use super::plan::{self, Beside, Manager, Run, Size};
use super::readers::{Tracepoints, recorded};
use crate::harness::{self, Error, Journal, Machine, Programs, Progress, read_json, read_report};
use crate::phases::Grouping;
use crate::phases::command::job_file;
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
    /// Seed of the order of runs and of the programs' phases.
    pub seed: u64,
}

/// Time that a run may take beyond what it should.
const PATIENCE: Duration = Duration::from_secs(30);
/// Programs start so long after the command: the manager has to be there first.
const LEAD: Duration = Duration::from_millis(700);

/// One finished run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: Run,
    /// Seconds that it took, with everything around it.
    pub wall_s: f64,
    /// How good the manager was.
    pub manager: Judged,
    /// How good the scheduler's tracepoints were by themselves, or why they were
    /// not read; none where the manager read them.
    pub tracepoints: Option<Result<Judged, String>>,
    /// Events that were lost.
    pub lost: u64,
}

/// What stays the same, also when the experiment is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    iterations_per_s: f64,
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
        let host = HostTopology::read()
            .map_err(|error| Error::Evaluation(format!("this machine's topology: {error}")))?;
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
                carry_out(options, &setting, &host, folder, run, progress)
            })?;
            journal.append(&record)?;
            records.push(record);
            progress.done();
        }
        let mut report = page::page(&records)?;
        report.facts = setting.machine.facts();
        let wall: f64 = records.iter().map(|record| record.wall_s).sum();
        report.fact("Rounds", setting.size.rounds.to_string());
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
    host: &HostTopology,
    folder: &Path,
    run: &Run,
    progress: &dyn Progress,
) -> Result<Record, Error> {
    let scratch = folder.join("running");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir(&scratch).map_err(Error::io(&scratch))?;
    let file = |name: &str| scratch.join(name);
    let (out, other, report) = (file("watched.json"), file("beside.json"), file("report.json"));
    let (recording, jobs) = (file("recording.jsonl"), file("jobs.toml"));
    let start = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + LEAD;
    let seed = setting.seed.wrapping_add(u64::from(run.round));
    let program = |ratio: &str, length: Duration| {
        synth(&options.programs.synth, setting, run, (ratio, length, seed, start))
    };
    let mut programs = vec![(program("1:1", run.length), out.as_path())];
    if run.beside == Beside::Parallel {
        programs.push((program("inf:1", Duration::from_millis(200)), other.as_path()));
    }
    let text = job_file(&programs, Grouping::OneSession)
        .map_err(|error| Error::Evaluation(format!("the job file: {error}")))?;
    fs::write(&jobs, text).map_err(Error::io(&jobs))?;
    let words = [
        options.programs.symbiont.display().to_string(),
        "run".to_owned(),
        "--policy=phases".to_owned(),
        "--dry-run".to_owned(),
        match run.manager {
            Manager::Accounts => "--see-by=accounts".to_owned(),
            Manager::Woken => "--see-by=tracepoints".to_owned(),
        },
        "--report=json".to_owned(),
        format!("--report-file={}", report.display()),
        format!("--record={}", recording.display()),
        format!("--job={}", jobs.display()),
    ];
    let apart = run.manager == Manager::Accounts;
    let tracepoints = apart.then(|| Tracepoints::start(&host.cpus()));
    let limit = LEAD + run.time + PATIENCE;
    let (said, cancelled) = (file("stdout"), || progress.cancelled());
    let finished = harness::run(&words, &said, &file("stderr"), limit, &cancelled)?;
    let told = tracepoints.map(|started| started.map(Tracepoints::stop));
    read_report(&report)?;
    let phases = read_json::<symbiont_synth::Report>(&out)?.log.unwrap_or_default();
    let recorded =
        recorded(&recording, ProgramId(0)).map_err(|error| Error::Evaluation(error.to_string()))?;
    let nothing = || Error::Evaluation(format!("{run}: the program had no phases"));
    let threshold = Phases::new(None).threshold(&host.cpus());
    let record = Record {
        run: run.clone(),
        wall_s: finished.wall.as_secs_f64(),
        manager: judge(&phases, &recorded.beliefs).ok_or_else(nothing)?,
        lost: told.as_ref().and_then(|told| told.as_ref().ok()).map_or(0, |told| told.lost),
        tracepoints: match told {
            Some(Ok(told)) => {
                let beliefs = told.beliefs(&recorded.threads, threshold);
                Some(Ok(judge(&phases, &beliefs).ok_or_else(nothing)?))
            }
            Some(Err(why)) => Some(Err(why.to_string())),
            None => None,
        },
    };
    fs::remove_dir_all(&scratch).map_err(Error::io(&scratch))?;
    Ok(record)
}

/// The command line of a program with phases.
fn synth(
    path: &Path,
    setting: &Setting,
    run: &Run,
    (ratio, length, seed, start): (&str, Duration, u64, Duration),
) -> Vec<String> {
    [
        path.display().to_string(),
        "--json".to_owned(),
        "--log".to_owned(),
        format!("--ratio={ratio}"),
        format!("--seed={seed}"),
        format!("--threads={}", setting.machine.cpus.max(2)),
        format!("--phase={}us", length.as_micros()),
        format!("--rate={}", setting.iterations_per_s),
        format!("--duration={}ms", run.time.as_millis()),
        format!("--start-at={:.6}", start.as_secs_f64()),
    ]
    .into()
}
