//! The experiment `symbiont bench pairs`: how programs slow each other down on the hardware threads of a core.
//!
//! # Problem
//! Which programs suit each other on a core differs from processor to processor, and few such tables are published.
//! Anyone with an SMT machine can measure one in minutes, if what is measured is bounded, even however it ends, and
//! right about which hardware threads share a core: a virtual machine may hide that.
//!
//! # Approach
//! [`sharing`] says which hardware threads share a core, from how much a kernel slows itself down on pairs of them.
//! On one such pair each program runs alone and with each one, itself included ([`machine`]): ours, or the user's
//! commands ([`names`]). [`plan`] gives each cell the same share of the time; rounds are interleaved ([`campaign`]),
//! and what counts are whole rounds. [`evaluate`] holds each program against itself alone in the same round.
//! What a sum of a victim's and a co-runner's part predicts of a cell that it has not seen stands next to it.
//! Measuring is behind [`campaign::Bench`], so that all else is tested with a machine that is none.
//!
//! # Terms and units
//! *Slowdown*: speed alone over speed co-running. *Cell*: one measurement of a program, alone or with a co-runner.
//! *Round*: each cell once.
//!
//! # Properties
//! - Each pair is measured equally often (`each_pair_is_measured_equally_often`), however it ends
//!   (`what_is_interrupted_is_even_and_goes_on`), and within its time (`a_plan_stays_within_its_time`).
//! - The slowdowns of a machine are found (`slowdowns_are_found_whatever_the_clock`), and what is written is read by
//!   the commands that take measured pairs (`what_is_written_is_read_back`).
//! - Two do not measure at once in a folder (`one_at_a_time_measures_in_a_folder`).
//! - Cores are found in spite of noise (`cores_are_found_in_spite_of_noise`).
//! - Sums are predicted without having been seen (`sums_are_predicted_without_having_been_seen`).

pub mod campaign;
pub mod evaluate;
mod files;
pub mod kernels;
mod limit;
mod lock;
pub mod machine;
pub mod names;
mod page;
mod pinned;
pub mod plan;
pub mod sharing;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::harness::{Programs, Site};
use serde::{Deserialize, Serialize};
use symbiont_campaign::{Error, Progress, Repeats, make_folder};
use symbiont_linux::actuate::allowed;
use symbiont_report::Report;
use symbiont_report::stats::Estimate;
use symbiont_topology::{CpuSet, HostTopology, PuId, SysfsError};

use campaign::{Bench, Bounds, Even, measure_evenly};
use evaluate::{Matrix, NoMatrix, matrix};
use kernels::{Kernels, has_kernels};
use limit::for_sharing;
use machine::{Method, OnCore};
use names::{NameError, NamedWork, Work};
use plan::{PairCell, Plan, Sides, TooShort, cells, whole_runs, windows};
use sharing::{CpuPair, Sharing};
use threads::{check, choose, several, share};

/// What to do.
#[derive(Debug, Clone)]
pub struct PairsOptions {
    /// `symbiont` and `symbiont-synth`.
    pub programs: Programs,
    /// Programs to measure.
    pub measured: Vec<NamedWork>,
    /// Two hardware threads to use whatever they share; none: two that share a core.
    pub cpus: Option<CpuSet>,
    /// How long all of it may take.
    pub limit: Duration,
    /// Folder of the report and of the finished runs.
    pub output: PathBuf,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// Why nothing came out.
#[derive(Debug, thiserror::Error)]
pub enum PairsError {
    /// A run failed, or was stopped.
    #[error(transparent)]
    Run(#[from] Error),
    /// The programs cannot be measured.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is too little time.
    #[error(transparent)]
    TooShort(#[from] TooShort),
    /// The programs did not end.
    #[error(
        "the programs alone did not end within the time: give a longer --limit, or shorter programs"
    )]
    Over,
    /// The topology cannot be read.
    #[error("this machine's topology cannot be read: {0}")]
    Topology(#[from] SysfsError),
    /// `--cpus` does not name two.
    #[error("--cpus: two CPUs are expected, such as 0,1; '{0}' names {n}", n = .0.len())]
    NotTwo(CpuSet),
    /// `--cpus` names one that is not there.
    #[error("--cpus: {0} cannot be used; this process may run on {1}")]
    NotAllowed(PuId, CpuSet),
    /// Another one measures in the same folder.
    #[error(
        "another `symbiont bench pairs` measures in {0}: wait until it ends; two at a time would disturb each other"
    )]
    InUse(PathBuf),
    /// There is no second one.
    #[error("This machine has one CPU only, and a pair of programs takes two.")]
    OneCpu,
    /// There is no second one for this process.
    #[error(
        "This process may use one CPU only, {0}, and a pair of programs takes two: start it without `taskset`, or let \
         its cgroup or container use more."
    )]
    OneAllowed(PuId),
    /// No two hardware threads share a core.
    #[error(
        "No two hardware threads share a core here ({0}), so that there is nothing to measure; --cpus A,B measures \
         two CPUs of your choice anyway."
    )]
    NoSmt(String),
    /// It is not known which hardware threads share a core.
    #[error(
        "Whether hardware threads share a core here could not be decided ({0}): try again when the machine does less, \
         or name two CPUs with --cpus."
    )]
    Undecided(String),
    /// Speeds that give no slowdowns.
    #[error("no slowdowns: {0}")]
    Matrix(#[from] NoMatrix),
}

/// Why these two hardware threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuChoice {
    /// They were found to share a core.
    Measured,
    /// The topology says that they share a core; measured, that is undecided.
    Topology,
    /// The user named them.
    User,
}

/// All that came out.
#[derive(Debug)]
struct Found {
    sharing: Option<Sharing>,
    /// What the topology calls cores.
    cores: Vec<CpuSet>,
    cpus: CpuPair,
    chosen: CpuChoice,
    method: Method,
    plan: Plan,
    even: Even<PairCell>,
    matrix: Matrix,
}

/// Measures what is not kept yet, and writes the matrix, its data and the page.
///
/// # Errors
/// When no two hardware threads share a core, the time is too short, a program fails, the folder cannot be used, or
/// the user stops it before the first round is whole; finished runs are kept.
pub fn run(options: &PairsOptions, progress: &mut dyn Progress) -> Result<Report, PairsError> {
    let deadline = Instant::now() + options.limit;
    let host = HostTopology::read()?;
    let may = allowed().map_err(Error::io("/proc/self".as_ref()))?.intersection(&host.cpus());
    if let Some(cpus) = &options.cpus {
        check(cpus, &may)?;
    }
    several(&may, &host.cpus())?;
    let intent = Intent::of(options)?;
    make_folder(&options.output)?;
    let _alone = lock::lock(&options.output)?;
    let site = Site::new(&options.output, Repeats::exactly(1), options.seed)?;
    let cores: Vec<CpuSet> = host.cores().iter().map(|core| core.cpus.clone()).collect();
    let basis = site.machine.basis(&[]);
    let sharing = match has_kernels() {
        true => Some(share(options, (&may, &cores), (&site.folder, &basis), deadline, progress)?),
        false => None,
    };
    let (cpus, chosen) = choose(options.cpus.as_ref(), sharing.as_ref(), &cores, &may)?;
    let (plan, even) = on_core(options, &intent, cpus, (&site.folder, &basis), deadline, progress)?;
    let names: Vec<String> = options.measured.iter().map(|it| it.name.clone()).collect();
    let matrix = matrix(&names, &even.done)?;
    let method = intent.method;
    let found = Found { sharing, cores, cpus, chosen, method, plan, even, matrix };
    files::write(&site.folder, &site.machine, &found)?;
    let mut report = page::page(&found);
    for (name, program) in options.measured.iter().enumerate() {
        if let Work::Command(command) = &program.work {
            report.fact(format!("Program {}, {}", name + 1, program.name), command.clone());
        }
    }
    site.write(&mut report)?;
    Ok(report)
}

/// What is known before anything is measured.
struct Intent {
    method: Method,
    cells: Vec<PairCell>,
    /// For the programs.
    time: Duration,
    /// Unless it follows from how long programs take.
    plan: Option<Plan>,
}

impl Intent {
    /// Refuses what takes too long before anything is measured, where that is known by then.
    fn of(options: &PairsOptions) -> Result<Self, TooShort> {
        let ours = options.measured.iter().all(|program| program.work == Work::Kernel);
        let method = match ours {
            true => Method::Work,
            false if symbiont_linux::perf::support().hardware.is_ok() => Method::Ipc,
            false => Method::CpuTime,
        };
        let names: Vec<String> = options.measured.iter().map(|it| it.name.clone()).collect();
        let cells = cells(&names, method.sides());
        let time = options.limit.saturating_sub(for_sharing(options.limit));
        let plan = match method.sides() {
            Sides::Both => Some(windows(cells.len(), time, method.around())?),
            Sides::First => None,
        };
        Ok(Self { method, cells, time, plan })
    }
}

/// Measures the programs on two hardware threads.
fn on_core(
    options: &PairsOptions,
    Intent { method, cells, time, plan }: &Intent,
    (one, other): CpuPair,
    (folder, basis): (&Path, &str),
    deadline: Instant,
    progress: &mut dyn Progress,
) -> Result<(Plan, Even<PairCell>), PairsError> {
    let bench = |window, alone| OnCore {
        programs: &options.measured,
        method: *method,
        cpus: [one, other],
        symbiont: options.programs.symbiont.clone(),
        kernels: Kernels::new(&options.programs, window, folder),
        most: options.limit,
        basis: basis.to_owned(),
        alone,
    };
    let seed = options.seed;
    let (plan, alone) = match plan {
        Some(plan) => (*plan, BTreeMap::new()),
        None => {
            progress.note("Each program runs once alone, to see how long that takes.");
            let bench = First(bench(Duration::ZERO, BTreeMap::new()));
            let names: Vec<String> = options.measured.iter().map(|it| it.name.clone()).collect();
            let alone = alone(&bench, &names, (seed, deadline), folder, progress)?;
            let left = time.saturating_sub(alone.values().sum());
            let rounds = whole_runs(&alone, left, method.around())?;
            (Plan { rounds, window: Duration::ZERO }, alone)
        }
    };
    progress.note("Now the programs.");
    let bounds = Bounds { rounds: plan.rounds, seed, deadline, last: true };
    let even = measure_evenly(&bench(plan.window, alone), cells, bounds, folder, progress)?;
    Ok((plan, even))
}

/// A core on which each program runs once before it is planned; kept in a file of its own.
struct First<'a>(OnCore<'a>);

impl Bench for First<'_> {
    type Cell = PairCell;

    fn name(&self) -> String {
        "alone".to_owned()
    }

    fn basis(&self, cell: &PairCell) -> String {
        self.0.basis(cell)
    }

    fn measure(
        &self,
        cell: &PairCell,
        stop: &std::sync::atomic::AtomicBool,
    ) -> Result<evaluate::Speeds, Error> {
        self.0.measure(cell, stop)
    }

    /// Unknown before they ran.
    fn cost(&self, _: &PairCell) -> Duration {
        Duration::ZERO
    }
}

/// How long each program takes alone.
fn alone(
    bench: &impl Bench<Cell = PairCell>,
    names: &[String],
    (seed, deadline): (u64, Instant),
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<BTreeMap<String, Duration>, PairsError> {
    let cells: Vec<PairCell> = names
        .iter()
        .map(|name| PairCell { program: name.clone(), co_runner: None, take: 0 })
        .collect();
    let bounds = Bounds { rounds: 1, seed, deadline, last: false };
    let even = match measure_evenly(bench, &cells, bounds, folder, progress) {
        Err(Error::Cancelled) if Instant::now() >= deadline => return Err(PairsError::Over),
        other => other?,
    };
    let took = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    Ok(even.done.into_iter().map(|it| (it.run.cell.program, took(it.record.seconds))).collect())
}

/// What stands in the files of the slowdown of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Cited {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    n: usize,
}

impl From<Estimate> for Cited {
    fn from(estimate: Estimate) -> Self {
        let Estimate { value, n, .. } = estimate;
        Self { value, low: estimate.low(), high: estimate.high(), n }
    }
}
