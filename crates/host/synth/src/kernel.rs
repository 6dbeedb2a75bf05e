//! Kernels of known speed ([`symbiont_linux::kernels`]) as programs: for some rounds, or for some time.
//!
//! # Problem
//! How much two programs slow each other down on one core shows only while both run. Two programs of equal rounds
//! end at different times.
//!
//! # Approach
//! Both run for the same time from the same moment, in pieces of some milliseconds, and count what they did. Speed is
//! per second of CPU time, so that time in which others had the CPU drops out; it is said how much that was.
//!
//! # Properties
//! - A run for some time counts its work and its time (`a_kernel_runs_for_some_time`, in `tests/program.rs`).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_linux::kernels::{LoopKernel, Memory};

use crate::Error;
use crate::run::{moment, sleep_until};
use crate::work::Stop;

/// Pieces after which it is looked whether the time is over take at least so long.
const PIECE: Duration = Duration::from_millis(2);

/// What a kernel did; the JSON form of `kernel --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its name.
    pub kernel: String,
    /// Operations that it executed.
    pub operations: u64,
    /// CPU time of each.
    pub ns_per_operation: f64,
    /// CPU time of all.
    pub cpu_s: f64,
    /// Time from begin to end.
    pub elapsed_s: f64,
}

impl Report {
    fn new(kernel: LoopKernel, rounds: u64, cpu: Duration, elapsed: Duration) -> Self {
        let operations = rounds * kernel.operations;
        Self {
            kernel: kernel.name.to_owned(),
            operations,
            ns_per_operation: cpu.as_secs_f64() * 1e9 / operations.max(1) as f64,
            cpu_s: cpu.as_secs_f64(),
            elapsed_s: elapsed.as_secs_f64(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, ns_per_operation, .. } = self;
        writeln!(f, "{ns_per_operation:.3} ns for each of {operations} operations")
    }
}

/// Executes so many rounds, at least one.
///
/// # Errors
/// When there is no memory for it.
pub fn rounds(kernel: LoopKernel, rounds: u64) -> Result<Report, Error> {
    let memory = kernel.memory().map_err(Error::Memory)?;
    let begin = Instant::now();
    let cpu = memory.time(rounds);
    Ok(Report::new(kernel, rounds.max(1), cpu, begin.elapsed()))
}

/// Executes it for some time, from a moment on or at once, or until the flag is raised.
///
/// # Errors
/// When there is no memory for it, or the moment is past.
pub fn run(
    kernel: LoopKernel,
    time: Duration,
    start_at: Option<SystemTime>,
    stop: &Arc<AtomicBool>,
) -> Result<Report, Error> {
    let mut memory = kernel.memory().map_err(Error::Memory)?;
    let mut piece = piece(kernel, &mut memory);
    // After what takes time: one that is not ready by then is late.
    let begin = match start_at {
        Some(at) => moment(at)?,
        None => Instant::now(),
    };
    let stop = Stop::new(begin.checked_add(time), Arc::clone(stop));
    sleep_until(begin, &stop);
    let (mut rounds, mut cpu) = (0, Duration::ZERO);
    while !stop.reached() {
        let took = memory.go_on(piece);
        rounds += piece;
        cpu += took;
        if took < PIECE {
            piece *= 2;
        }
    }
    Ok(Report::new(kernel, rounds, cpu, begin.elapsed()))
}

/// Rounds of the first piece: what begins anew with each piece goes through all of its bytes in one.
fn piece(kernel: LoopKernel, memory: &mut Memory) -> u64 {
    let first = if kernel.chases() { 64 } else { kernel.pass().max(64) };
    // What is executed for the first time is slow.
    let _ = memory.go_on(first);
    first
}
