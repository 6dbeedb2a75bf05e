//! Estimates from repeated runs, with 95 % confidence intervals.
//!
//! # Problem
//! A figure without its spread says little. Runs are few (5 to 50) and some figures are skewed.
//!
//! # Approach
//! | figure | method |
//! |---|---|
//! | mean of runs | Student's t with n − 1 degrees of freedom |
//! | difference of two means | Welch's t, Welch–Satterthwaite degrees of freedom |
//! | ratio of two means | Welch's t of its logarithm |
//! | any other figure of few runs | jackknife, Student's t |
//! | anything skewed, of ten runs or more | percentile bootstrap of that statistic |
//! | anything of cells that share rows and columns | the same, rows and columns drawn apart |
//!
//! Workloads that are drawn from the same programs are not independent: a program that is easy to place is so in all of
//! them. [`crossed`] draws workloads and programs, each with replacement, and a cell counts as often as both together
//! (Owen, *The pigeonhole bootstrap*, Annals of Applied Statistics 1(2), 2007; Owen and Eckles, *Bootstrapping data
//! arrays of arbitrary order*, ibid. 6(3), 2012). No bootstrap is exact there; this one errs towards wide intervals.
//!
//! A percentile bootstrap of five runs is too narrow: it misses above or below in about one of twelve cases each, where
//! it should in one of forty. So few are judged by a jackknife, each value left out in turn (Efron and Stein, *The
//! jackknife estimate of variance*, Annals of Statistics 9(3), 1981): with θᵢ the statistic without value i of n, a
//! sample adds (n − 1)/n · Σ (θᵢ − θ̄)² to the squared error. Independent samples add up, with Welch's degrees of
//! freedom. For a mean, and a difference of two means, that is Student's and Welch's interval.
//!
//! An interval that the data can't give is absent. Random draws come from a stated seed.
//!
//! # Terms and units
//! Values carry the unit of the samples. Intervals are two-sided, 95 % ([`LEVEL`]).
//!
//! # Properties
//! - The interval of a mean contains it (`interval_contains_the_mean`).
//! - The order of the runs does not matter (`order_of_the_runs_does_not_matter`).
//! - Same data and seed, same bootstrap (`same_seed_gives_the_same_interval`).
//! - A jackknife of means is Student's and Welch's (`a_jackknife_of_means_is_students_and_welchs`),
//!   and of five runs it misses about as often as it says (`few_runs_are_judged_at_the_stated_level`).
//! - More workloads of the same programs do not make an interval narrow
//!   (`many_rows_of_few_columns_say_little_of_columns`).

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

#[cfg(test)]
mod tests;

/// Confidence level of every interval of this crate.
pub const LEVEL: f64 = 0.95;

/// Resamples drawn for a percentile bootstrap.
pub const RESAMPLES: u32 = 10_000;

/// How an [`Estimate`] was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Mean, with Student's t interval.
    StudentT,
    /// Difference of two means, with Welch's t interval.
    Welch,
    /// Any statistic, with a percentile bootstrap interval.
    Bootstrap,
    /// Ratio of two means, with Welch's t interval of its logarithm.
    Ratio,
    /// Any statistic, with a jackknife interval.
    Jackknife,
    /// Computed, not measured: a model's value or a published one.
    Exact,
}

impl Method {
    /// The name of the interval as a caption states it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StudentT => "Student's t",
            Self::Welch => "Welch's t",
            Self::Bootstrap => "percentile bootstrap",
            Self::Ratio => "Welch's t of the logarithm",
            Self::Jackknife => "jackknife, Student's t",
            Self::Exact => "exact",
        }
    }
}

/// The two ends of a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Upper end − lower end.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether `value` lies in the interval, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// A figure with what is known of its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure itself: mean, difference or statistic.
    pub value: f64,
    /// Its 95 % interval; absent when there are fewer than two values.
    pub interval: Option<Interval>,
    /// Number of values it rests on (of two samples, both together).
    pub n: usize,
    /// Where value and interval come from.
    pub method: Method,
}

impl Estimate {
    /// A value that was not measured: of a model, or published.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, interval: None, n: 0, method: Method::Exact }
    }

    /// Lower end of the interval, if there is one.
    #[must_use]
    pub fn low(&self) -> Option<f64> {
        self.interval.map(|i| i.low)
    }

    /// Upper end of the interval, if there is one.
    #[must_use]
    pub fn high(&self) -> Option<f64> {
        self.interval.map(|i| i.high)
    }

    /// In a unit that is `factor` times as small; the factor is positive.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let interval = |i: Interval| Interval { low: factor * i.low, high: factor * i.high };
        Self { value: factor * self.value, interval: self.interval.map(interval), ..self }
    }

    /// A share as a percentage.
    #[must_use]
    pub fn percent(self) -> Self {
        self.times(100.0)
    }
}

/// Why samples give no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StatsError {
    /// There are no values at all.
    #[error("no values to estimate from: at least one run must have finished")]
    Empty,
    /// A value is infinite or not a number.
    #[error("value {index} (from 0) is not a finite number")]
    NotFinite {
        /// Its place in the samples.
        index: usize,
    },
}

/// Arithmetic mean; absent for no values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    // Summed in sorted order, so that the order of the runs cannot matter.
    Some(sorted(values).iter().sum::<f64>() / values.len() as f64)
}

/// Median; of an even number of values the mean of the middle two.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(&sorted(values), 0.5)
}

/// Sample standard deviation (divisor n − 1); absent for fewer than two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: Vec<f64> = values.iter().map(|v| (v - mean).powi(2)).collect();
    Some((sorted(&squares).iter().sum::<f64>() / (values.len() - 1) as f64).sqrt())
}

/// Mean of `values` with Student's t interval.
pub fn mean_estimate(values: &[f64]) -> Result<Estimate, StatsError> {
    mean_estimate_at(values, LEVEL)
}

/// The same at another level than that of reports, for decisions.
pub fn mean_estimate_at(values: &[f64], level: f64) -> Result<Estimate, StatsError> {
    check(values)?;
    let value = mean(values).ok_or(StatsError::Empty)?;
    let n = values.len();
    let interval = standard_deviation(values)
        .map(|s| around(value, t_quantile_at((n - 1) as f64, level) * s / (n as f64).sqrt()));
    Ok(Estimate { value, interval, n, method: Method::StudentT })
}

/// `mean(left) − mean(right)` with Welch's t interval, for samples whose
/// variances may differ. The interval is absent if either has fewer than two
/// values.
pub fn difference_of_means(left: &[f64], right: &[f64]) -> Result<Estimate, StatsError> {
    check(left)?;
    check(right)?;
    let (l, r) = (mean(left).ok_or(StatsError::Empty)?, mean(right).ok_or(StatsError::Empty)?);
    let value = l - r;
    let interval = squared_error(left)
        .zip(squared_error(right))
        .map(|(vl, vr)| around(value, welch_half(&[vl, vr], &[left.len(), right.len()])));
    Ok(Estimate { value, interval, n: left.len() + right.len(), method: Method::Welch })
}

/// `statistic` of `values` with a percentile bootstrap interval: for skewed
/// figures such as jitter. Draws come from `seed`.
///
/// A statistic that is not finite for some resample leaves that resample out.
pub fn bootstrap(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    seed: u64,
) -> Result<Estimate, StatsError> {
    check(values)?;
    let ordered = sorted(values);
    let value = statistic(&ordered);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let interval = (values.len() >= 2)
        .then(|| percentile_interval(|| statistic(&resample(&ordered, &mut random))))
        .flatten();
    Ok(Estimate { value, interval, n: values.len(), method: Method::Bootstrap })
}

/// A bootstrap over rounds that were run alike: `statistic` gets the numbers,
/// from 0, of the rounds drawn, so that what belongs together is drawn together.
pub fn over_rounds(
    rounds: usize,
    seed: u64,
    statistic: impl Fn(&[usize]) -> f64,
) -> Result<Estimate, StatsError> {
    let numbers: Vec<f64> = (0..rounds).map(|round| round as f64).collect();
    let of = |drawn: &[f64]| statistic(&drawn.iter().map(|n| *n as usize).collect::<Vec<_>>());
    bootstrap(&numbers, of, seed)
}

/// A statistic of samples that were drawn apart, of so many values each, with a jackknife interval.
/// `statistic` gets the numbers, from 0, of the values that are taken of each sample, so that what belongs
/// together is left out together. The interval is absent if a sample has fewer than two values, or if the
/// statistic is not finite without one of them.
pub fn jackknife(
    counts: &[usize],
    statistic: impl Fn(&[Vec<usize>]) -> f64,
) -> Result<Estimate, StatsError> {
    if counts.contains(&0) {
        return Err(StatsError::Empty);
    }
    let all: Vec<Vec<usize>> = counts.iter().map(|&count| (0..count).collect()).collect();
    let error = |at: usize, count: usize| -> Option<f64> {
        let without = |out: usize| {
            let mut some = all.clone();
            some.get_mut(at)?.remove(out);
            Some(statistic(&some)).filter(|value| value.is_finite())
        };
        let values = (0..count).map(without).collect::<Option<Vec<f64>>>()?;
        let spread = standard_deviation(&values)?;
        let others = (count - 1) as f64;
        Some(spread * spread * others * others / count as f64)
    };
    let value = statistic(&all);
    let errors: Option<Vec<f64>> =
        counts.iter().enumerate().map(|(at, &count)| error(at, count)).collect();
    let interval = errors.map(|errors| around(value, welch_half(&errors, counts)));
    let n = counts.iter().sum();
    Ok(Estimate { value, interval, n, method: Method::Jackknife })
}

/// A bootstrap over cells of some rows and columns, such as programs in workloads, where what
/// belongs to a row or to a column is drawn together: `statistic` gets a weight for each row and
/// each column, all 1 for the figure itself, and a cell weighs the product of both. The interval is
/// absent for fewer than two rows or columns; the number of values is that of the rows.
pub fn crossed(
    (rows, columns): (usize, usize),
    seed: u64,
    statistic: impl Fn(&[f64], &[f64]) -> f64,
) -> Result<Estimate, StatsError> {
    if rows == 0 || columns == 0 {
        return Err(StatsError::Empty);
    }
    let value = statistic(&vec![1.0; rows], &vec![1.0; columns]);
    check(&[value])?;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let interval = (rows >= 2 && columns >= 2)
        .then(|| {
            percentile_interval(|| {
                let (rows, columns) = (drawn(rows, &mut random), drawn(columns, &mut random));
                statistic(&rows, &columns)
            })
        })
        .flatten();
    Ok(Estimate { value, interval, n: rows, method: Method::Bootstrap })
}

/// `mean(top) / mean(bottom)`, both measured, with Welch's t interval of its
/// logarithm (delta method). The interval is absent if either has fewer than
/// two values or a mean that is not positive.
pub fn ratio_of_means(top: &[f64], bottom: &[f64]) -> Result<Estimate, StatsError> {
    check(top)?;
    check(bottom)?;
    let (t, b) = (mean(top).ok_or(StatsError::Empty)?, mean(bottom).ok_or(StatsError::Empty)?);
    let value = t / b;
    let errors = squared_error(top).zip(squared_error(bottom)).filter(|_| t > 0.0 && b > 0.0);
    let interval = errors.map(|(vt, vb)| {
        let half = welch_half(&[vt / (t * t), vb / (b * b)], &[top.len(), bottom.len()]);
        Interval { low: value * (-half).exp(), high: value * half.exp() }
    });
    Ok(Estimate { value, interval, n: top.len() + bottom.len(), method: Method::Ratio })
}

/// Half of Welch's interval, from squared standard errors and the numbers
/// of values behind them.
fn welch_half(errors: &[f64], counts: &[usize]) -> f64 {
    let sum: f64 = errors.iter().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    let parts: f64 = errors.iter().zip(counts).map(|(e, &n)| e * e / (n - 1) as f64).sum();
    t_quantile(sum * sum / parts) * sum.sqrt()
}

fn check(values: &[f64]) -> Result<(), StatsError> {
    if values.is_empty() {
        return Err(StatsError::Empty);
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { index }),
        None => Ok(()),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut ordered = values.to_vec();
    ordered.sort_by(f64::total_cmp);
    ordered
}

/// Quantile of sorted values, linear between neighbours (Hyndman and Fan's
/// definition 7).
fn quantile(ordered: &[f64], p: f64) -> Option<f64> {
    let place = p * ordered.len().checked_sub(1)? as f64;
    let below = *ordered.get(place.floor() as usize)?;
    let above = *ordered.get(place.ceil() as usize)?;
    Some(below + (above - below) * place.fract())
}

/// Squared standard error of the mean.
fn squared_error(values: &[f64]) -> Option<f64> {
    standard_deviation(values).map(|s| s * s / values.len() as f64)
}

fn around(value: f64, half: f64) -> Interval {
    Interval { low: value - half, high: value + half }
}

/// Two-sided quantile of Student's t for [`LEVEL`].
fn t_quantile(freedom: f64) -> f64 {
    t_quantile_at(freedom, LEVEL)
}

fn t_quantile_at(freedom: f64, level: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + level / 2.0))
}

fn resample(values: &[f64], random: &mut Pcg64Mcg) -> Vec<f64> {
    let n = values.len();
    (0..n).filter_map(|_| values.get(random.random_range(0..n)).copied()).collect()
}

/// How often each of `n` things is drawn, with replacement, in `n` draws.
fn drawn(n: usize, random: &mut Pcg64Mcg) -> Vec<f64> {
    let mut times = vec![0.0; n];
    for _ in 0..n {
        if let Some(times) = times.get_mut(random.random_range(0..n)) {
            *times += 1.0;
        }
    }
    times
}

fn percentile_interval(mut draw: impl FnMut() -> f64) -> Option<Interval> {
    let draws: Vec<f64> = (0..RESAMPLES).map(|_| draw()).filter(|d| d.is_finite()).collect();
    let ordered = sorted(&draws);
    let tail = (1.0 - LEVEL) / 2.0;
    Some(Interval { low: quantile(&ordered, tail)?, high: quantile(&ordered, 1.0 - tail)? })
}
