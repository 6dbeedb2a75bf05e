//! The inverse model (Feliu et al., section 3.3): from SMT stacks to
//! the stacks that the threads would have alone, in the same SMT mode.
//!
//! # Problem
//! Equations 1 to 3 speak of shares of the throttled CPI, which is not known
//! while the threads share a core. Known are the shares of the SMT CPI.
//!
//! # Approach
//! Figure 2 of the paper, letters as there. (b) Normalise each SMT stack
//! to its own CPI: a first estimate of the throttled stack. (c) Send
//! it forward: a slowdown. (d) Multiply the shares by it. (e) Solve the
//! equations of each component for all threads of the group at once, and
//! normalise to a sum of 1.
//!
//! Step e is done with coefficients trained without δ, as the paper does it: with δ, four threads could not
//! be solved analytically.
//!
//! # What may go wrong
//! - The system of a component has the eigenvalues β − γ (differences between
//!   threads) and β + (n − 1)γ (their mean). Where one is 0, there is no solution, and the first estimate stays.
//! - Where one is small, noise is blown up. [`Inversion::Regularised`], ours, solves by Tikhonov regularisation
//!   towards the first estimate, just strong enough that the gain never exceeds
//!   1/[`LEAST_EIGENVALUE`]: x = x₀ + e (z − e x₀) / max(e², T²). Above T this
//!   is the exact solution, at e = 0 it is the first estimate.
//! - A component that comes out negative is set to 0.
//! - A thread of which no component is left keeps the first estimate.
//!
//! All of these are counted in [`InverseEstimate`].

use serde::{Deserialize, Serialize};

use crate::forward::{Coefficients, Terms};
use crate::{Shares, StackError};

#[cfg(test)]
mod tests;

/// T: eigenvalues below are regularised.
pub const LEAST_EIGENVALUE: f64 = 0.1;
/// T as published: eigenvalues below are 0 but for rounding.
const ZERO: f64 = 1e-9;

/// How throttled stacks are estimated from SMT stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inversion {
    /// Not at all: the SMT stack, normalised (step b).
    Normalised,
    /// As published: slowdown from the first estimate, δ = 0 (steps b to e).
    Published,
    /// The same, with small eigenvalues regularised.
    Regularised,
}

impl Inversion {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Normalised, Self::Published, Self::Regularised];

    /// The name that files and reports use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Normalised => "normalised",
            Self::Published => "published",
            Self::Regularised => "regularised",
        }
    }
}

/// Estimated throttled stacks of a group, and how they came about.
#[derive(Debug, Clone, PartialEq)]
pub struct InverseEstimate {
    /// The throttled stacks (step e), in the order of the group.
    pub stacks: Vec<Shares>,
    /// Slowdown that each thread is thought to suffer (step c).
    pub slowdowns: Vec<f64>,
    /// Eigenvalues that were regularised.
    pub regularised: usize,
    /// Components that came out negative and were set to 0.
    pub clamped: usize,
    /// Threads that kept the first estimate.
    pub unsolved: usize,
}

/// Inverts the model for one group of threads, given their SMT stacks and
/// coefficients trained without δ.
///
/// A thread alone is its own throttled stack.
///
/// # Errors
/// [`StackError::Length`] when a thread has another number of components.
pub fn invert(
    method: Inversion,
    linear: &Coefficients,
    group: &[&Shares],
) -> Result<InverseEstimate, StackError> {
    match (method, group.len()) {
        (Inversion::Normalised, _) | (_, 0 | 1) => normalised(linear, group),
        (Inversion::Published, _) => one_pass(linear, group, ZERO),
        (Inversion::Regularised, _) => one_pass(linear, group, LEAST_EIGENVALUE),
    }
}

/// Step b alone.
fn normalised(
    coefficients: &Coefficients,
    group: &[&Shares],
) -> Result<InverseEstimate, StackError> {
    let slowdowns = coefficients.forward(group)?.into_iter().map(|p| p.slowdown).collect();
    let stacks = group.iter().map(|&shares| shares.clone()).collect();
    Ok(InverseEstimate { stacks, slowdowns, regularised: 0, clamped: 0, unsolved: 0 })
}

/// Steps b to e; eigenvalues below `least` are regularised.
fn one_pass(
    coefficients: &Coefficients,
    group: &[&Shares],
    least: f64,
) -> Result<InverseEstimate, StackError> {
    let first = normalised(coefficients, group)?;
    let mut solved = vec![Vec::with_capacity(coefficients.terms().len()); group.len()];
    let mut regularised = 0;
    for (at, terms) in coefficients.terms().iter().enumerate() {
        let prior = component(group, at);
        let adjusted: Vec<f64> = prior.iter().zip(&first.slowdowns).map(|(x, s)| x * s).collect();
        let values = solve(terms, (&adjusted, &prior), least, &mut regularised);
        for (thread, value) in solved.iter_mut().zip(values) {
            thread.push(value);
        }
    }
    Ok(finish(InverseEstimate { regularised, ..first }, solved))
}

/// Clamps, and normalises to 1.
fn finish(first: InverseEstimate, solved: Vec<Vec<f64>>) -> InverseEstimate {
    let InverseEstimate { stacks: fallback, slowdowns, regularised, mut clamped, mut unsolved } =
        first;
    let mut stacks = Vec::with_capacity(fallback.len());
    for (values, fallback) in solved.into_iter().zip(fallback) {
        clamped += values.iter().filter(|value| **value < 0.0).count();
        stacks.push(Shares::new(values).unwrap_or_else(|_| {
            unsolved += 1;
            fallback
        }));
    }
    InverseEstimate { stacks, slowdowns, regularised, clamped, unsolved }
}

/// One component of all threads of a group.
fn component(group: &[&Shares], at: usize) -> Vec<f64> {
    group.iter().map(|shares| shares.parts().get(at).copied().unwrap_or(0.0)).collect()
}

/// 1/e, regularised below a least one; counts where it had to be.
fn gain(eigenvalue: f64, least: f64, regularised: &mut usize) -> f64 {
    if eigenvalue.abs() < least {
        *regularised += 1;
    }
    eigenvalue / (eigenvalue * eigenvalue).max(least * least)
}

/// Solves α + β xⱼ + γ Σₖ xₖ = zⱼ for all j; `prior` is where it leans to.
///
/// The matrix is (β − γ) I + γ J, J of ones; so differences from the mean and
/// the mean itself are solved apart.
fn solve(
    terms: &Terms,
    (right, prior): (&[f64], &[f64]),
    least: f64,
    regularised: &mut usize,
) -> Vec<f64> {
    let n = right.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
    let (z, x) = (mean(right), mean(prior));
    let [apart, common] = eigenvalues(terms, right.len());
    let [from_apart, from_common] = [apart, common].map(|e| gain(e, least, regularised));
    let middle = x + from_common * (z - terms.alpha - common * x);
    (right.iter().zip(prior))
        .map(|(zj, xj)| middle + (xj - x) + from_apart * ((zj - z) - apart * (xj - x)))
        .collect()
}

/// Of differences between threads, and of their mean.
fn eigenvalues(terms: &Terms, threads: usize) -> [f64; 2] {
    [terms.beta - terms.gamma, terms.beta + (threads as f64 - 1.0) * terms.gamma]
}
