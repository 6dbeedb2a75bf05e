//! `auto` against the OS and against each policy that it could have chosen, on simulated machines.
//!
//! # Problem
//! `auto` decides where no policy is asked for, so it must not lose to the OS on any load, and it should
//! do about as well as the best policy for the machine.
//!
//! # Approach
//! The same seeded workloads run on each machine under every policy that can run there
//! ([`contenders`]); which cannot is reported with the reason. A workload fills half of the hardware
//! threads to all of them with programs of one thread; every second series has two programs with serial
//! and parallel phases among them ([`draw`]). Runs go on until each program has completed once, as in
//! [`crate::simulated`].
//!
//! Comparisons are paired: in one repeat all contenders run the same programs from the same starts.
//! `auto`, without an interference model and with one, and the OS are repeated until the interval of the
//! gain excludes zero, or is narrow, or a cap is reached ([`Size`]); the others run in the first repeat. Negative controls run in the first
//! repeat too ([`Terms`]): with all shared resources made private, and with measurements shuffled.
//!
//! # Terms and units
//! *Gain*: STP of `auto` over that of the other, minus 1. ANTT likewise; below 0 is better. Intervals
//! are 95 %, Student's t: of a workload over its repeats, of a machine over its workloads. These are
//! drawn from the same programs, so the latter hold for such programs only. Stopping when an interval
//! excludes zero makes single workloads look decided somewhat more often than in 19 of 20 cases.
//!
//! # Properties
//! - Equal seeds draw equal workloads, which fill the machine as stated
//!   (`workloads_fill_the_machine_as_stated`).
//! - Equal options give equal results; an interrupted experiment goes on
//!   (`the_experiment_is_repeatable_and_goes_on_where_it_stopped`).
//! - A policy that cannot run is left out with its reason (`policies_that_cannot_run_are_named`).
//! - A workload on which `auto` is slower beyond the interval is named (`losers_are_named`).

mod page;
mod play;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

pub use play::{Lab, Record, contenders};

use crate::harness::{self, Error, Journal, Progress};
use crate::report::Report;

/// The policy that is judged, and the one without any placement.
pub const JUDGED: &str = symbiont_policy::DEFAULT;
/// The OS.
pub const OS: &str = "stay";
/// The machines, by description and hardware threads of a core that are used; none: all.
pub const MACHINES: [(&str, Option<usize>); 3] =
    [("power8-s812l", Some(2)), ("xeon-e5-2620v4", None), ("alder-lake", None)];
/// Programs of `profiles/` with few phases, bound by memory, caches and execution units: they are soon
/// prepared.
pub const PROGRAMS: [&str; 8] = ["chase", "fft", "gzip", "join", "lbm", "openssl", "stream", "xz"];
/// Shares of the hardware threads that workloads fill, in turn.
const FILLED: [f64; 5] = [0.5, 0.625, 0.75, 0.875, 1.0];
/// Programs with phases, parallel to serial time; each has a quarter of the machine's hardware threads.
const PHASED: [&str; 2] = ["4:1", "1:4"];

/// How large the experiment is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// Workloads of each machine.
    pub workloads: usize,
    /// Time alone that sets targets.
    pub alone: Duration,
    /// Fewest and most repeats of `auto` and the OS.
    pub repeats: (u32, u32),
}

/// Under which terms a policy runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Terms {
    /// As it is; `auto` without a model, as it comes.
    Plain,
    /// `auto` with the interference model that the others are given.
    Modelled,
    /// Each thread has units, caches, bandwidth and predictor for itself.
    Private,
    /// Each program is measured as another one, which is drawn.
    Shuffled,
}

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Workloads that run at a time.
    pub workers: usize,
}

/// A program of a workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Its name in the library.
    pub program: String,
    /// Parallel to serial time, and threads of a parallel phase; none: one thread.
    pub phased: Option<(String, usize)>,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.phased {
            None => f.write_str(&self.program),
            Some((ratio, threads)) => write!(f, "{}@{ratio}x{threads}", self.program),
        }
    }
}

/// The programs of a workload, for a machine of so many hardware threads.
#[must_use]
pub fn draw(programs: &[&str], places: usize, number: usize, seed: u64) -> Vec<Member> {
    let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number as u64);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let filled = FILLED[number % FILLED.len()] * places as f64;
    let mut left = (filled.round() as usize).max(1);
    let mut phased: Vec<&str> = match number / FILLED.len() % 2 {
        0 => Vec::new(),
        _ => PHASED.to_vec(),
    };
    let threads = (places / 4).max(1);
    let (mut deck, mut members): (Vec<&str>, _) = (Vec::new(), Vec::new());
    while left > 0 && !programs.is_empty() {
        if deck.is_empty() {
            deck = programs.to_vec();
            deck.shuffle(&mut random);
        }
        let Some(program) = deck.pop() else { break };
        let ratio = phased.pop().filter(|_| left >= threads);
        left -= ratio.map_or(1, |_| threads);
        let phased = ratio.map(|ratio| (ratio.to_owned(), threads));
        members.push(Member { program: program.to_owned(), phased });
    }
    members
}

/// What stays the same when the experiment is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    machines: Vec<String>,
    programs: Vec<String>,
    version: String,
}

/// The experiment over its folder, which holds `campaign.json` (the setting), `runs.jsonl` (a line for
/// each workload of a machine) and the report.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished workloads are kept.
pub fn run(
    options: &Options,
    labs: &[Lab<'_, '_>],
    progress: &mut dyn Progress,
) -> Result<Report, Error> {
    let folder = &options.output;
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let setting = Setting {
        size: options.size.clone(),
        seed: options.seed,
        machines: labs.iter().map(Lab::name).collect(),
        programs: labs.first().map(Lab::programs).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    harness::keep(folder, |kept| *kept == setting, || Ok(setting.clone()))?;
    let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
    let all = labs.iter().flat_map(|lab| (0..options.size.workloads).map(move |at| (lab, at)));
    let done = |(lab, at): &(&Lab<'_, '_>, usize)| {
        records.iter().any(|record| record.machine == lab.name() && record.workload == *at)
    };
    let left: Vec<(&Lab<'_, '_>, usize)> = all.filter(|cell| !done(cell)).collect();
    let workers = options.workers.max(1);
    let estimate: Duration = left.iter().map(|(lab, _)| lab.estimate(&options.size)).sum();
    let cells = labs.len() * options.size.workloads;
    progress.begin(cells, cells - left.len(), estimate / workers as u32);
    let (next, stop) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let left = &left;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some((lab, at)) = left.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    let record = lab.play(*at, &options.size, options.seed, stop);
                    if sender.send(record).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut outcome = Ok(());
        for record in receiver {
            let kept = record.map_err(Error::from).and_then(|record| {
                journal.append(&record)?;
                progress.running(&format!("{} workload {}", record.machine, record.workload));
                records.push(record);
                Ok(())
            });
            progress.done();
            let stopped = if progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) };
            outcome = outcome.and(stopped).and(kept);
            stop.store(outcome.is_err(), Ordering::Relaxed);
        }
        outcome
    })?;
    records.sort_by_key(|record| {
        (labs.iter().position(|lab| lab.name() == record.machine), record.workload)
    });
    let report = page::page(options, labs, &records)?;
    report.write(folder)?;
    Ok(report)
}
