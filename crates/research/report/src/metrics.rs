//! What a run is judged by: speedup, fairness, jitter, throughput, STP, ANTT.
//!
//! # Problem
//! Papers name these figures differently and divide them by different
//! references. Every experiment here must mean the same by the same word.
//!
//! # Approach
//! One pure function per figure; its doc names the equation and the reference.
//! A figure that its input does not define (no runs, a rate or time that is
//! not positive) is absent, never 0, 1 or NaN.
//!
//! # Terms and units
//! A *rate* is work per time (iterations/s), a *time* is a duration; both
//! arguments of a ratio have the same unit. *Alone*: by itself on the whole
//! machine. *Together*: while the other programs run. Equations are those of
//! Morad et al. unless said otherwise. All figures but [`throughput`] are
//! ratios without unit.
//!
//! # Properties
//! - Fairness lies in 0…1 and does not depend on the order of the programs
//!   (`fairness_lies_in_zero_to_one_and_is_symmetric`).
//! - Jitter does not depend on the unit of time (`jitter_is_free_of_scale`).
//! - STP × ANTT is at least the number of programs, as the arithmetic mean of
//!   speedups is at least their harmonic one (`stp_and_antt_keep_their_bound`).

use crate::stats;

#[cfg(test)]
mod tests;

/// Fairness: the smallest ratio of two programs' speedups (eq. 4, for any
/// number of programs). 1 is completely fair, 0 completely unfair.
#[must_use]
pub fn fairness(speedups: &[f64]) -> Option<f64> {
    let valid = speedups.iter().all(|s| s.is_finite() && *s >= 0.0);
    let least = speedups.iter().copied().reduce(f64::min)?;
    let most = speedups.iter().copied().reduce(f64::max)?;
    (valid && most > 0.0).then(|| least / most)
}

/// Jitter: standard deviation of a program's times in units of their mean,
/// over the same experiment run N times (eq. 6, divisor N). Of a benchmark
/// that runs for a fixed time, give the times per unit of work (1 / rate).
/// Absent for fewer than two runs.
#[must_use]
pub fn jitter(times: &[f64]) -> Option<f64> {
    all_positive(times)?;
    if times.len() < 2 {
        return None;
    }
    let mean = stats::mean(times)?;
    let squares: Vec<f64> = times.iter().map(|t| (t / mean - 1.0).powi(2)).collect();
    stats::mean(&squares).map(f64::sqrt)
}

/// Throughput: the programs' rates of work, summed (Morad et al., section 4).
/// Only programs that do the same kind of work may be summed. Unit: that of
/// the rates.
#[must_use]
pub fn throughput(rates: &[f64]) -> Option<f64> {
    let valid = !rates.is_empty() && rates.iter().all(|r| r.is_finite() && *r >= 0.0);
    valid.then(|| rates.iter().sum())
}

/// System throughput (weighted speedup): Σ T_alone / T_together = Σ speedup.
/// Higher is better; the number of programs if none slows another.
#[must_use]
pub fn stp(speedups: &[f64]) -> Option<f64> {
    throughput(speedups)
}

/// Average normalised turnaround time: mean of T_together / T_alone =
/// mean of 1 / speedup. Lower is better; 1 if none slows another.
#[must_use]
pub fn antt(speedups: &[f64]) -> Option<f64> {
    all_positive(speedups)?;
    let slowdowns: Vec<f64> = speedups.iter().map(|s| s.recip()).collect();
    stats::mean(&slowdowns)
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn all_positive(values: &[f64]) -> Option<()> {
    (!values.is_empty() && values.iter().all(|v| is_positive(*v))).then_some(())
}
