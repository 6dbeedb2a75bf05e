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

use crate::Shares;

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
    fn a_ratio_stays_within_its_limits() {
        let fitted = Throttling { weights: vec![-3.0, 99.0], error: 0.0 };
        assert_eq!(fitted.ratio(&Shares::new(vec![1.0, 0.0]).unwrap()), LIMITS.0);
        assert_eq!(fitted.ratio(&Shares::new(vec![0.0, 1.0]).unwrap()), LIMITS.1);
    }
}
