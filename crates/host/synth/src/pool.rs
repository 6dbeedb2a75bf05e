//! Fork and join on threads that sleep between parallel phases.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::work::{CHUNK, Stop, calculate};

/// A team of threads, of which the caller is one.
///
/// Between phases the others wait on a condition variable (a futex): they are
/// asleep for the kernel and do not count as ready. Threads that spin while
/// they wait would make a serial phase look parallel.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    others: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    turn: Mutex<Turn>,
    fork: Condvar,
    join: Condvar,
    /// Iterations of the phase that are already taken; runs past the total.
    taken: AtomicU64,
    /// Iterations of the phase that are finished.
    done: AtomicU64,
    stop: Stop,
}

/// The work of the team.
#[derive(Debug, Default)]
struct Turn {
    phase: u64,
    iterations: u64,
    working: usize,
    closing: bool,
}

impl Pool {
    /// Starts a team of `threads` (at least one: the caller).
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(threads: u32, stop: Stop) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            turn: Mutex::default(),
            fork: Condvar::new(),
            join: Condvar::new(),
            taken: AtomicU64::new(0),
            done: AtomicU64::new(0),
            stop,
        });
        let mut pool = Self { shared, others: Vec::new() };
        for number in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let other = Builder::new().name(format!("synth-{number}")).stack_size(64 * 1024);
            pool.others.push(other.spawn(move || shared.serve())?);
        }
        Ok(pool)
    }

    /// Does one parallel phase on all threads and waits for the last of them;
    /// returns the iterations that were done before it was time to stop.
    pub fn parallel(&mut self, iterations: u64) -> u64 {
        self.shared.taken.store(0, Ordering::Relaxed);
        self.shared.done.store(0, Ordering::Relaxed);
        {
            let mut turn = self.shared.lock();
            turn.phase += 1;
            turn.iterations = iterations;
            turn.working = self.others.len();
        }
        self.shared.fork.notify_all();
        self.shared.take_chunks(iterations);
        let mut turn = self.shared.lock();
        while turn.working > 0 {
            turn = self.shared.join.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        self.shared.done.load(Ordering::Relaxed)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.fork.notify_all();
        for other in self.others.drain(..) {
            // A thread of the team runs nothing that can panic.
            let _ = other.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut seen = 0;
        loop {
            let iterations = {
                let mut turn = self.lock();
                while turn.phase == seen && !turn.closing {
                    turn = self.fork.wait(turn).unwrap_or_else(PoisonError::into_inner);
                }
                if turn.closing {
                    return;
                }
                seen = turn.phase;
                turn.iterations
            };
            self.take_chunks(iterations);
            let mut turn = self.lock();
            turn.working -= 1;
            if turn.working == 0 {
                self.join.notify_one();
            }
        }
    }

    /// The dynamic schedule of Fig. 3: take a chunk from the shared counter,
    /// do it, come back for more.
    fn take_chunks(&self, iterations: u64) {
        while !self.stop.reached() {
            let first = self.taken.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= iterations {
                return;
            }
            let chunk = CHUNK.min(iterations - first);
            let _ = calculate(chunk, first);
            self.done.fetch_add(chunk, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn never() -> Stop {
        Stop::new(None, Arc::new(AtomicBool::new(false)))
    }

    #[test]
    fn a_phase_does_exactly_its_iterations_on_any_team() {
        for threads in [1, 2, 5] {
            let mut pool = Pool::start(threads, never()).unwrap();
            for iterations in [0, 1, CHUNK - 1, CHUNK, 7 * CHUNK + 3] {
                assert_eq!(pool.parallel(iterations), iterations, "{threads} threads");
            }
        }
    }

    #[test]
    fn a_stopped_team_still_joins() {
        let flag = Arc::new(AtomicBool::new(true));
        let mut pool = Pool::start(4, Stop::new(None, flag)).unwrap();
        assert_eq!(pool.parallel(1_000_000_000), 0);
    }
}
