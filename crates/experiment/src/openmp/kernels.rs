//! The kernels: how they are built, and how much work they get.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::harness::{self, Error, Progress, read_json};

/// All kernels.
pub const KERNELS: [&str; 10] =
    ["jacobi", "cg", "lu", "nbody", "mandelbrot", "sort", "life", "montecarlo", "matmul", "bfs"];
/// Their source.
const SOURCE: &str = include_str!("kernels.c");
/// Time that building or one kernel may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// CPU time from which a trial tells how fast a kernel is, in seconds.
const TRIAL_S: f64 = 0.05;

/// What a run of a kernel tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
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
    /// Which.
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
    harness::run(&words, &out, &err, PATIENCE, &|| progress.cancelled())?;
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

/// Fits a kernel's work to `time` alone on an idle machine of `threads` CPUs, and
/// notes what it computes.
///
/// # Errors
/// When it does not work, or the folder cannot be used.
pub fn fit(
    program: &Path,
    name: &str,
    (threads, time): (u32, Duration),
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Kernel, Error> {
    let mut steps = 1;
    let trial = loop {
        let told = run(program, name, steps, 1, folder, progress)?;
        if told.cpu_s >= TRIAL_S || steps > 1 << 24 {
            break told;
        }
        steps *= 2;
    };
    // With one thread: what runs in parallel regions takes n times as long.
    let share = (trial.parallel_s / (trial.end - trial.begin).max(1e-9)).clamp(0.0, 1.0);
    let (serial, parallel) = (1.0 - share, share / f64::from(threads.max(1)));
    let single = trial.cpu_s.max(1e-9) / steps as f64;
    let alone = single * (serial + parallel);
    let steps = ((time.as_secs_f64() / alone).round() as u64).max(1);
    let sum = run(program, name, steps, threads, folder, progress)?.sum;
    let (name, single_s) = (name.to_owned(), single * steps as f64);
    Ok(Kernel { name, steps, parallel: parallel / (serial + parallel), single_s, sum })
}

/// Runs a kernel by itself, unmanaged.
///
/// # Errors
/// When it fails.
pub fn run(
    program: &Path,
    name: &str,
    steps: u64,
    threads: u32,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Told, Error> {
    let (out, err) = (folder.join("kernel.json"), folder.join("kernel.err"));
    let mut words = environment(threads);
    words.extend([program.display().to_string(), name.to_owned(), steps.to_string(), "0".into()]);
    harness::run(&words, &out, &err, PATIENCE, &|| progress.cancelled())?;
    read_json(&out)
}

impl Kernel {
    /// Is this what it has to compute?
    pub(super) fn check(&self, told: &Told) -> Result<(), Error> {
        match told.sum == self.sum {
            true => Ok(()),
            false => Err(Error::WrongOutput { program: self.name.clone() }),
        }
    }
}
