//! Starts the threads and sums up what they did.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::kernel::Kernel;
use super::report::{KernelReport, Report};
use super::worker::{Done, Task, rounds};
use crate::Error;
use crate::work::Stop;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that run kernels; the main one waits.
    pub threads: u32,
    /// The kernels of a round.
    pub kernels: Vec<Kernel>,
    /// Executions of a kernel before the next one's turn.
    pub repeat: u64,
    /// When to end.
    pub until: Until,
    /// Seed of the data and of the orders.
    pub seed: u64,
}

/// When a run ends, if no signal ends it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When each thread has run this many rounds.
    Rounds(u64),
    /// When this much time has passed since all threads stood.
    Elapsed(Duration),
}

/// What the threads do, by kernel.
type ByKernel = BTreeMap<Kernel, Done>;

/// When the run began; none yet, or never because a thread is missing.
type Begin = RwLock<Option<Instant>>;

/// Starts the threads, lets them run, and sums up what they did.
///
/// # Errors
/// When the system refuses a thread; those that stand are ended first.
pub fn run(options: &Options, signal: &Arc<AtomicBool>) -> Result<Report, Error> {
    let expected: BTreeMap<Kernel, u64> = options
        .kernels
        .iter()
        .map(|kernel| (*kernel, kernel.workload(options.seed).execute()))
        .collect();
    let begin = Begin::new(None);
    let mut sums: ByKernel = expected.keys().map(|kernel| (*kernel, Done::default())).collect();
    let elapsed = std::thread::scope(|scope| {
        let mut gate = begin.write().unwrap_or_else(PoisonError::into_inner);
        let threads: Result<Vec<ScopedJoinHandle<'_, ByKernel>>, std::io::Error> = (0..options
            .threads)
            .map(|number| {
                let builder = Builder::new().name(format!("synth-{number}"));
                let (begin, expected) = (&begin, &expected);
                builder.spawn_scoped(scope, move || work(options, number, expected, begin, signal))
            })
            .collect();
        // Those that stand end at once if one is missing.
        let threads = threads.map_err(Error::Thread)?;
        let start = Instant::now();
        *gate = Some(start);
        drop(gate);
        // They run nothing that can panic.
        threads.into_iter().filter_map(|thread| thread.join().ok()).for_each(|done| {
            done.iter().for_each(|(kernel, done)| sums.entry(*kernel).or_default().add(done));
        });
        Ok(start.elapsed())
    })?;
    Ok(Report {
        threads: options.threads,
        seed: options.seed,
        repeat: options.repeat,
        elapsed_s: elapsed.as_secs_f64(),
        kernels: expected
            .iter()
            .filter_map(|(kernel, sum)| Some(KernelReport::new(*kernel, sums.get(kernel)?, *sum)))
            .collect(),
    })
}

/// One thread, from its data to its end.
fn work(
    options: &Options,
    number: u32,
    expected: &BTreeMap<Kernel, u64>,
    begin: &Begin,
    signal: &Arc<AtomicBool>,
) -> ByKernel {
    let mut tasks: Vec<Task> =
        expected.iter().map(|(kernel, sum)| Task::new(*kernel, options.seed, *sum)).collect();
    let Some(start) = *begin.read().unwrap_or_else(PoisonError::into_inner) else {
        return ByKernel::new();
    };
    let (count, deadline) = match options.until {
        Until::Rounds(count) => (Some(count), None),
        Until::Elapsed(time) => (None, start.checked_add(time)),
    };
    let stop = Stop::new(deadline, Arc::clone(signal));
    let order = options.seed.wrapping_add(u64::from(number) + 1);
    rounds(&mut tasks, options.repeat, count, order, &stop);
    tasks.into_iter().map(|task| (task.kernel, task.done)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(threads: u32, until: Until) -> Report {
        let kernels = vec![Kernel::MonteCarlo, Kernel::Fft, Kernel::Fft];
        let options = Options { threads, kernels, repeat: 2, until, seed: 5 };
        run(&options, &Arc::new(AtomicBool::new(false))).unwrap()
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let one = done(1, Until::Rounds(3));
        let five = done(5, Until::Rounds(3));
        assert_eq!((one.kernels.len(), five.kernels.len()), (2, 2));
        for (one, five) in one.kernels.iter().zip(&five.kernels) {
            assert_eq!((one.kernel, &one.checksum), (five.kernel, &five.checksum));
            assert_eq!((one.executions, five.executions), (6, 30));
        }
        assert_eq!((one.wrong(), five.wrong()), (0, 0));
    }

    #[test]
    fn run_of_a_given_time_lasts_that_long() {
        let report = done(2, Until::Elapsed(Duration::from_millis(100)));
        assert!(report.elapsed_s >= 0.1);
        assert!(report.kernels.iter().all(|kernel| kernel.score > 0.0));
    }
}
