//! What one thread does.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::kernel::{Kernel, Workload};
use crate::work::Stop;

/// What was done of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Executions.
    pub(super) executions: u64,
    /// Wall-clock time within them.
    pub(super) time: Duration,
    /// Executions whose checksum was not the expected one.
    pub(super) wrong: u64,
}

impl Done {
    /// Adds what another thread did.
    pub(super) fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.time += other.time;
        self.wrong += other.wrong;
    }
}

/// A kernel with its data and what is to be expected of it.
pub(super) struct Task {
    pub(super) kernel: Kernel,
    workload: Box<dyn Workload>,
    expected: u64,
    pub(super) done: Done,
}

impl Task {
    pub(super) fn new(kernel: Kernel, seed: u64, expected: u64) -> Self {
        Self { kernel, workload: kernel.workload(seed), expected, done: Done::default() }
    }

    /// Executes the kernel this many times, or until it is time to stop.
    pub(super) fn execute(&mut self, times: u64, stop: &Stop) {
        for _ in 0..times {
            if stop.reached() {
                return;
            }
            let begin = Instant::now();
            let checksum = self.workload.execute();
            self.done.time += begin.elapsed();
            self.done.executions += 1;
            self.done.wrong += u64::from(checksum != self.expected);
        }
    }
}

/// Runs rounds of all tasks, in a random order each, until it is time to stop or all rounds are
/// done.
pub(super) fn rounds(tasks: &mut [Task], repeat: u64, rounds: Option<u64>, seed: u64, stop: &Stop) {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut left = rounds.unwrap_or(u64::MAX);
    while left > 0 && !stop.reached() {
        tasks.shuffle(&mut rng);
        for task in &mut *tasks {
            task.execute(repeat, stop);
        }
        left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn tasks(expected: u64) -> Vec<Task> {
        Kernel::SCIMARK.map(|kernel| Task::new(kernel, 1, expected)).into()
    }

    fn never() -> Stop {
        Stop::new(None, Arc::new(AtomicBool::new(false)))
    }

    #[test]
    fn each_thread_runs_all_kernels_in_each_round() {
        let mut tasks = tasks(0);
        rounds(&mut tasks, 2, Some(3), 7, &never());
        assert!(tasks.iter().all(|task| task.done.executions == 6));
        let mut kernels: Vec<Kernel> = tasks.iter().map(|task| task.kernel).collect();
        kernels.sort_unstable();
        assert_eq!(kernels, Kernel::SCIMARK);
    }

    #[test]
    fn order_depends_on_the_seed() {
        let order = |seed| {
            let mut tasks = tasks(0);
            rounds(&mut tasks, 0, Some(1), seed, &never());
            tasks.iter().map(|task| task.kernel).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        let orders: std::collections::BTreeSet<_> = (0..50).map(order).collect();
        assert!(orders.len() > 20, "{}", orders.len());
    }

    #[test]
    fn wrong_results_are_counted() {
        let mut task = Task::new(Kernel::MonteCarlo, 1, 0);
        task.execute(3, &never());
        assert_eq!((task.done.executions, task.done.wrong), (3, 3));
    }

    #[test]
    fn raised_flag_ends_the_rounds() {
        let stop = Stop::new(None, Arc::new(AtomicBool::new(true)));
        let mut tasks = tasks(0);
        rounds(&mut tasks, 1, None, 1, &stop);
        assert!(tasks.iter().all(|task| task.done == Done::default()));
    }
}
