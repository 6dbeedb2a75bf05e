//! What was done, and how it is written.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::kernel::Kernel;
use super::worker::{Done, Task};
use crate::work::Stop;

/// What was done; the JSON form of `scimark --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Threads that ran kernels.
    pub threads: u32,
    /// Seed of the data and of the orders.
    pub seed: u64,
    /// Executions of a kernel before the next one's turn.
    pub repeat: u64,
    /// Seconds from the moment all threads stood to the end.
    pub elapsed_s: f64,
    /// Each kernel, all threads together.
    pub kernels: Vec<KernelReport>,
}

impl Report {
    /// Executions whose result was wrong, all kernels together.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.wrong).sum()
    }
}

/// What was done of one kernel; the JSON form of `kernel --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    /// The kernel.
    pub kernel: Kernel,
    /// Executions.
    pub executions: u64,
    /// Wall-clock seconds within them, summed over threads.
    pub seconds: f64,
    /// Arithmetic operations per microsecond of `seconds`: SciMark's Mflops.
    pub score: f64,
    /// Checksum of the result of an execution, hexadecimal: a seed has one.
    pub checksum: String,
    /// Executions with another result.
    pub wrong: u64,
}

impl KernelReport {
    pub(super) fn new(kernel: Kernel, done: &Done, checksum: u64) -> Self {
        let seconds = done.time.as_secs_f64();
        let operations = kernel.operations() as f64 * done.executions as f64;
        Self {
            kernel,
            executions: done.executions,
            seconds,
            score: if seconds > 0.0 { operations / (1e6 * seconds) } else { 0.0 },
            checksum: format!("{checksum:016x}"),
            wrong: done.wrong,
        }
    }
}

/// Executes one kernel `rounds` times on the calling thread, or until it is time to stop.
#[must_use]
pub fn single(kernel: Kernel, rounds: u64, seed: u64, stop: &Stop) -> KernelReport {
    let checksum = kernel.workload(seed).execute();
    let mut task = Task::new(kernel, seed, checksum);
    task.execute(rounds, stop);
    KernelReport::new(kernel, &task.done, checksum)
}

impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, executions, seconds, score, checksum, wrong } = self;
        write!(f, "{kernel:15} {executions:8} executions {seconds:9.3} s {score:9.1} Mflops")?;
        write!(f, "  checksum {checksum}")?;
        if *wrong > 0 {
            write!(f, ", wrong {wrong} times")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} threads, {:.3} s", self.threads, self.elapsed_s)?;
        self.kernels.iter().try_for_each(|kernel| kernel.fmt(f))
    }
}
