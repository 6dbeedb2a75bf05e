//! The benchmark itself (Fig. 3).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use crate::calibrate;
use crate::pool::Pool;
use crate::report::{Calibration, Ended, Report, Span, Work};
use crate::sequence::{Sequence, Shape};
use crate::usage::Usage;
use crate::work::{Stop, until_stopped};
use crate::{Error, Ratio};

/// RunOptions of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Parallel to serial work.
    pub ratio: Ratio,
    /// Threads, the main one included: the n of eq. 1.
    pub threads: u32,
    /// Mean length of a phase.
    pub mean: MeanPhase,
    /// When to end.
    pub until: Until,
    /// When to begin; at once if absent.
    pub start_at: Option<SystemTime>,
    /// Seed of the sequence of phases.
    pub seed: u64,
    /// Keep when each phase began and ended?
    pub log: bool,
}

/// Mean length of a phase on an idle machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MeanPhase {
    /// As work of one thread, which no load can change.
    Iterations(f64),
    /// As time, at a rate (iterations per second of one thread) that is given
    /// or, without one, measured as the run begins.
    Time(Duration, Option<f64>),
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After a time.
    Elapsed(Duration),
    /// After a number of iterations of both kinds.
    Iterations(u64),
}

/// Longest wait for `start_at`.
pub const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Runs the benchmark until it ends or the flag is raised.
///
/// # Errors
/// When the system refuses a thread, or the time to begin is past.
pub fn run(options: &RunOptions, stop: &Arc<AtomicBool>) -> Result<Report, Error> {
    let (mean, calibration) = mean_iterations(options.mean);
    let begin = match options.start_at {
        Some(at) => moment(at)?,
        None => Instant::now(),
    };
    let (deadline, budget) = match options.until {
        Until::Elapsed(time) => (begin.checked_add(time), u64::MAX),
        Until::Iterations(count) => (None, count),
    };
    let stop = Stop::new(deadline, Arc::clone(stop));
    // Before the wait: a manager of this program knows its threads when it begins.
    let mut pool = Pool::start(options.threads, stop.clone()).map_err(Error::Thread)?;
    sleep_until(begin, &stop);
    let shape = Shape { ratio: options.ratio, cores: options.threads, mean };
    let (mut serial, mut parallel) = (Work::default(), Work::default());
    let mut log = options.log.then(Vec::new);
    for cycle in Sequence::new(shape, options.seed) {
        let left = |serial: &Work, parallel: &Work| {
            budget.saturating_sub(serial.iterations + parallel.iterations)
        };
        let wanted = [cycle.parallel.min(left(&serial, &parallel)), 0];
        let begun = monotonic_ns();
        parallel.phase(wanted[0], |iterations| pool.parallel(iterations));
        let between = monotonic_ns();
        let wanted = [wanted[0], cycle.serial.min(left(&serial, &parallel))];
        serial.phase(wanted[1], |iterations| until_stopped(iterations, &stop));
        if let Some(log) = &mut log {
            let times = [begun, between, monotonic_ns()];
            log.extend(spans(wanted, times));
        }
        if stop.reached() || left(&serial, &parallel) == 0 {
            break;
        }
    }
    let elapsed_s = begin.elapsed().as_secs_f64();
    let usage = Usage::of_this_process();
    for work in [&mut serial, &mut parallel] {
        // Nothing elapsed if a signal came before the time to start.
        let rate = work.iterations as f64 / elapsed_s;
        work.iterations_per_s = if rate.is_finite() { rate } else { 0.0 };
    }
    Ok(Report {
        ratio: options.ratio,
        threads: options.threads,
        seed: options.seed,
        mean_phase_iterations: mean,
        calibration,
        elapsed_s,
        ended_by: match options.until {
            _ if stop.signalled() => Ended::Signal,
            Until::Elapsed(_) => Ended::Time,
            Until::Iterations(_) => Ended::Work,
        },
        serial,
        parallel,
        iterations_per_s: serial.iterations_per_s + parallel.iterations_per_s,
        cpu_s: usage.cpu_s,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        log,
    })
}

/// The phases of a cycle in which there was work to do: a parallel one, then a
/// serial one, with their begins and ends.
fn spans(work: [u64; 2], [begin, between, end]: [u64; 3]) -> impl Iterator<Item = Span> {
    let both = [
        (work[0], Span { parallel: true, begin_ns: begin, end_ns: between }),
        (work[1], Span { parallel: false, begin_ns: between, end_ns: end }),
    ];
    both.into_iter().filter(|(work, _)| *work > 0).map(|(_, span)| span)
}

/// The time of `CLOCK_MONOTONIC`, by which schedulers' events are stamped.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

impl Work {
    fn phase(&mut self, iterations: u64, work: impl FnOnce(u64) -> u64) {
        if iterations == 0 {
            return;
        }
        let begin = Instant::now();
        let done = work(iterations);
        self.iterations += done;
        self.seconds += begin.elapsed().as_secs_f64();
        self.phases += u64::from(done > 0);
    }
}

fn mean_iterations(mean: MeanPhase) -> (f64, Calibration) {
    match mean {
        MeanPhase::Iterations(count) => (count, Calibration::Given),
        MeanPhase::Time(time, Some(rate)) => (time.as_secs_f64() * rate, Calibration::Given),
        MeanPhase::Time(time, None) => {
            let rate = calibrate::measure().iterations_per_s;
            (time.as_secs_f64() * rate, Calibration::Measured)
        }
    }
}

/// A time of day as a moment on the steady clock, so that a program that the OS
/// lets begin late is seen as late.
pub(crate) fn moment(at: SystemTime) -> Result<Instant, Error> {
    let wait = at.duration_since(SystemTime::now()).map_err(|e| Error::Past(e.duration()))?;
    if wait > LONGEST_WAIT {
        return Err(Error::TooFar(wait));
    }
    Ok(Instant::now() + wait)
}

/// Sleeps in pieces, so that a signal is noticed.
pub(crate) fn sleep_until(begin: Instant, stop: &Stop) {
    loop {
        let left = begin.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.signalled() {
            break;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}
