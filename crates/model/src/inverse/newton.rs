//! Slowdowns and throttled stacks of a group at once.
//!
//! Unknown are the shares x of n threads and m components, and n slowdowns s.
//! For thread j and component i: α + β xⱼ + γ S + δ xⱼ S = yⱼ sⱼ, where S is the
//! sum over the co-runners; and the shares of each thread sum to 1. That is as
//! many equations as unknowns. Around an estimate x the equations of component
//! i are J x' = Y s + r, where J has β + δ S on its diagonal and γ + δ xⱼ
//! beside it in row j, Y = diag(y), rⱼ = δ xⱼ S − α. With P the inverse of J,
//! x' = P Y s + P r; the sums give (Σ P Y) s = 1 − Σ P r, n equations for s.
//! Without δ the first step is the solution.

use nalgebra::{DMatrix, DVector};

use super::{LEAST_EIGENVALUE, component, eigenvalues, gain, plausible};
use crate::Shares;
use crate::eigen::Eigen;
use crate::forward::Terms;

/// Steps before the iteration is given up.
const STEPS: usize = 30;
/// Change of a share below which the iteration has settled.
const SETTLED: f64 = 1e-12;

/// Singular values of the sums below which slowdowns lean to the guess. They
/// are smaller than those of a component: what n threads have in common is
/// divided by β + (n − 1)γ.
const LEAST_OF_SUMS: f64 = 0.02;

pub(super) struct Solution {
    /// For each thread, its components.
    pub(super) stacks: Vec<Vec<f64>>,
    pub(super) slowdowns: Vec<f64>,
    pub(super) regularised: usize,
}

/// None if it does not settle, or settles on slowdowns that cannot be.
pub(super) fn solve(terms: &[Terms], group: &[&Shares], guess: &[f64]) -> Option<Solution> {
    let priors: Vec<DVector<f64>> =
        (0..terms.len()).map(|at| DVector::from_vec(component(group, at))).collect();
    let guess = DVector::from_column_slice(guess);
    let mut now = priors.clone();
    let linear = terms.iter().all(|terms| terms.delta == 0.0);
    for _ in 0..STEPS {
        let mut regularised = 0;
        let (next, slowdowns) = step(terms, &priors, &now, &guess, &mut regularised)?;
        let moved = next.iter().zip(&now).map(|(a, b)| (a - b).amax()).fold(0.0, f64::max);
        now = next;
        if linear || moved <= SETTLED {
            let thread = |j| now.iter().map(|x| x[j]).collect();
            let stacks = (0..group.len()).map(thread).collect();
            let slowdowns: Vec<f64> = slowdowns.iter().copied().collect();
            return plausible(&slowdowns).then_some(Solution { stacks, slowdowns, regularised });
        }
        if !moved.is_finite() {
            return None;
        }
    }
    None
}

/// One Newton step: new shares of each component, and slowdowns.
fn step(
    terms: &[Terms],
    priors: &[DVector<f64>],
    now: &[DVector<f64>],
    guess: &DVector<f64>,
    regularised: &mut usize,
) -> Option<(Vec<DVector<f64>>, DVector<f64>)> {
    let n = guess.len();
    let mut sum = DMatrix::zeros(n, n);
    let mut rest = DVector::from_element(n, 1.0);
    let mut parts = Vec::with_capacity(terms.len());
    for ((terms, prior), now) in terms.iter().zip(priors).zip(now) {
        let others = DVector::from_element(n, now.sum()) - now;
        let jacobian = DMatrix::from_fn(n, n, |row, column| {
            let [own, other] =
                [terms.beta + terms.delta * others[row], terms.gamma + terms.delta * now[row]];
            if row == column { own } else { other }
        });
        let inverse = if terms.delta == 0.0 {
            of_linear(terms, n, regularised)
        } else {
            of_any(&jacobian, LEAST_EIGENVALUE, regularised)?
        };
        let right = now.component_mul(&others) * terms.delta;
        let fixed = right.add_scalar(-terms.alpha) - &jacobian * prior;
        let fixed = prior + &inverse * fixed;
        let slope = inverse * DMatrix::from_diagonal(prior);
        sum += &slope;
        rest -= &fixed;
        parts.push((slope, fixed));
    }
    // Towards the guess where the sums say nothing about the slowdowns.
    let open = &rest - &sum * guess;
    let slowdowns = guess + of_any(&sum, LEAST_OF_SUMS, regularised)? * open;
    let next = parts.iter().map(|(slope, fixed)| slope * &slowdowns + fixed).collect();
    Some((next, slowdowns))
}

/// Regularised inverse of (β − γ) I + γ J.
fn of_linear(terms: &Terms, n: usize, regularised: &mut usize) -> DMatrix<f64> {
    let [apart, common] = eigenvalues(terms, n).map(|eigenvalue| gain(eigenvalue, regularised));
    let shared = (common - apart) / n as f64;
    DMatrix::from_fn(n, n, |row, column| if row == column { apart + shared } else { shared })
}

/// Inverse of any square matrix A, regularised where singular values are below
/// `least`: of AᵀA = V diag(σ²) Vᵀ, it is V diag(1 / max(σ², least²)) Vᵀ Aᵀ,
/// that is gain σ / max(σ², least²) for each singular value σ.
fn of_any(matrix: &DMatrix<f64>, least: f64, regularised: &mut usize) -> Option<DMatrix<f64>> {
    // No singular value of A is below the reciprocal norm of its inverse.
    if let Some(inverse) = matrix.clone().try_inverse().filter(|i| i.norm() * least <= 1.0) {
        return Some(inverse);
    }
    let transposed = matrix.transpose();
    let square = &transposed * matrix;
    if !square.iter().all(|value| value.is_finite()) {
        return None;
    }
    let parts = Eigen::of(square)?;
    let least = least * least;
    *regularised += parts.values.iter().filter(|square| **square < least).count();
    let gains = parts.values.map(|square| 1.0 / square.max(least));
    let v = parts.vectors;
    Some(&v * DMatrix::from_diagonal(&gains) * v.transpose() * transposed)
}
