//! The calculation.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Iterations that a thread takes from the shared counter at a time: 50 to
/// 200 µs of work on processors of the last fifteen years.
pub const CHUNK: u64 = 100;

/// Rounds of the generator in one iteration: about one microsecond.
const ROUNDS: u32 = 512;

/// Performs this many iterations and returns their result.
///
/// One iteration is a dependent chain of 64-bit xorshift rounds with a
/// floating-point multiply-add in each. It lives in registers, so two programs
/// that run it share nothing but time on the cores.
#[must_use]
pub fn calculate(iterations: u64, seed: u64) -> u64 {
    let mut x = black_box(seed | 1);
    let mut y = 1.0_f64;
    for _ in 0..iterations {
        for _ in 0..ROUNDS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            y = y * 0.5 + (x & 0xff) as f64;
        }
    }
    black_box(x ^ y.to_bits())
}

/// When to stop: looked at once per chunk.
#[derive(Debug, Clone)]
pub struct Stop {
    deadline: Option<Instant>,
    signal: Arc<AtomicBool>,
}

impl Stop {
    /// Stops when the flag is raised, and at the deadline if there is one.
    #[must_use]
    pub fn new(deadline: Option<Instant>, signal: Arc<AtomicBool>) -> Self {
        Self { deadline, signal }
    }

    /// Is it time?
    #[must_use]
    pub fn reached(&self) -> bool {
        self.signalled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Was the flag raised?
    #[must_use]
    pub fn signalled(&self) -> bool {
        self.signal.load(Ordering::Relaxed)
    }
}

/// Performs up to this many iterations, chunk by chunk; returns how many were
/// done before it was time to stop.
#[must_use]
pub fn until_stopped(iterations: u64, stop: &Stop) -> u64 {
    let mut done = 0;
    while done < iterations && !stop.reached() {
        let chunk = CHUNK.min(iterations - done);
        let _ = calculate(chunk, done);
        done += chunk;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calculation_depends_on_each_iteration() {
        let results: std::collections::BTreeSet<u64> = (0..20).map(|n| calculate(n, 42)).collect();
        assert_eq!(results.len(), 20);
    }

    #[test]
    fn a_raised_flag_ends_the_work_before_the_next_chunk() {
        let flag = Arc::new(AtomicBool::new(true));
        assert_eq!(until_stopped(1_000, &Stop::new(None, flag.clone())), 0);
        flag.store(false, Ordering::Relaxed);
        assert_eq!(until_stopped(250, &Stop::new(None, flag)), 250);
    }
}
