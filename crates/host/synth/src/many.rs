//! A program of many threads, for measuring what managing them costs.
//!
//! None begins before all stand: hundreds that compute while the rest are made
//! would keep the main thread from making them, for many seconds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::usage::Usage;
use crate::work::{CHUNK, Stop, calculate};

/// What a run consists of.
#[derive(Debug, Clone)]
pub struct ThreadsOptions {
    /// Threads in addition to the main one, which only waits.
    pub count: u32,
    /// How many of them never sleep.
    pub busy: u32,
    /// Times per second that each of the others wakes.
    pub wakes_per_s: f64,
    /// Iterations that it does then.
    pub work: u64,
    /// How long.
    pub duration: Duration,
    /// Seed of the moments at which they wake first.
    pub seed: u64,
}

/// The result; the JSON form of `threads --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Threads in addition to the main one.
    pub count: u32,
    /// Those that never slept.
    pub busy: u32,
    /// Wakes that each of the others was asked for, per second.
    pub wakes_per_s: f64,
    /// Iterations asked for at each wake.
    pub work: u64,
    /// Seconds from the moment all threads stood to the end.
    pub elapsed_s: f64,
    /// Wakes that were carried out, all threads.
    pub wakes: u64,
    /// Iterations of the busy threads.
    pub busy_iterations: u64,
    /// Seconds on a CPU, all threads; absent where the kernel does not report it.
    pub cpu_s: Option<f64>,
}

#[derive(Debug, Default)]
struct Team {
    wakes: AtomicU64,
    busy_iterations: AtomicU64,
    state: Mutex<TeamState>,
    /// The state changed.
    next: Condvar,
}

/// The work of the threads now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TeamState {
    /// Wait until all stand.
    #[default]
    Making,
    /// The requested work.
    Running,
    /// End.
    Over,
}

/// Starts the threads, lets them run, ends them.
///
/// # Errors
/// When the system refuses a thread; those that stand are ended first.
pub fn run(options: &ThreadsOptions, stop: &Arc<AtomicBool>) -> Result<Report, Error> {
    let team = Arc::new(Team::default());
    let mut rng = Pcg64::seed_from_u64(options.seed);
    let period = Duration::from_secs_f64(1.0 / options.wakes_per_s.max(1e-3));
    let mut threads = Vec::new();
    let mut refused = None;
    for number in 0..options.count {
        let (team, stop, work) = (Arc::clone(&team), Arc::clone(stop), options.work);
        let first = period.mul_f64(rng.random::<f64>());
        let builder = Builder::new().name(format!("synth-{number}")).stack_size(64 * 1024);
        let thread = if number < options.busy {
            builder.spawn(move || team.compute(&Stop::new(None, stop)))
        } else {
            builder.spawn(move || team.wake_now_and_then(first, period, work))
        };
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    if refused.is_none() {
        team.enter(TeamState::Running);
    }
    let begin = Instant::now();
    let stop_at = Stop::new(begin.checked_add(options.duration), Arc::clone(stop));
    while refused.is_none() && !stop_at.reached() {
        let left = options.duration.saturating_sub(begin.elapsed());
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
    let elapsed_s = begin.elapsed().as_secs_f64();
    let usage = Usage::of_this_process();
    stop.store(true, Ordering::Relaxed);
    team.enter(TeamState::Over);
    for thread in threads {
        // They run nothing that can panic.
        let _ = thread.join();
    }
    if let Some(error) = refused {
        return Err(Error::Thread(error));
    }
    Ok(Report {
        count: options.count,
        busy: options.busy.min(options.count),
        wakes_per_s: options.wakes_per_s,
        work: options.work,
        elapsed_s,
        wakes: team.wakes.load(Ordering::Relaxed),
        busy_iterations: team.busy_iterations.load(Ordering::Relaxed),
        cpu_s: usage.cpu_s,
    })
}

impl Team {
    fn enter(&self, state: TeamState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.next.notify_all();
    }

    /// Waits until all threads stand.
    fn begun(&self) -> MutexGuard<'_, TeamState> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let made = self.next.wait_while(state, |state| *state == TeamState::Making);
        made.unwrap_or_else(PoisonError::into_inner)
    }

    fn compute(&self, stop: &Stop) {
        drop(self.begun());
        while !stop.reached() {
            let _ = calculate(CHUNK, 1);
            self.busy_iterations.fetch_add(CHUNK, Ordering::Relaxed);
        }
    }

    /// Wakes at `first` and then once a period; a wake that comes too late is
    /// left out, not made up for.
    fn wake_now_and_then(&self, first: Duration, period: Duration, work: u64) {
        let mut state = self.begun();
        let begin = Instant::now();
        let mut next = first;
        while *state != TeamState::Over {
            let left = next.saturating_sub(begin.elapsed());
            if left.is_zero() {
                drop(state);
                let _ = calculate(work, 1);
                self.wakes.fetch_add(1, Ordering::Relaxed);
                while next <= begin.elapsed() {
                    next += period;
                }
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            } else {
                let waited = self.next.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_threads_calculate_and_the_others_wake() {
        let options = ThreadsOptions {
            count: 6,
            busy: 1,
            wakes_per_s: 100.0,
            work: 5,
            duration: Duration::from_millis(300),
            seed: 1,
        };
        let report = run(&options, &Arc::new(AtomicBool::new(false))).unwrap();
        assert!(report.busy_iterations >= CHUNK);
        assert!(report.wakes >= 1);
        assert!(report.elapsed_s >= 0.3);
    }
}
