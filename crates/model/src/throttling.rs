//! How much slower a thread runs alone in an SMT mode than alone on its core.
//!
//! # Problem
//! The model's slowdowns are against *throttled* speed: alone, but in the SMT
//! mode of the group, in which half the statically partitioned resources or
//! more are out of reach. Costs of a thread alone on a core, of a pair and of
//! a group of four have three different references. To compare them, each
//! slowdown is multiplied by throttled CPI / isolated CPI.
//!
//! # Approach
//! That ratio is not measured at run time either; it is estimated from the
//! throttled stack: ratio = Σ wᵢ xᵢ, weights by least squares. Since shares sum
//! to 1 this includes a constant. Its mean absolute relative error over the
//! training set travels with it.

use serde::{Deserialize, Serialize};

use crate::fit::{FitError, Sums};
use crate::{Errors, Shares};

/// Ratios are kept within these, whatever the weights say.
const LIMITS: (f64, f64) = (0.5, 8.0);

/// Estimates throttled CPI / isolated CPI from a throttled stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throttling {
    /// Ratio of a thread that has this component only.
    pub weights: Vec<f64>,
    /// Mean absolute relative error over the training set.
    pub error: f64,
}

impl Throttling {
    /// Fits it on throttled stacks with their measured ratios.
    ///
    /// # Errors
    /// [`FitError::Empty`] without any, [`FitError::Components`] when stacks
    /// differ in length, [`FitError::Unsolvable`] when a ratio is not finite.
    pub fn fit(measured: &[(Shares, f64)]) -> Result<Self, FitError> {
        let want = measured.first().ok_or(FitError::Empty)?.0.parts().len();
        let mut sums = Sums::new(want);
        for (index, (shares, ratio)) in measured.iter().enumerate() {
            let got = shares.parts().len();
            if got != want {
                return Err(FitError::Components { index, got, want });
            }
            sums.add(shares.parts(), *ratio, 1.0);
        }
        let weights = sums.solve(|_| 0.0).ok_or(FitError::Unsolvable)?.values;
        let mut fitted = Self { weights, error: 0.0 };
        let mut errors = Errors::default();
        for (shares, ratio) in measured {
            errors.add(fitted.ratio(shares), *ratio);
        }
        fitted.error = errors.mean_absolute().ok_or(FitError::Unsolvable)?;
        Ok(fitted)
    }

    /// Throttled CPI / isolated CPI of a thread.
    #[must_use]
    pub fn ratio(&self, shares: &Shares) -> f64 {
        dot(&self.weights, shares.parts()).clamp(LIMITS.0, LIMITS.1)
    }
}

/// Scalar product.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ratios_are_recovered() {
        let stack = |a: f64| Shares::new(vec![a, 1.0 - a]).unwrap();
        let ratios = (0..=10).map(|tenths| f64::from(tenths) / 10.0);
        let measured: Vec<_> = ratios.map(|a| (stack(a), 1.0 + a / 2.0)).collect();
        let fitted = Throttling::fit(&measured).unwrap();
        assert!((fitted.ratio(&stack(0.55)) - 1.275).abs() < 1e-9);
        assert!(fitted.error < 1e-9);
    }

    #[test]
    fn a_ratio_stays_within_its_limits() {
        let fitted = Throttling { weights: vec![-3.0, 99.0], error: 0.0 };
        assert_eq!(fitted.ratio(&Shares::new(vec![1.0, 0.0]).unwrap()), LIMITS.0);
        assert_eq!(fitted.ratio(&Shares::new(vec![0.0, 1.0]).unwrap()), LIMITS.1);
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let stack = |n: usize| Shares::new(vec![1.0; n]).unwrap();
        assert_eq!(Throttling::fit(&[]), Err(FitError::Empty));
        let uneven = Throttling::fit(&[(stack(2), 1.0), (stack(3), 1.0)]);
        assert_eq!(uneven, Err(FitError::Components { index: 1, got: 3, want: 2 }));
        assert_eq!(Throttling::fit(&[(stack(2), f64::NAN)]), Err(FitError::Unsolvable));
    }
}
