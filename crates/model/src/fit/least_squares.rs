//! Ordinary least squares from sums, so that parts of a training set can be
//! put together in any way without going through it again.

use std::collections::BTreeMap;

use nalgebra::{Cholesky, DMatrix, DVector};

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

    /// As [`Sums::solve`] with the same `ridge`, above 0, on all features but the first, which is
    /// 1, and without standard errors: by Cholesky's factors, many times as fast. None without
    /// observations.
    pub(crate) fn held_back(&self, ridge: f64) -> Option<Vec<f64>> {
        let (mut scaled, target, scales) = self.scaled()?;
        for at in 1..scales.len() {
            scaled[(at, at)] += ridge;
        }
        let found = Cholesky::new(scaled)?.solve(&target);
        Some(found.iter().zip(&scales).map(|(weight, scale)| over(*weight, *scale)).collect())
    }

    /// Weighted sum over all observations of what is predicted beyond the target, by weights of
    /// some features. The first feature of all is 1.
    pub(crate) fn excess(&self, features: &[usize], weights: &[f64]) -> f64 {
        let sum = |at: usize| self.gram.get((0, at)).copied().unwrap_or(0.0);
        let predicted: f64 = features.iter().zip(weights).map(|(at, w)| sum(*at) * w).sum();
        predicted - self.moment.iter().next().copied().unwrap_or(0.0)
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

/// Squares of what is left of the errors of groups when that is taken away which fits a sum of one
/// number for each member.
pub(crate) fn unexplained(groups: &[&[usize]], errors: &[f64]) -> Option<f64> {
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    for member in groups.iter().copied().flatten() {
        let next = places.len();
        places.entry(*member).or_insert(next);
    }
    let row = |group: &&[usize]| -> Vec<f64> {
        let mut row = vec![0.0; places.len()];
        for cell in group.iter().filter_map(|member| places.get(member)) {
            row[*cell] = 1.0;
        }
        row
    };
    let rows: Vec<Vec<f64>> = groups.iter().map(row).collect();
    let mut sums = Sums::new(places.len());
    for (row, error) in rows.iter().zip(errors) {
        sums.add(row, *error, 1.0);
    }
    let effects = sums.solve(|_| 0.0)?.values;
    let effect = |row: &[f64]| -> f64 { row.iter().zip(&effects).map(|(a, b)| a * b).sum() };
    Some(rows.iter().zip(errors).map(|(row, error)| (error - effect(row)).powi(2)).sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn held_back_weights_are_those_of_the_general_solution(
            rows in prop::collection::vec((prop::array::uniform3(-2.0..2.0_f64), 0.1..2.0_f64), 2..20),
            ridge in 0.05..50.0_f64,
        ) {
            let mut sums = Sums::new(4);
            for ([a, b, target], weight) in &rows {
                // The last feature never occurs.
                sums.add(&[1.0, *a, *b, 0.0], *target, *weight);
            }
            let general = sums.solve(|at| if at == 0 { 0.0 } else { ridge }).unwrap().values;
            let fast = sums.held_back(ridge).unwrap();
            for (a, b) in fast.iter().zip(&general) {
                prop_assert!((a - b).abs() < 1e-6 * (1.0 + b.abs()), "{fast:?} {general:?}");
            }
            prop_assert_eq!(fast[3], 0.0);
            // The constant is free, so nothing is left over on the whole.
            prop_assert!(sums.excess(&[0, 1, 2, 3], &fast).abs() < 1e-6);
        }
    }

    #[test]
    fn without_observations_there_are_no_weights() {
        assert!(Sums::new(2).held_back(1.0).is_none());
    }
}
