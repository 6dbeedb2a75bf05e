//! Jobs in samples on a simulated SMT core, by a schedule.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_policy::activity::{Job, Weights, choose, rotate};
use symbiont_profile::Phase;
use symbiont_profile::trace::TraceFile;
use symbiont_sim_cycle::levels::Kind;
use symbiont_sim_cycle::{
    CapturedWindow, Context as HardwareThread, CycleOptions, Jobs, Stream, SuperSetIndexing,
};
use symbiont_sim_fast::description::Description;
use symbiont_topology::Topology;

use super::scheduler::{By, Decision, Intervals, Scheduler};
use super::scoring::{CacheCounts, Scoring, VECTORS};
use symbiont_campaign::{Error, Experiment, FinishedRunOf, digest};
use symbiont_experiments_sim::code::{self, CODE, CYCLE_CODE};

/// Caches, in the order of the vectors: each has one of uses and one of misses.
pub const CACHES: [Kind; VECTORS / 2] = [Kind::L1d, Kind::L1i, Kind::L2];
/// Super-sets that records have: numbers that divide it can be made from them.
pub const FINEST: usize = 128;
/// Cycles that are simulated per second and CPU, about, for the remaining time.
const RATE: f64 = 1.0e6;

/// Which jobs run in the next sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Schedule {
    /// All of them, as many as there are hardware threads.
    Together,
    /// In turn.
    RoundRobin,
    /// By scores.
    Scored(Scoring),
    /// As Linux 2.6.0 does, samples being half time slices.
    Linux(By, Scoring),
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRun {
    /// The jobs, by the program's name.
    pub jobs: Vec<String>,
    /// Which job runs when.
    pub schedule: Schedule,
    /// What it is called.
    pub called: String,
    /// Samples at most, and cycles of each.
    pub samples: (u32, u64),
    /// Instructions after which each job is complete; none: they go on.
    pub targets: Vec<u64>,
    /// A control: has each job caches of its own?
    pub private: bool,
}

impl fmt::Display for ScheduleRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.jobs.join(" + "), self.called)
    }
}

/// What a job did in a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Which job.
    pub job: usize,
    /// Instructions retired.
    pub instructions: u64,
    /// The part of the sample after which it was complete, if it was.
    pub complete: Option<f64>,
    /// By cache.
    pub caches: Vec<CacheCounts>,
}

/// A sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Its cycles: those of the period, and those in which jobs that left finished.
    pub cycles: f64,
    /// The jobs that ran.
    pub turns: Vec<Turn>,
}

impl Sampled {
    /// Instructions of all per cycle.
    #[must_use]
    pub fn ipc(&self) -> f64 {
        self.turns.iter().map(|turn| turn.instructions as f64).sum::<f64>() / self.cycles
    }
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlayRecord {
    /// The samples in their order.
    pub samples: Vec<Sampled>,
    /// What the scheduler of Linux chose from.
    pub decisions: Vec<Decision>,
}

impl PlayRecord {
    /// Cycles until all jobs were complete; none if some were not.
    #[must_use]
    pub fn makespan(&self, jobs: usize) -> Option<f64> {
        let (mut before, mut complete, mut last) = (0.0, 0, 0.0);
        for sample in &self.samples {
            for part in sample.turns.iter().filter_map(|turn| turn.complete) {
                complete += 1;
                last = f64::max(last, before + part * sample.cycles);
            }
            before += sample.cycles;
        }
        (complete == jobs).then_some(last)
    }
}

/// Traces and a machine that jobs run on.
pub struct Players<'a> {
    /// What the experiment is called.
    pub name: String,
    /// The machine.
    pub machine: &'a Description,
    /// The programs' traces.
    pub traces: &'a Traces,
    /// What programs do alone, for schedules that know it beforehand.
    pub intervals: &'a Intervals,
    /// All runs.
    pub runs: Vec<ScheduleRun>,
}

/// Continuous traces of programs.
#[derive(Debug, Default)]
pub struct Traces {
    of: BTreeMap<String, (CapturedWindow, String)>,
}

impl Traces {
    /// Reads the traces of programs that are there.
    ///
    /// # Errors
    /// When a trace is missing, cannot be read or is damaged.
    pub fn read<'n>(
        folder: &Path,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, Error> {
        let mut traces = Self::default();
        for name in names {
            let file = TraceFile::open(&path(folder, name)).map_err(Error::evaluation)?;
            let about = file.about();
            let basis = format!("{:?} {:?}", about, file.windows().first());
            // Nothing is asked of its past, which alone depends on a phase.
            let window =
                CapturedWindow::new(&file, 0, &Phase::default()).map_err(Error::evaluation)?;
            traces.of.insert(name.to_owned(), (window, digest(&[&basis])));
        }
        Ok(traces)
    }

    /// Instructions of a program's trace.
    pub fn instructions(&self) -> impl Iterator<Item = (&str, u64)> {
        self.of.iter().map(|(name, (window, _))| (name.as_str(), window.info().instructions))
    }

    fn of(&self, name: &str) -> Result<&(CapturedWindow, String), Error> {
        self.of.get(name).ok_or_else(|| Error::evaluation(format!("there is no trace of {name}")))
    }
}

/// Where a program's trace is.
pub fn path(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("{name}.trace"))
}

impl Experiment for Players<'_> {
    type Run = ScheduleRun;
    type Record = PlayRecord;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn basis(&self, run: &ScheduleRun) -> String {
        let traces = run.jobs.iter().filter_map(|job| Some(self.traces.of(job).ok()?.1.as_str()));
        let traces = traces.collect::<Vec<_>>().join(" ");
        let known = match run.schedule {
            Schedule::Linux(..) => format!("{:?}", self.intervals),
            _ => String::new(),
        };
        digest(&[CODE, CYCLE_CODE, &code::machine(self.machine), &traces, &known])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<ScheduleRun> {
        if done.is_empty() { self.runs.clone() } else { Vec::new() }
    }

    fn carry_out(&self, run: &ScheduleRun, stop: &AtomicBool) -> Result<PlayRecord, Error> {
        play(self, run, stop)
    }

    fn cost(&self, run: &ScheduleRun) -> Duration {
        Duration::from_secs_f64(f64::from(run.samples.0) * run.samples.1 as f64 / RATE)
    }
}

/// All hardware threads of a machine's first core.
fn hardware_threads(topology: &Topology) -> Vec<HardwareThread> {
    let Some(core) = topology.cores().first() else { return Vec::new() };
    let mode = core.cpus.iter().count();
    vec![HardwareThread { core: core.id, mode: mode as u32, home: 0 }; mode]
}

fn play(players: &Players<'_>, run: &ScheduleRun, stop: &AtomicBool) -> Result<PlayRecord, Error> {
    let Players { machine, traces, intervals, .. } = players;
    let unusable = |error: &dyn fmt::Display| Error::evaluation(format!("{run}: {error}"));
    let mut streams: Vec<Stream<'_>> = Vec::new();
    for (number, job) in run.jobs.iter().enumerate() {
        let walk = traces.of(job)?.0.begin(number as u8).map_err(|error| unusable(&error))?;
        streams.push(Box::new(walk));
    }
    let options = CycleOptions { private_caches: run.private, ..CycleOptions::default() };
    let threads = hardware_threads(&machine.topology);
    let mut jobs = Jobs::new(machine, &threads, streams, &options).map_err(|e| unusable(&e))?;
    let core = machine.topology.cores().first();
    let per_ns = core.map_or(1.0, |core| machine.hertz(core) / 1e9);
    let mut known = vec![Job::default(); run.jobs.len()];
    let reading = match &run.schedule {
        Schedule::Scored(scoring) | Schedule::Linux(_, scoring) => scoring.reading,
        Schedule::Together | Schedule::RoundRobin => SuperSetIndexing::Contiguous,
    };
    let mut before: Vec<Counted> =
        (0..known.len()).map(|job| counted(&jobs, job, reading)).collect();
    let mut samples = Vec::new();
    let mut linux = match &run.schedule {
        Schedule::Linux(by, scoring) => {
            Some(Scheduler::new(&run.jobs, threads.len(), *by, scoring, intervals))
        }
        _ => None,
    };
    for sample in 0..run.samples.0 {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let next = match &run.schedule {
            Schedule::Together => (0..threads.len()).map(Some).collect(),
            Schedule::RoundRobin => rotate(&known, jobs.running()),
            Schedule::Scored(scoring) => choose(&known, jobs.running(), &weights(scoring)),
            Schedule::Linux(..) => linux.as_mut().map_or_else(Vec::new, |linux| {
                let retired: Vec<u64> = before.iter().map(|counted| counted.instructions).collect();
                let misses: Vec<f64> =
                    known.iter().map(|job| job.misses.unwrap_or_default()).collect();
                linux.next(jobs.running(), &|job| known[job].complete, &retired, &misses)
            }),
        };
        let begin = jobs.ns();
        let ran = jobs.running().to_vec();
        jobs.assign(&next);
        for (at, job) in known.iter_mut().enumerate() {
            if ran.contains(&Some(at)) != jobs.running().contains(&Some(at)) {
                job.since = sample.into();
            }
        }
        jobs.run(run.samples.1 as f64 / per_ns);
        let mut turns = Vec::new();
        for job in jobs.running().iter().flatten() {
            let now = counted(&jobs, *job, reading);
            let last = std::mem::replace(&mut before[*job], now.clone());
            turns.push(turn(*job, &last, &now, run.targets.get(*job).copied()));
        }
        // What a job executes while it drains counts for no sample.
        for (job, before) in before.iter_mut().enumerate() {
            if !jobs.running().contains(&Some(job)) {
                *before = counted(&jobs, job, reading);
            }
        }
        for turn in &turns {
            if let Some(job) = known.get_mut(turn.job) {
                job.resident += 1;
                job.complete = turn.complete.is_some();
            }
        }
        if let Schedule::Scored(scoring) | Schedule::Linux(_, scoring) = &run.schedule {
            learn(&mut known, &turns, scoring);
        }
        if run.schedule != Schedule::Together {
            turns.iter_mut().flat_map(|turn| &mut turn.caches).for_each(CacheCounts::sum_up);
        }
        samples.push(Sampled { cycles: (jobs.ns() - begin) * per_ns, turns });
        if known.iter().all(|job| job.complete) {
            break;
        }
    }
    for job in &run.jobs {
        if let Some(error) = traces.of(job)?.0.failed() {
            return Err(unusable(&error));
        }
    }
    let decisions = linux.map(|linux| linux.decisions).unwrap_or_default();
    Ok(PlayRecord { samples, decisions })
}

fn weights(scoring: &Scoring) -> Weights {
    Weights {
        overlap: scoring.overlap.to_vec(),
        misses: scoring.misses,
        resident: scoring.resident,
    }
}

/// What the scheduler knows after a sample. Misses are in units of the average of the jobs that ran.
fn learn(known: &mut [Job], turns: &[Turn], scoring: &Scoring) {
    let missed = |turn: &Turn| -> f64 {
        let l2 = turn.caches.last().map_or(0, |cache| cache.misses.iter().sum::<u32>());
        f64::from(l2) / turn.instructions.max(1) as f64
    };
    for turn in turns {
        // A control: what is learnt of a job is taken for another's.
        let learner = match &scoring.vectors_of {
            Some(of) => of.iter().position(|donor| *donor == turn.job),
            None => Some(turn.job),
        };
        if let Some(job) = learner.and_then(|learner| known.get_mut(learner)) {
            job.vectors = Some(scoring.vectors(turn.job, &turn.caches));
            job.misses = Some(missed(turn) / scoring.average.max(1e-9));
        }
    }
}

/// What a job did so far.
#[derive(Clone)]
struct Counted {
    instructions: u64,
    caches: Vec<CacheCounts>,
}

fn counted(jobs: &Jobs<'_>, job: usize, reading: SuperSetIndexing) -> Counted {
    let of = |kind: Kind| {
        let sets = jobs.super_sets(job, kind, (FINEST, reading));
        CacheCounts {
            uses: sets.iter().map(|set| set.accesses).collect(),
            misses: sets.iter().map(|set| set.misses).collect(),
            kicked_out: sets.iter().map(|set| set.inter_thread).sum(),
        }
    };
    Counted {
        instructions: jobs.counts(job).instructions,
        caches: CACHES.into_iter().map(of).collect(),
    }
}

fn turn(job: usize, before: &Counted, now: &Counted, target: Option<u64>) -> Turn {
    let instructions = now.instructions - before.instructions;
    let missing = target.map(|target| target.saturating_sub(before.instructions));
    let complete = missing.filter(|missing| *missing <= instructions);
    let complete = complete.map(|missing| missing as f64 / instructions.max(1) as f64);
    let less = |now: &[u32], before: &[u32]| now.iter().zip(before).map(|(n, b)| n - b).collect();
    let caches = now.caches.iter().zip(&before.caches).map(|(now, before)| CacheCounts {
        uses: less(&now.uses, &before.uses),
        misses: less(&now.misses, &before.misses),
        kicked_out: now.kicked_out - before.kicked_out,
    });
    Turn { job, instructions, complete, caches: caches.collect() }
}
