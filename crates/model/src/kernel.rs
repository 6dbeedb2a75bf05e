//! Speed in company by a Gaussian kernel on stacks in company.
//!
//! # Problem
//! Forms that are fitted on slowdowns are ruled by the few threads that suffer several times as
//! much as all others, while throughput is a sum of *speeds* (1/slowdown), in which those hardly
//! count. And a stack measured alone does not tell what a thread loses that just fits into a cache
//! then: it shows in company only. With some thirty programs to learn from, what is like a program
//! that was seen tells more than any product of components does.
//!
//! # Approach
//! A program is a point: the cube roots of its mean shares in company ([`Shares`], normalised to
//! the CPI in company), averaged over co-runners, each component less its mean over the programs
//! of training and in units of its standard deviation there. Roots, since sharing saturates
//! ([`Features`](crate::Features)); the cube root spreads small shares further than the square root.
//!
//! Points are compared by the Gaussian kernel k(x, y) = exp(−|x − y|² / (2 d ℓ²)), d components,
//! centred on the programs of training (Schölkopf, Smola, and Müller, *Nonlinear component analysis
//! as a kernel eigenvalue problem*, 1998); φ(x) are the centred values against each of them. Then
//!
//! speedᵥ = c + own·φ(xᵥ) + Σₐ (given·φ(xₐ) + φ(xᵥ)ᵀ G φ(xₐ)), over co-runners a.
//!
//! The interaction is ridge regression with a product kernel, k(xᵥ, x) k(xₐ, y) for the ordered
//! pair of a victim and a co-runner, which is also the mean of a Gaussian process with that covariance
//! (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, sections 2.2 and 4.2.4;
//! product kernels for pairs: Ben-Hur and Noble, *Kernel methods for predicting protein–protein
//! interactions*, 2005; Waegeman et al., *A kernel-based framework for learning graded relations*,
//! 2012). Since points are centred, effects of a program alone and interactions are orthogonal where
//! each program met each other as often; where not, all are solved for together (`fit`), in the
//! leading coordinates of the kernel's principal components. Length scale and ridges are chosen
//! within each training set by leaving programs out (`choose`).
//!
//! G has low rank and is kept as factors; φ is computed once for each thread.
//!
//! # Terms and units
//! *Speed*: throttled CPI / CPI in company, the mean over the quanta of a group. *Point*: a scaled
//! vector of roots. ℓ ([`Held::length`]): in standard deviations, of each component. *Effects*: what
//! a program suffers and does whoever is beside it. *Interaction*: the rest.
//!
//! # Properties
//! - Symmetric speeds give a symmetric interaction, additive ones give none, programs that are the
//!   same are predicted the same (`symmetric_speeds_interact_symmetrically`,
//!   `additive_speeds_do_not_interact`, `the_same_programs_are_predicted_the_same`).
//! - Programs left out of training are paired right where the interaction is known, and as by
//!   chance where stacks are exchanged (`programs_left_out_are_paired_right`,
//!   `exchanged_stacks_capture_nothing`).
//! - Whatever the stacks, speeds are finite, at least half the least of training, and at most 2
//!   (`predictions_are_finite_and_positive_for_any_stacks`).
//! - Groups that are wider, and drawn unevenly, tell the same (`groups_of_four_tell_the_same`).

mod choose;
mod fit;
mod meetings;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::forward::{LEAST_SLOWDOWN, TOO_LARGE};
use crate::{Bilinear, Shares, StackError};

pub(crate) use choose::choose;
pub(crate) use meetings::{Meeting, Table, mean};

/// What was chosen for a kernel form.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Length scale ℓ.
    pub length: f64,
    /// Ridge of the interaction.
    pub interaction: f64,
    /// Ridge of the effects, a program's share.
    pub effects: f64,
}

impl Default for Held {
    /// Where there are too few programs to choose by: wide, and held back.
    fn default() -> Self {
        Self { length: 2.0, interaction: 0.1, effects: 0.1 }
    }
}

/// How stacks become points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scale {
    /// Mean of each component's root.
    mean: Vec<f64>,
    /// One over its standard deviation; 0 where it did not vary.
    inverse: Vec<f64>,
}

impl Scale {
    /// By the programs of training.
    fn of(stacks: &[&[f64]]) -> Self {
        let n = stacks.len().max(1) as f64;
        let components = stacks.first().map_or(0, |stack| stack.len());
        let moment = |of: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
            let sum = |at| stacks.iter().filter_map(|s| s.get(at)).map(|s| of(at, s.cbrt())).sum();
            (0..components).map(|at: usize| -> f64 { sum(at) }).map(|sum: f64| sum / n).collect()
        };
        let mean = moment(&|_, root| root);
        let variance = moment(&|at, root| (root - mean.get(at).copied().unwrap_or(0.0)).powi(2));
        // Less is rounding.
        let inverse = |v: &f64| if *v > 1e-18 { v.sqrt().recip() } else { 0.0 };
        let inverse = variance.iter().map(inverse).collect();
        Self { mean, inverse }
    }

    fn point(&self, shares: &[f64]) -> Vec<f64> {
        let scales = self.mean.iter().zip(&self.inverse);
        shares.iter().zip(scales).map(|(s, (mean, inverse))| (s.cbrt() - mean) * inverse).collect()
    }
}

/// The Gaussian kernel.
fn gauss(a: &[f64], b: &[f64], length: f64) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (-square / (2.0 * a.len().max(1) as f64 * length * length)).exp()
}

/// Speed of a thread from its own mean stack in company and its co-runners'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    held: Held,
    /// Least speed that is ever predicted.
    least: f64,
    scale: Scale,
    /// The programs of training.
    points: Vec<Vec<f64>>,
    /// Mean kernel value against each.
    centre: Vec<f64>,
    /// Of centred kernel values instead of shares.
    speed: Bilinear,
}

impl Kernel {
    /// What was chosen for it.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }

    /// Programs that it compares with.
    #[must_use]
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// Factors that the interaction is made of.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.speed.factors.len()
    }

    /// Number of components of its stacks.
    pub(crate) fn components(&self) -> usize {
        self.scale.mean.len()
    }

    /// Centred kernel values of a stack.
    pub(crate) fn features(&self, shares: &Shares) -> Vec<f64> {
        let point = self.scale.point(shares.parts());
        let values = self.points.iter().zip(&self.centre);
        values.map(|(other, centre)| gauss(&point, other, self.held.length) - centre).collect()
    }

    /// What the speed is made of them by.
    pub(crate) fn speed(&self) -> &Bilinear {
        &self.speed
    }

    /// Least speed, and greatest.
    pub(crate) fn limits(&self) -> (f64, f64) {
        (self.least, LEAST_SLOWDOWN.recip())
    }

    /// Is it what a fit can be, of stacks of so many components?
    ///
    /// # Errors
    /// [`StackError::Length`] when a part is of another length, [`StackError::NotFinite`] when a
    /// number is none, or out of bounds.
    pub(crate) fn check(&self, want: usize) -> Result<(), StackError> {
        let scales = [self.scale.mean.len(), self.scale.inverse.len()].into_iter();
        let lengths = scales.chain(self.points.iter().map(Vec::len));
        if let Some(got) = lengths.into_iter().find(|&got| got != want) {
            return Err(StackError::Length { got, want });
        }
        let want = self.points.len();
        let lengths = [self.centre.len()].into_iter().chain(self.speed.lengths());
        if let Some(got) = lengths.into_iter().find(|&got| got != want) {
            return Err(StackError::Length { got, want });
        }
        let scales = self.scale.mean.iter().chain(&self.scale.inverse);
        let mut values = scales.chain(self.points.iter().flatten()).chain(&self.centre);
        let Held { length, interaction, effects } = self.held;
        let positive = [length, interaction, effects, self.least];
        let sound = values.all(|value| value.abs() < TOO_LARGE)
            && positive.iter().all(|value| *value > 0.0 && *value < TOO_LARGE)
            && self.least <= LEAST_SLOWDOWN.recip()
            && self.speed.is_finite();
        if sound { Ok(()) } else { Err(StackError::NotFinite(0)) }
    }
}
