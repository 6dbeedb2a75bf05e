//! A program that answers requests, for measuring how long they wait.
//!
//! Requests arrive at random moments, whether the one before is done or not (an open loop, so that a
//! slow answer delays those behind it, too). One thread sleeps until the next, works on it, and notes
//! the time from the arrival to the end of the work.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::work::{Stop, calculate};

/// RequestOptions of a run.
#[derive(Debug, Clone)]
pub struct RequestOptions {
    /// Requests per second, on average; the time between two is distributed exponentially.
    pub per_s: f64,
    /// Iterations for each (about one microsecond each).
    pub work: u64,
    /// Time before the first request that counts.
    pub warm_up: Duration,
    /// How long requests count.
    pub duration: Duration,
    /// Seed of the moments of arrival.
    pub seed: u64,
}

/// What was measured; the JSON form of `requests --json`. Latencies are microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Requests that counted.
    pub requests: u64,
    /// Half of them took no longer.
    pub median_us: f64,
    /// 99 % of them took no longer.
    pub p99_us: f64,
    /// 99.9 % of them took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Upper ends, each twice the one before, and how many requests lie below each and above the
    /// one before.
    pub histogram: Vec<(f64, u64)>,
}

/// Answers requests until the time is over or the flag is raised.
#[must_use]
pub fn run(options: &RequestOptions, stop: &Arc<AtomicBool>) -> Report {
    let mut rng = Pcg64::seed_from_u64(options.seed);
    let begin = Instant::now();
    let end = begin + options.warm_up + options.duration;
    let stop = Stop::new(Some(end), Arc::clone(stop));
    let mut arrival = begin;
    let mut latencies = Vec::new();
    loop {
        let gap = -(1.0 - rng.random::<f64>()).ln() / options.per_s;
        arrival += Duration::from_secs_f64(gap.min(3600.0));
        if arrival >= end || stop.signalled() {
            break;
        }
        std::thread::sleep(arrival.saturating_duration_since(Instant::now()));
        let _ = calculate(options.work, latencies.len() as u64);
        if arrival >= begin + options.warm_up {
            latencies.push(arrival.elapsed());
        }
    }
    report(latencies)
}

fn report(mut latencies: Vec<Duration>) -> Report {
    latencies.sort_unstable();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    // The least that so many are not above.
    let quantile = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let rank = (share * latencies.len() as f64).ceil() as usize;
        latencies.get(rank.saturating_sub(1)).copied().map_or(0.0, us)
    };
    let mut histogram: Vec<(f64, u64)> = Vec::new();
    for latency in latencies.iter().copied().map(us) {
        let mut upper = histogram.last().map_or(1.0, |(upper, _)| *upper);
        while upper < latency {
            upper *= 2.0;
        }
        match histogram.last_mut().filter(|(last, _)| *last == upper) {
            Some((_, count)) => *count += 1,
            None => histogram.push((upper, 1)),
        }
    }
    Report {
        requests: latencies.len() as u64,
        median_us: quantile(0.5),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        max_us: quantile(1.0),
        histogram,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_latencies() {
        let report = report((1..=1000).rev().map(Duration::from_micros).collect());
        assert_eq!(report.requests, 1000);
        let found = [report.median_us, report.p99_us, report.p999_us, report.max_us];
        for (found, wanted) in found.into_iter().zip([500.0, 990.0, 999.0, 1000.0]) {
            assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        }
        let counts: Vec<u64> = report.histogram.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 488]);
        assert_eq!(super::report(Vec::new()).max_us, 0.0);
    }

    #[test]
    fn requests_are_answered_until_the_end() {
        let options = RequestOptions {
            per_s: 500.0,
            work: 5,
            warm_up: Duration::from_millis(50),
            duration: Duration::from_millis(300),
            seed: 1,
        };
        let report = run(&options, &Arc::new(AtomicBool::new(false)));
        assert!(report.requests > 20 && report.max_us >= report.median_us, "{report:?}");
        let none = run(&options, &Arc::new(AtomicBool::new(true)));
        assert_eq!(none.requests, 0);
    }
}
