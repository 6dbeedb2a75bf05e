//! The report of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Ratio;

/// The result of one run; the JSON form of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Parallel to serial work.
    pub ratio: Ratio,
    /// Threads, the main one included: the n of eq. 1.
    pub threads: u32,
    /// Seed of the sequence of phases.
    pub seed: u64,
    /// Mean length of a phase in iterations of one thread.
    pub mean_phase_iterations: f64,
    /// Where the mean length came from.
    pub calibration: Calibration,
    /// Seconds from the start of the first phase to the end of the last.
    pub elapsed_s: f64,
    /// Why it ended.
    pub ended_by: Ended,
    /// Work of the serial phases.
    pub serial: Work,
    /// Work of the parallel phases.
    pub parallel: Work,
    /// Iterations per second of both kinds: the paper's performance (Fig. 3).
    pub iterations_per_s: f64,
    /// Seconds on a CPU, all threads; absent where the kernel does not report it.
    pub cpu_s: Option<f64>,
    /// Times that a thread went to sleep.
    pub voluntary_switches: Option<u64>,
    /// Times that a thread was preempted.
    pub involuntary_switches: Option<u64>,
    /// When each phase was, in order, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Vec<Span>>,
}

/// When a phase was, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Was it a parallel one?
    pub parallel: bool,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// Work of one kind of phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Iterations done.
    pub iterations: u64,
    /// Iterations per second of the whole run, so that the two kinds add up.
    pub iterations_per_s: f64,
    /// Phases in which work was done.
    pub phases: u64,
    /// Seconds spent in them.
    pub seconds: f64,
}

/// Where the mean length of a phase came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calibration {
    /// Given on the command line, so that runs can be compared.
    Given,
    /// Measured as the run began, under whatever load there was.
    Measured,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its time was over.
    Time,
    /// Its work was done.
    Work,
    /// SIGTERM or SIGINT.
    Signal,
}

impl Report {
    /// Progress through the sequence of phases, in iterations of one thread
    /// per second: serial iterations plus parallel ones divided by n.
    ///
    /// It is the rate at which the program gets through its own, fixed sequence
    /// of phases. Iterations per second weigh a second of a parallel phase n
    /// times as much as one of a serial phase, so a short run that happens to
    /// end in the one or the other seems fast or slow; progress does not have
    /// that error, and for long runs both are the same up to a constant.
    #[must_use]
    pub fn progress_per_s(&self) -> f64 {
        let cores = f64::from(self.threads.max(1));
        self.serial.iterations_per_s + self.parallel.iterations_per_s / cores
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ratio {} on {} threads, seed {}", self.ratio, self.threads, self.seed)?;
        let ended = match self.ended_by {
            Ended::Time => "time over",
            Ended::Work => "work done",
            Ended::Signal => "stopped by a signal",
        };
        writeln!(f, "elapsed {:.3} s ({ended})", self.elapsed_s)?;
        for (name, work) in [("serial", self.serial), ("parallel", self.parallel)] {
            writeln!(
                f,
                "{name:8} {:12.0} iterations/s in {} phases, {:.3} s",
                work.iterations_per_s, work.phases, work.seconds
            )?;
        }
        writeln!(f, "together {:12.0} iterations/s", self.iterations_per_s)?;
        if let Some(cpu) = self.cpu_s {
            writeln!(f, "CPU time {cpu:.3} s")?;
        }
        if let (Some(slept), Some(preempted)) = (self.voluntary_switches, self.involuntary_switches)
        {
            writeln!(f, "context switches: {slept} sleeps, {preempted} preemptions")?;
        }
        if self.calibration == Calibration::Measured {
            writeln!(
                f,
                "phase lengths were calibrated as the run began; give --rate to compare runs"
            )?;
        }
        Ok(())
    }
}
