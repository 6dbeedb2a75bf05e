//! How fast one thread calculates.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::work::{CHUNK, calculate};

/// Speed of one thread; the JSON form of `calibrate --json`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Iterations per second: the fastest of the samples, which is the one that
    /// was least disturbed.
    pub iterations_per_s: f64,
    /// The median sample relative to the fastest, 0…1; well below one means
    /// that something else was running.
    pub median_share: f64,
    /// Samples taken.
    pub samples: u32,
}

const SAMPLES: u32 = 25;
const SAMPLE: Duration = Duration::from_millis(10);

/// Measures for about a quarter of a second, on one thread. Meant for an idle
/// machine: with co-runners the fastest sample may still be too slow.
#[must_use]
pub fn measure() -> Rate {
    let mut rates: Vec<f64> = (0..SAMPLES).map(|_| sample()).collect();
    rates.sort_by(f64::total_cmp);
    let fastest = rates.last().copied().unwrap_or_default();
    let median = rates.get(rates.len() / 2).copied().unwrap_or_default();
    Rate { iterations_per_s: fastest, median_share: median / fastest, samples: SAMPLES }
}

fn sample() -> f64 {
    let begin = Instant::now();
    let mut done = 0;
    while begin.elapsed() < SAMPLE {
        let _ = calculate(CHUNK, done);
        done += CHUNK;
    }
    done as f64 / begin.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_never_beats_the_fastest() {
        let rate = measure();
        assert!(rate.iterations_per_s > 0.0);
        assert!(rate.median_share > 0.0 && rate.median_share <= 1.0);
    }
}
