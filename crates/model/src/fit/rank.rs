//! Interactions of low rank: which of a victim's components suffer from which
//! of a co-runner's.
//!
//! The slowdown is fitted on the own shares x, the co-runners' sum S, and all
//! products xᵢ Sⱼ. Around the means the products read (x − x̄)ᵀ W (S − S̄), all
//! else is additive. Of W we keep the r directions that explain most over the
//! training set: with covariances C of x and D of S, the leading singular
//! vectors of C^½ W D^½ (reduced-rank regression, for x and S that do not
//! depend on each other, as where all groups are run). What is dropped
//! still counts at the means, so the additive part is not touched.
//!
//! Products vary little around their means, so weak directions of W would be
//! fitted to noise; [`RIDGE`] holds them back.

use nalgebra::{DMatrix, DVector};

use super::moments::Moments;
use crate::bilinear::{Bilinear, Factor, Features};
use crate::eigen::Eigen;

/// Ridge on the products, their second moment scaled to 1. On synthetic programs
/// that were left out, anything from 0 to 10⁻³ gives the same.
pub(crate) const RIDGE: f64 = 1e-6;

/// The interaction before it is cut down, and what cutting needs.
pub(super) struct Interaction {
    constant: f64,
    own: DVector<f64>,
    given: DVector<f64>,
    products: DMatrix<f64>,
    mean_own: DVector<f64>,
    mean_others: DVector<f64>,
    /// Victims' directions (columns) by their strength, strongest first.
    victims: DMatrix<f64>,
    aggressors: DMatrix<f64>,
}

impl Interaction {
    pub(super) fn fit(moments: &Moments) -> Option<Self> {
        let m = moments.components.len();
        let sums = &moments.slowdown;
        let found = sums.solve(|at| if at > 2 * m { RIDGE } else { 0.0 })?.values;
        let (constant, found) = found.split_first()?;
        let (own, found) = found.split_at_checked(m)?;
        let (given, products) = found.split_at_checked(m)?;
        let products = DMatrix::from_row_slice(m, m, products);
        let mean = |from: usize| DVector::from_fn(m, |at, _| sums.mean(0, from + at));
        let (mean_own, mean_others) = (mean(1), mean(1 + m));
        let covariance = |from: usize, mean: &DVector<f64>| {
            DMatrix::from_fn(m, m, |a, b| sums.mean(from + a, from + b) - mean[a] * mean[b])
        };
        let (root_own, back_own) = roots(covariance(1, &mean_own))?;
        let (root_others, back_others) = roots(covariance(1 + m, &mean_others))?;
        let whitened = root_own * &products * root_others;
        // A = U Σ Vᵀ: V from AᵀA, U Σ = A V.
        let square = whitened.transpose() * &whitened;
        let parts = Eigen::of(square)?;
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by(|&a, &b| parts.values[b].total_cmp(&parts.values[a]));
        let v = parts.vectors.select_columns(&order);
        Some(Self {
            constant: *constant,
            own: DVector::from_column_slice(own),
            given: DVector::from_column_slice(given),
            victims: back_own * (whitened * &v),
            aggressors: back_others * v,
            products,
            mean_own,
            mean_others,
        })
    }

    /// The form with at most `rank` factors.
    pub(super) fn cut(&self, rank: usize) -> Bilinear {
        let rank = rank.min(self.victims.ncols());
        let kept = self.victims.columns(0, rank) * self.aggressors.columns(0, rank).transpose();
        let dropped = &self.products - kept;
        let constant = self.constant - self.mean_own.dot(&(&dropped * &self.mean_others));
        let own = &self.own + &dropped * &self.mean_others;
        let given = &self.given + dropped.tr_mul(&self.mean_own);
        let column = |of: &DMatrix<f64>, at| of.column(at).iter().copied().collect();
        Bilinear {
            constant,
            own: own.iter().copied().collect(),
            given: given.iter().copied().collect(),
            features: Features::Shares,
            factors: (0..rank)
                .map(|at| Factor {
                    victim: column(&self.victims, at),
                    aggressor: column(&self.aggressors, at),
                })
                .collect(),
        }
    }
}

/// Square root of a covariance and its pseudo-inverse. Shares sum to 1, so one
/// direction at least has no variance.
fn roots(covariance: DMatrix<f64>) -> Option<(DMatrix<f64>, DMatrix<f64>)> {
    let parts = Eigen::of(covariance)?;
    let least = 1e-9 * parts.values.max();
    let seen = |e: f64| e > least && e > 0.0;
    let root = parts.values.map(|e| if seen(e) { e.sqrt() } else { 0.0 });
    let back = parts.values.map(|e| if seen(e) { 1.0 / e.sqrt() } else { 0.0 });
    let v = parts.vectors;
    let with = |values: &DVector<f64>| &v * DMatrix::from_diagonal(values) * v.transpose();
    Some((with(&root), with(&back)))
}
