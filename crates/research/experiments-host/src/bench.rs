//! `symbiont bench COMMAND…`: policies compared by a user's own programs on this machine.
//!
//! # Problem
//! Whether a policy helps depends on the programs. Times of runs differ by chance, by the time of day and by
//! what else the machine does, so that a single run under each policy shows nothing.
//!
//! # Approach
//! A round runs each program alone and all programs together under each contender, in random order, so that
//! slow changes of the machine affect all alike. Rounds are added until each contender is decided against the
//! first one, or until a cap ([`Repeats`]). All runs, those alone too, are started by the same manager and
//! timed by the same clock; the first contender moves no thread (`stay`), so that Linux places them.
//! Speedups of a round use its own runs alone.
//!
//! What other programs and a hypervisor take meanwhile is measured ([`Noise`]) and reported.
//!
//! # Terms and units
//! *Contender*: a policy with its options of `symbiont run`. *Makespan*: until the last program ended.
//! Times are in seconds. A program that ends early leaves the machine to the others.
//!
//! # Properties
//! - Two equal contenders are seldom found different, and a difference of 5 % is mostly found
//!   (`equal_policies_are_not_distinguished_and_unequal_ones_are`).
//! - A program that fails is named with what it wrote (`a_program_that_fails_is_named`).
//! - An interrupted comparison goes on, and rounds end when all is decided
//!   (`rounds_end_when_all_is_decided`).

pub(crate) mod noise;
mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use noise::Noise;

use crate::harness::{self, Machine, read_report, scratch};
use symbiont_campaign::{
    Decision, Error, Experiment, FinishedRunOf, InRound, Metric, Progress, Repeats, Rounds, Row,
    Rows, carry_out, digest, read_json,
};
use symbiont_report::Report;

/// What is compared, and how.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// `symbiont` itself.
    pub symbiont: PathBuf,
    /// Its state directory, unless the default.
    pub state_dir: Option<PathBuf>,
    /// The programs: command lines for `sh -c`.
    pub commands: Vec<String>,
    /// Policies, each with its options of `symbiont run`; the first one is what the others are held against.
    pub contenders: Vec<String>,
    /// How many rounds.
    pub repeats: Repeats,
    /// The time that a run may take.
    pub limit: Duration,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Folder of the report and of the finished runs.
    pub output: PathBuf,
}

/// What is run once in each round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchCell {
    /// A program alone, by its command line.
    Alone(String),
    /// All programs together, under this contender.
    Together(String),
}

impl fmt::Display for BenchCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone(command) => write!(f, "{command}, alone"),
            Self::Together(contender) => f.write_str(contender),
        }
    }
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// Time of each program, in the order of the commands.
    pub seconds: Vec<f64>,
    /// What disturbed it.
    pub noise: Noise,
}

/// Compares, and writes the report.
///
/// # Errors
/// When a contender cannot run here, a program fails, the folder cannot be used or the user stops it; finished
/// runs are kept.
pub fn bench(options: &BenchOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    let machine = Machine::measured_in(&options.output)?;
    let comparison = Comparison { options, machine: &machine };
    for contender in &options.contenders {
        comparison.check(contender, progress)?;
    }
    let done = carry_out(&comparison, &options.output, 1, progress)?;
    let report = page::page(options, &machine, &done)?;
    report.write(&options.output)?;
    Ok(report)
}

struct Comparison<'a> {
    options: &'a BenchOptions,
    machine: &'a Machine,
}

impl Comparison<'_> {
    /// Each distinct program alone, and all of them under each contender.
    fn cells(&self) -> Vec<BenchCell> {
        let BenchOptions { commands, contenders, .. } = self.options;
        let distinct: BTreeSet<&String> = commands.iter().collect();
        let alone = distinct.into_iter().cloned().map(BenchCell::Alone);
        alone.chain(contenders.iter().cloned().map(BenchCell::Together)).collect()
    }

    /// A manager under this contender, with its report in a folder.
    fn manager(&self, contender: &str, folder: &Path) -> Vec<String> {
        let report = folder.join("report.json");
        let fixed = ["run", "--report=json", "--policy"].map(str::to_owned);
        let own = contender.split_whitespace().map(str::to_owned);
        let file = format!("--report-file={}", report.display());
        let symbiont = self.options.symbiont.display().to_string();
        let state_dir = self.options.state_dir.as_ref();
        let state = state_dir.map(|folder| format!("--state-dir={}", folder.display()));
        [symbiont].into_iter().chain(fixed).chain(own).chain([file]).chain(state).collect()
    }

    /// Can it run here? Nothing is managed.
    fn check(&self, contender: &str, progress: &dyn Progress) -> Result<(), Error> {
        let folder = scratch(&self.options.output)?;
        let mut words = self.manager(contender, folder.path());
        words.extend(["--dry-run", "--", "true"].map(str::to_owned));
        let cancelled = || progress.cancelled();
        match self.run(&words, folder.path(), &cancelled) {
            Err(Error::Failed { stderr, .. }) => {
                let why = stderr.trim_start_matches("symbiont: ").to_owned();
                Err(Error::CannotCompare { contender: contender.to_owned(), why })
            }
            other => other.map(drop),
        }
    }

    fn run(
        &self,
        words: &[String],
        folder: &Path,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Duration, Error> {
        let (out, err) = (folder.join("stdout"), folder.join("stderr"));
        harness::run(words, &out, &err, self.options.limit, cancelled)
    }

    /// Runs programs at the same time.
    fn time(
        &self,
        contender: &str,
        commands: &[&String],
        stop: &AtomicBool,
    ) -> Result<BenchRecord, Error> {
        let folder = scratch(&self.options.output)?;
        let jobs = folder.path().join("jobs.toml");
        let text = toml::to_string(&JobFile::of(commands)).map_err(Error::evaluation)?;
        fs::write(&jobs, text).map_err(Error::io(&jobs))?;
        let mut words = self.manager(contender, folder.path());
        words.push(format!("--job={}", jobs.display()));
        let watch = noise::Watch::begin();
        let ran = self.run(&words, folder.path(), &|| stop.load(Ordering::Relaxed));
        let report = folder.path().join("report.json");
        if let Err(Error::Failed { status, stderr, .. }) = &ran {
            let jobs = read_json::<Jobs>(&report).map(|ended| ended.jobs).unwrap_or_default();
            let failed = jobs.iter().zip(commands).find(|(job, _)| job.exit_code != 0);
            if let Some((_, command)) = failed {
                let (program, stderr) = ((*command).clone(), stderr.clone());
                return Err(Error::Failed { program, status: *status, stderr });
            }
        }
        ran?;
        let managed = read_report(&report)?;
        let noise = watch.end(Duration::from_nanos(managed.manager.cpu_ns));
        let ended: Jobs = read_json(&report)?;
        Ok(BenchRecord { seconds: ended.jobs.iter().map(|job| job.wall_s).collect(), noise })
    }
}

/// The part of a report that is read here.
#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    wall_s: f64,
    exit_code: i32,
}

#[derive(Serialize)]
struct JobFile<'a> {
    job: Vec<JobEntry<'a>>,
}

#[derive(Serialize)]
struct JobEntry<'a> {
    command: [&'a str; 3],
    stdout: &'static str,
    session: &'static str,
}

impl<'a> JobFile<'a> {
    /// Sessions of their own: as started from several terminals.
    fn of(commands: &'a [&String]) -> Self {
        let job = commands.iter().map(|command| JobEntry {
            command: ["sh", "-c", command],
            stdout: "/dev/null",
            session: "own",
        });
        Self { job: job.collect() }
    }
}

impl Experiment for Comparison<'_> {
    type Run = InRound<BenchCell>;
    type Record = BenchRecord;

    fn name(&self) -> String {
        "runs".to_owned()
    }

    fn basis(&self, _: &Self::Run) -> String {
        let kernel = self.machine.kernel.clone().unwrap_or_default();
        let commands = self.options.commands.iter().map(String::as_str);
        let parts: Vec<&str> =
            [env!("CARGO_PKG_VERSION"), &kernel].into_iter().chain(commands).collect();
        digest(&parts)
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<Self::Run> {
        let BenchOptions { repeats, seed, .. } = *self.options;
        Rounds { repeats, seed }.next(&self.cells(), done.len(), || decided(self.options, done))
    }

    fn carry_out(&self, run: &Self::Run, stop: &AtomicBool) -> Result<BenchRecord, Error> {
        match &run.cell {
            BenchCell::Alone(command) => self.time(BASELINE, &[command], stop),
            BenchCell::Together(contender) => {
                self.time(contender, &self.options.commands.iter().collect::<Vec<_>>(), stop)
            }
        }
    }

    /// Unknown before they ran.
    fn cost(&self, _: &Self::Run) -> Duration {
        Duration::ZERO
    }
}

/// What leaves all to Linux.
pub const BASELINE: &str = "stay";

/// What the rounds say of each contender but the first, in their order.
fn decisions(options: &BenchOptions, rows: &Rows) -> Vec<Decision> {
    let (first, others) = options.contenders.split_first().map_or(("", &[][..]), |(f, o)| (f, o));
    let gains = |own: &String| rows.gains(WORKLOAD, own, first, Metric::Stp);
    others.iter().map(|own| options.repeats.decide(&gains(own))).collect()
}

fn decided(options: &BenchOptions, done: &[FinishedRunOf<Comparison<'_>>]) -> bool {
    !decisions(options, &rows(options, done)).contains(&Decision::Undecided)
}

/// There is one workload: all of the programs.
const WORKLOAD: &str = "programs";

/// Speedups of each round and contender.
fn rows(options: &BenchOptions, done: &[FinishedRunOf<Comparison<'_>>]) -> Rows {
    let alone = |at: u32, of: &String| {
        let mut runs = done.iter();
        runs.find_map(|done| match &done.run.cell {
            BenchCell::Alone(command) if (done.run.round, command) == (at, of) => {
                done.record.seconds.first().copied()
            }
            _ => None,
        })
    };
    let row = |done: &FinishedRunOf<Comparison<'_>>| {
        let InRound { round, cell: BenchCell::Together(contender) } = &done.run else {
            return None;
        };
        let each = options.commands.iter().zip(&done.record.seconds);
        let speedups: Option<Vec<f64>> =
            each.map(|(command, together)| Some(alone(*round, command)? / together)).collect();
        Some(Row {
            workload: WORKLOAD.to_owned(),
            programs: options.commands.clone(),
            contender: contender.clone(),
            repeat: *round,
            speedups: speedups?,
        })
    };
    Rows(done.iter().filter_map(row).collect())
}
