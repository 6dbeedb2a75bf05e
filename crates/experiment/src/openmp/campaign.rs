//! Carries out the campaign.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_linux::slow::{SlowCpu, SlowError, Slowed};

use super::evaluate::evaluate;
use super::kernels::{self, Kernel, Told};
use super::page::page;
use super::plan::{self, Run, Size, What};
use crate::harness::read_report;
use crate::harness::{self, Error, Journal, Machine, Managed, Programs, Progress};
use crate::orders::Took;
use crate::phases::{Cpus, command};
use crate::report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The programs to run.
    pub programs: Programs,
    /// The C compiler.
    pub compiler: PathBuf,
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs.
    pub seed: u64,
    /// CPUs to slow down meanwhile.
    pub slow: Vec<SlowCpu>,
}

/// Time between the start of a run and the start of its programs' work.
const LEAD: Duration = Duration::from_millis(400);
/// A run that begins later than this is made again.
const LATE: Duration = Duration::from_millis(50);
/// Time that a run may take, in times of its programs alone, and beyond that.
const PATIENCE: (u32, Duration) = (40, Duration::from_secs(30));
/// Longest time that CPUs are slowed down if nobody ends it.
const LONGEST_SLOW: Duration = Duration::from_secs(12 * 3600);
/// Runs two kernels, one after the other.
const SEQUENCE: &str = r#""$0" "$1" "$2" "$5" && exec "$0" "$3" "$4" 0"#;

/// One finished run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: Run,
    /// Seconds that it took, with everything around it.
    pub wall_s: f64,
    /// How often it had to be tried.
    pub attempts: u32,
    /// What the kernels told: of one alone that one; of two in both orders the first
    /// and second of the one sequence, then those of the other.
    pub told: Vec<Told>,
    /// What the manager told; absent for runs alone.
    pub managed: Option<Managed>,
}

impl Record {
    /// What both orders took; none for a kernel alone.
    #[must_use]
    pub fn took(&self) -> Option<Took> {
        let [ab_a, ab_b, ba_b, ba_a] = self.told.as_slice() else { return None };
        let seconds = |told: &Told| told.end - told.begin;
        let programs = [[seconds(ab_a), seconds(ba_a)], [seconds(ab_b), seconds(ba_b)]];
        let end = ab_b.end.max(ba_a.end);
        Some(Took { programs, completion: end - ab_a.begin.min(ba_b.begin) })
    }

    /// Where its time went; none for a kernel alone.
    #[must_use]
    pub fn spent(&self) -> Option<Spent> {
        let [_, ab_b, _, ba_a] = self.told.as_slice() else { return None };
        let cpu_s = self.told.iter().map(|told| told.cpu_s).sum();
        Some(Spent { cpu_s, alone_s: (ab_b.end - ba_a.end).abs() })
    }
}

/// Where the time of two kernels in both orders went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// CPU seconds of all four runs.
    pub cpu_s: f64,
    /// Seconds for which one sequence was alone at the end.
    pub alone_s: f64,
}

/// What stays the same over a campaign, also when it is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    slow: Vec<String>,
    machine: Machine,
    kernels: Vec<Kernel>,
}

/// The campaign over an output folder, which holds `campaign.json` (the setting),
/// `kernels` (the program), `runs.jsonl` (a line for each finished run) and the report.
#[derive(Debug)]
pub struct Campaign;

impl Campaign {
    /// Carries out all runs that are not done yet, then evaluates all of them
    /// and writes the report. A campaign may be given more rounds, or be evaluated
    /// by the first of them.
    ///
    /// # Errors
    /// When the kernels cannot be built, a run fails again and again, the folder cannot
    /// be used, or the campaign is cancelled; finished runs are kept in each case.
    pub fn run(options: &Options, progress: &mut dyn Progress) -> Result<Report, Error> {
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let folder = &fs::canonicalize(folder).map_err(Error::io(folder))?;
        let kept = setting(options, folder, progress)?;
        let setting = Setting { size: options.size.clone(), ..kept };
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let all = plan::plan(&setting.size, setting.seed);
        let done: BTreeSet<String> = records.iter().map(|record| record.run.id()).collect();
        let left: Vec<&Run> = all.iter().filter(|run| !done.contains(&run.id())).collect();
        if !left.is_empty() {
            harness::same_kernel(folder, &setting.machine)?;
        }
        let estimate = plan::estimate(left.iter().copied(), setting.size.time);
        progress.begin(all.len(), all.len() - left.len(), estimate);
        let slow: &[SlowCpu] = if left.is_empty() { &[] } else { &options.slow };
        let slow_error = |error: SlowError| Error::Evaluation(error.to_string());
        let mut slowed =
            Slowed::start(&options.programs.symbiont, slow, LONGEST_SLOW).map_err(slow_error)?;
        for run in left {
            progress.running(&run.to_string());
            let (record, attempts) = harness::attempt(&run.id(), progress, |_, progress| {
                carry_out(options, &setting, folder, run, progress)
            })?;
            let record = Record { attempts, ..record };
            // A run beside one that ended was of another machine.
            slowed.check().map_err(slow_error)?;
            journal.append(&record)?;
            records.push(record);
            progress.done();
        }
        drop(slowed);
        let planned: BTreeSet<String> = all.iter().map(Run::id).collect();
        records.retain(|record| planned.contains(&record.run.id()));
        let cpus = Cpus::slowed(setting.machine.cpus, &options.slow);
        let evaluation = evaluate(&records, &setting.size, &setting.kernels, cpus)?;
        let mut report = page(&evaluation);
        report.facts = setting.machine.facts();
        let wall: f64 = records.iter().map(|record| record.wall_s).sum();
        let slow = setting.slow.join(", ");
        let Size { rounds, time, .. } = &setting.size;
        report.fact("Rounds", format!("{rounds}, each kernel {time:?} alone on the idle machine"));
        report.fact("Runs", records.len().to_string());
        report.fact("CPUs slowed down", if slow.is_empty() { "none".to_owned() } else { slow });
        report.fact("Wall time of all runs", format!("{:.1} min", wall / 60.0));
        report.fact("Seed", setting.seed.to_string());
        report.fact("Version", env!("CARGO_PKG_VERSION"));
        report.write(folder)?;
        Ok(report)
    }
}

fn setting(
    options: &Options,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<Setting, Error> {
    let slow: Vec<String> = options.slow.iter().map(ToString::to_string).collect();
    let machine = Machine::read();
    let same = |kept: &Setting| {
        let size = Size { rounds: options.size.rounds, ..kept.size.clone() };
        (&size, kept.seed, kept.machine.cpus, &kept.slow)
            == (&options.size, options.seed, machine.cpus, &slow)
    };
    harness::keep(folder, same, || {
        let program = kernels::build(&options.compiler, folder, progress)?;
        progress.note("fitting the kernels' work to this machine");
        let ask = (machine.cpus, options.size.time);
        let fit = |name: &String| kernels::fit(&program, name, ask, folder, progress);
        let kernels = options.size.kernels.iter().map(fit).collect::<Result<_, _>>()?;
        let (size, seed) = (options.size.clone(), options.seed);
        Ok(Setting { size, seed, slow: slow.clone(), machine: machine.clone(), kernels })
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
    let program = folder.join("kernels");
    let threads = setting.machine.cpus;
    let kernel = |name: &String| {
        let known = setting.kernels.iter().find(|kernel| kernel.name == *name);
        known.ok_or_else(|| Error::Evaluation(format!("there is no kernel {name}")))
    };
    let record = match &run.what {
        What::Alone { kernel: name } => {
            let kernel = kernel(name)?;
            let told = kernels::run(&program, name, kernel.steps, threads, &scratch, progress)?;
            kernel.check(&told)?;
            let wall_s = told.end - told.begin;
            Record { run: run.clone(), wall_s, attempts: 1, told: vec![told], managed: None }
        }
        What::Both { kernels: [a, b], policy, grouping } => {
            let (a, b) = (kernel(a)?, kernel(b)?);
            let file = |name: &str| scratch.join(name);
            let start = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + LEAD;
            let sequence = |first: &Kernel, second: &Kernel| {
                let mut words = kernels::environment(threads);
                words.extend(["sh", "-c", SEQUENCE].map(str::to_owned));
                words.push(program.display().to_string());
                for kernel in [first, second] {
                    words.extend([kernel.name.clone(), kernel.steps.to_string()]);
                }
                words.push(format!("{:.6}", start.as_secs_f64()));
                words
            };
            let (ab, ba) = (file("ab.jsonl"), file("ba.jsonl"));
            let commands = [(sequence(a, b), &*ab), (sequence(b, a), &*ba)];
            let text = command::job_file(&commands, *grouping)
                .map_err(|error| Error::Evaluation(error.to_string()))?;
            let (jobs, report) = (file("jobs.toml"), file("report.json"));
            fs::write(&jobs, text).map_err(Error::io(&jobs))?;
            let symbiont = &options.programs.symbiont;
            let words = command::symbiont(symbiont, policy, &options.slow, &jobs, &report);
            let limit = LEAD + setting.size.time * PATIENCE.0 + PATIENCE.1;
            let (out, err) = (file("stdout"), file("stderr"));
            let finished = harness::run(&words, &out, &err, limit, &|| progress.cancelled())?;
            let mut told = Vec::new();
            for (path, order) in [(ab, [a, b]), (ba, [b, a])] {
                let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
                let lines = text.lines().map(serde_json::from_str::<Told>);
                let both: Vec<Told> =
                    lines.collect::<Result<_, _>>().map_err(Error::json(&path))?;
                if both.len() != order.len() {
                    return Err(Error::Evaluation(format!("{run}: a kernel told nothing")));
                }
                both.iter().zip(order).try_for_each(|(told, kernel)| kernel.check(told))?;
                // The two sequences would overlap in another way.
                let late = both.first().map_or(0.0, |first| first.begin - start.as_secs_f64());
                if late > LATE.as_secs_f64() {
                    let late = 1e3 * late;
                    return Err(Error::Evaluation(format!("{run}: it began {late:.0} ms late")));
                }
                told.extend(both);
            }
            Record {
                run: run.clone(),
                wall_s: finished.wall.as_secs_f64(),
                attempts: 1,
                told,
                managed: Some(read_report(&report)?),
            }
        }
    };
    fs::remove_dir_all(&scratch).map_err(Error::io(&scratch))?;
    Ok(record)
}
