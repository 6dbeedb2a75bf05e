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
//! - Cores are found in spite of noise (`cores_are_found_in_spite_of_noise`).
//! - Sums are predicted without having been seen (`sums_are_predicted_without_having_been_seen`).

pub mod campaign;
pub mod evaluate;
mod files;
pub mod machine;
pub mod names;
mod page;
pub mod plan;
pub mod sharing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use symbiont_campaign::harness::{Error, Programs, Progress};
use symbiont_campaign::{InRound, Repeats, Site};
use symbiont_linux::actuate::allowed;
use symbiont_report::Report;
use symbiont_report::stats::Estimate;
use symbiont_topology::{CpuSet, HostTopology, PuId, SysfsError};

use campaign::{Bench, Bounds, Even, measure_evenly};
use evaluate::{Matrix, NoMatrix, matrix};
use machine::{CpuCell, Kernels, Method, OnCore, OnCpus};
use names::{NameError, Program, Work};
use plan::{AROUND, Cell, Plan, Sides, TooShort, cells, whole_runs, windows};
use sharing::{CpuPair, Sharing, Verdict, are_siblings, candidates, core_to_use, judge};

/// What to do.
#[derive(Debug, Clone)]
pub struct PairsOptions {
    /// `symbiont` and `symbiont-synth`.
    pub programs: Programs,
    /// Programs to measure.
    pub measured: Vec<Program>,
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
    /// The programs are none that can be measured.
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
pub enum Chosen {
    /// They were found to share a core.
    Measured,
    /// The topology says that they share a core; measured, that is undecided.
    Topology,
    /// The user named them.
    User,
}

/// Share of the time, at most, in which it is found out which hardware threads share a core: one in so many.
const SHARE: u32 = 8;
/// Rounds of that, and how long each measurement counts.
const LEAST_ROUNDS: u32 = 3;
const MOST_ROUNDS: u32 = 5;
const WINDOW: Duration = Duration::from_millis(100);

/// All that came out.
#[derive(Debug)]
struct Found {
    sharing: Option<Sharing>,
    /// What the topology calls cores.
    cores: Vec<CpuSet>,
    cpus: CpuPair,
    chosen: Chosen,
    method: Method,
    plan: Plan,
    even: Even<Cell>,
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
    if may.len() < 2 {
        return Err(PairsError::NoSmt("there is one CPU".to_owned()));
    }
    let site = Site::new(&options.output, Repeats::exactly(1), options.seed)?;
    let cores: Vec<CpuSet> = host.cores().iter().map(|core| core.cpus.clone()).collect();
    let basis = site.machine.basis(&[]);
    let sharing = match machine::has_kernels() {
        true => Some(share(options, (&may, &cores), (&site.folder, &basis), deadline, progress)?),
        false => None,
    };
    let (cpus, chosen) = choose(options.cpus.as_ref(), sharing.as_ref(), &cores, &may)?;
    let (method, plan, even) = on_core(options, cpus, (&site.folder, &basis), deadline, progress)?;
    let names: Vec<String> = options.measured.iter().map(|it| it.name.clone()).collect();
    let matrix = matrix(&names, &even.done)?;
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

/// Can these be used?
fn check(cpus: &CpuSet, may: &CpuSet) -> Result<(), PairsError> {
    if let Some(other) = cpus.difference(may).first() {
        return Err(PairsError::NotAllowed(other, may.clone()));
    }
    if cpus.len() == 2 { Ok(()) } else { Err(PairsError::NotTwo(cpus.clone())) }
}

/// The two members of a set of two.
fn two(cpus: &CpuSet) -> Option<CpuPair> {
    let mut members = cpus.iter();
    members.next().zip(members.next())
}

/// The time for finding out which hardware threads share a core: enough for one pair.
fn for_sharing(limit: Duration) -> Duration {
    (limit / SHARE).max((WINDOW + AROUND) * 3 * LEAST_ROUNDS)
}

/// Finds out which hardware threads share a core.
fn share(
    options: &PairsOptions,
    (may, cores): (&CpuSet, &[CpuSet]),
    (folder, basis): (&Path, &str),
    deadline: Instant,
    progress: &mut dyn Progress,
) -> Result<Sharing, PairsError> {
    let runs = for_sharing(options.limit).as_secs_f64() / (WINDOW + AROUND).as_secs_f64();
    // A pair takes a run for itself and, at most, two for its hardware threads alone.
    let most = (runs / f64::from(LEAST_ROUNDS) / 3.0) as usize;
    let small = may.len() * (may.len() + 1) / 2;
    let most = if small as f64 <= runs / f64::from(LEAST_ROUNDS) { small } else { most.max(1) };
    let pairs = match options.cpus.as_ref().and_then(two) {
        Some(pair) => vec![pair],
        None => candidates(may, cores, most, options.seed),
    };
    let cells = cpu_cells(&pairs);
    let rounds = (runs / cells.len().max(1) as f64) as u32;
    let bounds = Bounds {
        rounds: rounds.clamp(LEAST_ROUNDS, MOST_ROUNDS),
        seed: options.seed,
        deadline,
        last: false,
    };
    progress.note("First it is measured which hardware threads share a core.");
    let kernels = Kernels::new(&options.programs, WINDOW, folder);
    let bench = OnCpus { kernels, basis: basis.to_owned() };
    Ok(judge(&slowdowns(&measure_evenly(&bench, &cells, bounds, folder, progress)?)))
}

/// Each hardware thread alone, and each pair.
fn cpu_cells(pairs: &[CpuPair]) -> Vec<CpuCell> {
    let cpus: CpuSet = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
    let alone = cpus.iter().map(|cpu| CpuCell { cpu: cpu.0, other: None });
    let together = pairs.iter().map(|(one, other)| CpuCell { cpu: one.0, other: Some(other.0) });
    alone.chain(together).collect()
}

/// Slowdowns of pairs of hardware threads, round by round: the geometric mean of both.
fn slowdowns(even: &Even<CpuCell>) -> BTreeMap<CpuPair, Vec<f64>> {
    let mut alone = BTreeMap::new();
    for done in even.done.iter().filter(|done| done.run.cell.other.is_none()) {
        alone.insert((done.run.round, done.run.cell.cpu), done.record.first);
    }
    let mut found: BTreeMap<CpuPair, Vec<f64>> = BTreeMap::new();
    for done in &even.done {
        let InRound { round, cell: CpuCell { cpu, other } } = done.run;
        let slowdown = other.and_then(|other| {
            let (first, second) = (alone.get(&(round, cpu))?, alone.get(&(round, other))?);
            let both = first / done.record.first * second / done.record.second?;
            Some(((PuId(cpu), PuId(other)), both.sqrt()))
        });
        if let Some((pair, slowdown)) = slowdown {
            found.entry(pair).or_default().push(slowdown);
        }
    }
    found
}

/// The two hardware threads to use.
fn choose(
    named: Option<&CpuSet>,
    sharing: Option<&Sharing>,
    cores: &[CpuSet],
    may: &CpuSet,
) -> Result<(CpuPair, Chosen), PairsError> {
    if let Some(pair) = named.and_then(two) {
        return Ok((pair, Chosen::User));
    }
    if let Some(pair) = sharing.and_then(|sharing| core_to_use(sharing, cores)) {
        return Ok((pair, Chosen::Measured));
    }
    let siblings = || {
        let core = cores.iter().map(|core| core.intersection(may)).filter(|core| core.len() > 1);
        core.filter_map(|core| two(&core)).max()
    };
    let Some(sharing) = sharing else {
        let none = || {
            PairsError::NoSmt(
                "as /sys says; our kernels, by which it is measured, are for x86-64".into(),
            )
        };
        return Ok((siblings().ok_or_else(none)?, Chosen::Topology));
    };
    let undecided = sharing.pairs.iter().filter(|pair| pair.verdict == Verdict::Undecided);
    let mut undecided = undecided.map(|pair| pair.cpus).peekable();
    let some_undecided = undecided.peek().is_some();
    if let Some(pair) = undecided.filter(|pair| are_siblings(*pair, cores)).max() {
        return Ok((pair, Chosen::Topology));
    }
    let said = match siblings() {
        None => "/sys says so, too",
        Some(_) => "although /sys says that some do",
    };
    let count = sharing.pairs.len();
    let pairs = if count == 1 { "pair" } else { "pairs" };
    if some_undecided {
        let noise = sharing.noise().map_or(String::new(), |noise| format!(", ± {noise:.2}"));
        return Err(PairsError::Undecided(format!("{count} {pairs} of CPUs measured{noise}")));
    }
    Err(PairsError::NoSmt(format!("{count} {pairs} of CPUs measured; {said}")))
}

/// Measures the programs on two hardware threads.
fn on_core(
    options: &PairsOptions,
    (one, other): CpuPair,
    (folder, basis): (&Path, &str),
    deadline: Instant,
    progress: &mut dyn Progress,
) -> Result<(Method, Plan, Even<Cell>), PairsError> {
    let programs = &options.measured;
    let names: Vec<String> = programs.iter().map(|program| program.name.clone()).collect();
    let ours = programs.iter().all(|program| program.work == Work::Kernel);
    let method = match ours {
        true => Method::Work,
        false if symbiont_linux::perf::support().hardware.is_ok() => Method::Ipc,
        false => Method::CpuTime,
    };
    let time = options.limit.saturating_sub(for_sharing(options.limit));
    let bench = |window, alone| OnCore {
        programs,
        method,
        cpus: [one, other],
        symbiont: options.programs.symbiont.clone(),
        kernels: Kernels::new(&options.programs, window, folder),
        most: options.limit,
        basis: basis.to_owned(),
        alone,
    };
    let cells = cells(&names, method.sides());
    let (plan, alone) = match method.sides() {
        Sides::Both => (windows(cells.len(), time, method.around())?, BTreeMap::new()),
        Sides::First => {
            progress.note("Each program runs once alone, to see how long that takes.");
            let bench = First(bench(Duration::ZERO, BTreeMap::new()));
            let alone = alone(&bench, &names, (options.seed, deadline), folder, progress)?;
            let left = time.saturating_sub(alone.values().sum());
            let rounds = whole_runs(&alone, left, method.around())?;
            (Plan { rounds, window: Duration::ZERO }, alone)
        }
    };
    progress.note("Now the programs.");
    let bounds = Bounds { rounds: plan.rounds, seed: options.seed, deadline, last: true };
    let even = measure_evenly(&bench(plan.window, alone), &cells, bounds, folder, progress)?;
    Ok((method, plan, even))
}

/// A core on which each program runs once before it is planned; kept in a file of its own.
struct First<'a>(OnCore<'a>);

impl Bench for First<'_> {
    type Cell = Cell;

    fn name(&self) -> String {
        "alone".to_owned()
    }

    fn basis(&self, cell: &Cell) -> String {
        self.0.basis(cell)
    }

    fn measure(
        &self,
        cell: &Cell,
        stop: &std::sync::atomic::AtomicBool,
    ) -> Result<evaluate::Speeds, Error> {
        self.0.measure(cell, stop)
    }

    /// Unknown before they ran.
    fn cost(&self, _: &Cell) -> Duration {
        Duration::ZERO
    }
}

/// How long each program takes alone.
fn alone(
    bench: &impl Bench<Cell = Cell>,
    names: &[String],
    (seed, deadline): (u64, Instant),
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<BTreeMap<String, Duration>, PairsError> {
    let cells: Vec<Cell> =
        names.iter().map(|name| Cell { program: name.clone(), co_runner: None }).collect();
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
