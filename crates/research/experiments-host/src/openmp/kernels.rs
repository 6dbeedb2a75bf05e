//! The kernels: how they are built, and how much work they get.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::harness::{self, Measure, RunFolder};
use symbiont_campaign::{Error, InRound, Progress, digest, read_json};

/// All kernels.
pub const KERNELS: [&str; 10] =
    ["jacobi", "cg", "lu", "nbody", "mandelbrot", "sort", "life", "montecarlo", "matmul", "bfs"];
/// Their source.
const SOURCE: &str = include_str!("kernels.c");
/// Time that building or one kernel may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// CPU time from which a trial shows how fast a kernel is, in seconds.
const TRIAL_S: f64 = 0.05;

/// What a run of a kernel reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// When it began to work, seconds since 1970.
    pub begin: f64,
    /// When it was through.
    pub end: f64,
    /// Of this, seconds in parallel regions.
    pub parallel_s: f64,
    /// CPU seconds of all its threads.
    pub cpu_s: f64,
    /// What it computed.
    pub sum: String,
}

/// A kernel and its work: the same in every run of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its steps.
    pub steps: u64,
    /// Share of its time in parallel regions, alone on the idle machine.
    pub parallel: f64,
    /// Seconds of its work with one thread, estimated from a trial.
    pub single_s: f64,
    /// What it has to compute.
    pub sum: String,
}

/// Builds the kernels into a folder.
///
/// # Errors
/// When the compiler is missing or fails.
pub fn build(compiler: &Path, folder: &Path, progress: &dyn Progress) -> Result<PathBuf, Error> {
    let (source, program) = (folder.join("kernels.c"), folder.join("kernels"));
    fs::write(&source, SOURCE).map_err(Error::io(&source))?;
    let words = [
        compiler.display().to_string(),
        "-O2".to_owned(),
        "-fopenmp".to_owned(),
        "-o".to_owned(),
        program.display().to_string(),
        source.display().to_string(),
        "-lm".to_owned(),
    ];
    let (out, err) = (folder.join("build.out"), folder.join("build.err"));
    harness::run(&words, &out, &err, TIMEOUT, &|| progress.cancelled())?;
    Ok(program)
}

/// What precedes a command so that OpenMP does as this experiment wants.
pub fn environment(threads: u32) -> Vec<String> {
    vec![
        "env".to_owned(),
        format!("OMP_NUM_THREADS={threads}"),
        "OMP_DYNAMIC=false".to_owned(),
        "OMP_WAIT_POLICY=passive".to_owned(),
    ]
}

/// Kernels whose work is fitted to a time alone on the idle machine.
pub(super) struct Fit<'a> {
    pub program: &'a Path,
    pub names: &'a [String],
    pub time: Duration,
}

impl Measure for Fit<'_> {
    type Cell = String;
    type Record = Kernel;

    const NAME: &'static str = "kernels";

    fn cells(&self) -> Vec<String> {
        self.names.to_vec()
    }

    fn options(&self) -> String {
        digest(&[SOURCE, &format!("{:?}", self.time)])
    }

    fn cost(&self, _: &String) -> Duration {
        self.time + Duration::from_millis(300)
    }

    /// Fits a kernel's work, and notes what it computes.
    fn measure(&self, run: &InRound<String>, place: &RunFolder<'_>) -> Result<Kernel, Error> {
        let (name, threads) = (&run.cell, place.machine.cpus);
        let of = |steps: u64, threads: u32| self::run(self.program, name, steps, threads, place);
        let mut steps = 1;
        let trial = loop {
            let outcome = of(steps, 1)?;
            if outcome.cpu_s >= TRIAL_S || steps > 1 << 24 {
                break outcome;
            }
            steps *= 2;
        };
        // With one thread: what runs in parallel regions takes n times as long.
        let share = (trial.parallel_s / (trial.end - trial.begin).max(1e-9)).clamp(0.0, 1.0);
        let (serial, parallel) = (1.0 - share, share / f64::from(threads.max(1)));
        let single = trial.cpu_s.max(1e-9) / steps as f64;
        let alone = single * (serial + parallel);
        let steps = ((self.time.as_secs_f64() / alone).round() as u64).max(1);
        let sum = of(steps, threads)?.sum;
        let (name, single_s) = (name.clone(), single * steps as f64);
        Ok(Kernel { name, steps, parallel: parallel / (serial + parallel), single_s, sum })
    }
}

/// The command line of a kernel by itself.
pub(super) fn command(program: &Path, name: &str, steps: u64, threads: u32) -> Vec<String> {
    let mut words = environment(threads);
    words.extend([program.display().to_string(), name.to_owned(), steps.to_string(), "0".into()]);
    words
}

/// Runs a kernel by itself, unmanaged.
pub(super) fn run(
    program: &Path,
    name: &str,
    steps: u64,
    threads: u32,
    place: &RunFolder<'_>,
) -> Result<Outcome, Error> {
    let out = place.file("kernel.json");
    place.run(&command(program, name, steps, threads), &out, TIMEOUT)?;
    read_json(&out)
}

impl Kernel {
    /// Is this what it has to compute?
    pub(super) fn check(&self, outcome: &Outcome) -> Result<(), Error> {
        match outcome.sum == self.sum {
            true => Ok(()),
            false => Err(Error::WrongOutput { program: self.name.clone() }),
        }
    }
}
