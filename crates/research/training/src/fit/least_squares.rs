//! Ordinary least squares from sums over the observations, so that the parts of a training set can be combined at
//! will without going through it again.

use nalgebra::{DMatrix, DVector};

use crate::eigen::Eigen;

/// Directions whose second moment is below this part of the largest, features
/// scaled to 1, are taken as not observed: they get no weight.
const RANK_TOLERANCE: f64 = 1e-10;

/// Sums over observations of features and one target.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    gram: DMatrix<f64>,
    moment: DVector<f64>,
    squares: f64,
    /// Sum of all weights.
    count: f64,
    /// Observations, whatever they weigh.
    added: f64,
}

/// Weights of the features and their standard errors.
pub(crate) struct Solution {
    pub(crate) values: Vec<f64>,
    /// Standard errors for independent observations of equal variance.
    pub(crate) errors: Vec<f64>,
}

fn over(value: f64, scale: f64) -> f64 {
    if scale > 0.0 { value / scale } else { 0.0 }
}

impl Sums {
    pub(crate) fn new(features: usize) -> Self {
        Self {
            gram: DMatrix::zeros(features, features),
            moment: DVector::zeros(features),
            squares: 0.0,
            count: 0.0,
            added: 0.0,
        }
    }

    /// Adds an observation that counts `weight` times.
    pub(crate) fn add(&mut self, features: &[f64], target: f64, weight: f64) {
        let x = DVector::from_column_slice(features);
        self.gram.ger(weight, &x, &x, 1.0);
        self.moment.axpy(weight * target, &x, 1.0);
        self.squares += weight * target * target;
        self.count += weight;
        self.added += 1.0;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.gram += &other.gram;
        self.moment += &other.moment;
        self.squares += other.squares;
        self.count += other.count;
        self.added += other.added;
    }

    /// The same with fewer features.
    pub(crate) fn only(&self, features: &[usize]) -> Self {
        Self {
            gram: self.gram.select_rows(features).select_columns(features),
            moment: self.moment.select_rows(features),
            ..*self
        }
    }

    /// Mean of the product of two features.
    pub(crate) fn mean(&self, a: usize, b: usize) -> f64 {
        self.gram.get((a, b)).map_or(0.0, |sum| sum / self.count)
    }

    /// Second moments of the features, scaled to 1, those with the target, and the scales. None
    /// without observations, or when a sum is not finite.
    fn scaled(&self) -> Option<(DMatrix<f64>, DVector<f64>, Vec<f64>)> {
        let features = self.moment.len();
        if self.count <= 0.0 || features == 0 {
            return None;
        }
        let scales: Vec<f64> = (0..features).map(|at| self.mean(at, at).sqrt()).collect();
        let matrix = DMatrix::from_fn(features, features, |a, b| {
            over(over(self.mean(a, b), scales[a]), scales[b])
        });
        let target =
            DVector::from_fn(features, |a, _| over(self.moment[a] / self.count, scales[a]));
        let finite = matrix.iter().chain(target.iter()).all(|value| value.is_finite());
        finite.then_some((matrix, target, scales))
    }

    /// The weights of least squares, of least norm where they are not unique.
    /// `ridge` is added to the second moment of each feature, scaled to 1.
    /// None without observations.
    pub(crate) fn solve(&self, ridge: impl Fn(usize) -> f64) -> Option<Solution> {
        let (mut scaled, target, scales) = self.scaled()?;
        let features = scales.len();
        for at in 0..features {
            scaled[(at, at)] += ridge(at);
        }
        let parts = Eigen::of(scaled)?;
        let least = RANK_TOLERANCE * parts.values.max();
        let seen = |value: f64| value > least;
        let inverse = parts.values.map(|e| if seen(e) { 1.0 / e } else { 0.0 });
        let rank = parts.values.iter().filter(|e| seen(**e)).count() as f64;
        let v = &parts.vectors;
        let found = v * inverse.component_mul(&v.tr_mul(&target));
        let values: Vec<f64> = found.iter().zip(&scales).map(|(w, s)| over(*w, *s)).collect();

        let weights = DVector::from_column_slice(&values);
        let left =
            self.squares - 2.0 * weights.dot(&self.moment) + weights.dot(&(&self.gram * &weights));
        let freedom = self.count * (1.0 - rank / self.added);
        let variance = if freedom > 0.0 { left.max(0.0) / freedom } else { f64::INFINITY };
        let spread = |at: usize| -> f64 {
            v.row(at).iter().zip(inverse.iter()).map(|(v, i)| v * v * i).sum()
        };
        let errors = (0..features)
            .map(|at| over((variance * spread(at) / self.count).sqrt(), scales[at]))
            .collect();
        Some(Solution { values, errors })
    }
}
