//! How far predictions err: mean, histogram, share within ±5 %.

use serde::{Deserialize, Serialize};

/// Width of a bin of the histogram, in relative error.
pub const BIN: f64 = 0.05;
/// Bins from −50 % to +50 %, and one on either side for all beyond.
pub const BINS: usize = 22;

/// Relative errors (predicted − measured) / measured, summed up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Errors {
    count: u64,
    absolute: f64,
    signed: f64,
    within: u64,
    skipped: u64,
    histogram: [u64; BINS],
}

impl Errors {
    /// Adds a prediction. Where the measured value is 0, or either is not
    /// finite, there is no relative error; that is counted instead.
    pub fn add(&mut self, predicted: f64, measured: f64) {
        let error = (predicted - measured) / measured;
        if !error.is_finite() {
            self.skipped += 1;
            return;
        }
        self.count += 1;
        self.absolute += error.abs();
        self.signed += error;
        self.within += u64::from(error.abs() <= BIN);
        let bin = (error / BIN).floor() + (BINS / 2) as f64;
        let bin = bin.clamp(0.0, (BINS - 1) as f64) as usize;
        if let Some(bin) = self.histogram.get_mut(bin) {
            *bin += 1;
        }
    }

    /// Adds all errors of another set.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.absolute += other.absolute;
        self.signed += other.signed;
        self.within += other.within;
        self.skipped += other.skipped;
        for (bin, more) in self.histogram.iter_mut().zip(&other.histogram) {
            *bin += more;
        }
    }

    /// How many predictions have a relative error.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many have none, as [`Errors::add`] says.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Mean absolute relative error.
    #[must_use]
    pub fn mean_absolute(&self) -> Option<f64> {
        self.mean(self.absolute)
    }

    /// Mean relative error: above 0 where predictions are too high.
    #[must_use]
    pub fn bias(&self) -> Option<f64> {
        self.mean(self.signed)
    }

    /// Share of predictions within ±5 %.
    #[must_use]
    pub fn share_within(&self) -> Option<f64> {
        self.mean(self.within as f64)
    }

    /// Lower edge of each bin (−∞ for the first) and the errors in it.
    pub fn histogram(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let edge = |at: usize| match at {
            0 => f64::NEG_INFINITY,
            at => (at as f64 - (BINS / 2) as f64) * BIN,
        };
        self.histogram.iter().enumerate().map(move |(at, count)| (edge(at), *count))
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.count > 0).then(|| sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_equal_the_hand_worked_ones() {
        let mut errors = Errors::default();
        for (predicted, measured) in [(1.1, 1.0), (1.9, 2.0), (9.0, 1.0), (0.2, 1.0), (1.0, 0.0)] {
            errors.add(predicted, measured);
        }
        assert_eq!((errors.count(), errors.skipped()), (4, 1));
        assert!((errors.mean_absolute().unwrap() - (0.1 + 0.05 + 8.0 + 0.8) / 4.0).abs() < 1e-12);
        assert!((errors.bias().unwrap() - (0.1 - 0.05 + 8.0 - 0.8) / 4.0).abs() < 1e-12);
        let full: Vec<(f64, u64)> = errors.histogram().filter(|(_, count)| *count > 0).collect();
        assert_eq!(full.iter().map(|(_, count)| count).sum::<u64>(), 4);
        assert_eq!(full[0].0, f64::NEG_INFINITY);
        assert_eq!(full[full.len() - 1].0, 0.5);
    }

    #[test]
    fn merged_errors_are_those_of_all() {
        let (mut all, mut left, mut right) = <(Errors, Errors, Errors)>::default();
        for at in 0..100_u32 {
            let predicted = 1.0 + f64::from(at % 16) / 64.0;
            all.add(predicted, 1.0);
            if at < 30 { &mut left } else { &mut right }.add(predicted, 1.0);
        }
        left.merge(&right);
        assert_eq!(left, all);
    }

    #[test]
    fn no_predictions_have_no_mean() {
        assert_eq!(Errors::default().mean_absolute(), None);
        assert_eq!(Errors::default().share_within(), None);
    }
}
