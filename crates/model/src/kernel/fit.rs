//! Ridge regression in the coordinates of a kernel's principal components.
//!
//! K = U W Uᵀ is the centred kernel matrix of the programs; z = W^½ Uᵀ are their coordinates, and
//! W^(−½) Uᵀ φ those of anyone. In them the product kernel is plain: the interaction zᵥᵀ G zₐ, its
//! ridge on the squares of G. Constant, effects and interaction are solved for together by conjugate
//! gradients (Hestenes and Stiefel, 1952), preconditioned by what the normal equations are where
//! every program met every other as often: there they are diagonal and one step solves them.

use nalgebra::{DMatrix, DVector};

use super::meetings::Table;
use super::{Held, Kernel, Scale, gauss};
use crate::bilinear::{Factor, Features};
use crate::eigen::Eigen;
use crate::forward::LEAST_SLOWDOWN;
use crate::{Bilinear, FitError};

/// Principal components of less than this part of the first are rounding, or tell nothing.
const COORDINATES: f64 = 1e-6;
/// What of the squares of an interaction is left out by keeping a few factors.
const LEFT: f64 = 1e-6;
/// Steps, at most; some tens are enough for groups drawn at random.
const STEPS: usize = 300;
/// Where the squares of the residual, over those of the target, are small enough.
const SMALL: f64 = 1e-20;

/// A victim, its co-runners, and its speed; programs by their place in the basis.
pub(super) struct Case {
    pub(super) victim: usize,
    pub(super) others: Vec<usize>,
    pub(super) speed: f64,
}

/// Programs in the coordinates of their kernel.
pub(super) struct Basis {
    scale: Scale,
    points: Vec<Vec<f64>>,
    length: f64,
    centre: Vec<f64>,
    /// From centred kernel values to coordinates (n × r).
    inward: DMatrix<f64>,
    /// Coordinates of the programs (n × r).
    places: DMatrix<f64>,
    /// Their squares, summed over programs.
    spread: Vec<f64>,
}

impl Basis {
    /// Of the mean shares of programs; none of what is not finite.
    pub(super) fn of(stacks: &[&[f64]], length: f64) -> Option<Self> {
        let n = stacks.len();
        let scale = Scale::of(stacks);
        let points: Vec<Vec<f64>> = stacks.iter().map(|stack| scale.point(stack)).collect();
        let kernel = DMatrix::from_fn(n, n, |a, b| gauss(&points[a], &points[b], length));
        let centre: Vec<f64> = kernel.row_mean().iter().copied().collect();
        let all = centre.iter().sum::<f64>() / n.max(1) as f64;
        let centred = DMatrix::from_fn(n, n, |a, b| kernel[(a, b)] - centre[a] - centre[b] + all);
        let Eigen { values, vectors } = Eigen::of(centred)?;
        let most = values.iter().copied().fold(0.0, f64::max);
        let mut kept: Vec<usize> = (0..n).filter(|&at| values[at] > COORDINATES * most).collect();
        // What is left where all are alike is rounding.
        kept.retain(|&at| values[at] > 1e-12);
        let spread: Vec<f64> = kept.iter().map(|&at| values[at]).collect();
        let column = |row: usize, at: usize| vectors[(row, kept[at])];
        let inward = DMatrix::from_fn(n, kept.len(), |a, b| column(a, b) / spread[b].sqrt());
        let places = DMatrix::from_fn(n, kept.len(), |a, b| column(a, b) * spread[b].sqrt());
        Some(Self { scale, points, length, centre, inward, places, spread })
    }

    /// Coordinates of anyone.
    pub(super) fn place(&self, shares: &[f64]) -> DVector<f64> {
        let point = self.scale.point(shares);
        let values = self.points.iter().zip(&self.centre);
        let values = values.map(|(other, centre)| gauss(&point, other, self.length) - centre);
        self.inward.tr_mul(&DVector::from_iterator(self.points.len(), values))
    }

    /// Solves for everything; none without cases, or of what is not finite.
    pub(super) fn solve(&self, cases: &[Case], held: Held) -> Option<Solved> {
        let (n, r) = self.places.shape();
        let met: usize = cases.iter().map(|case| case.others.len()).sum();
        if cases.is_empty() || met == 0 {
            return None;
        }
        let (own, given) = (cases.len() as f64 / n as f64, met as f64 / n as f64);
        let target: Vec<f64> = cases.iter().map(|case| case.speed).collect();
        let mean = target.iter().sum::<f64>() / target.len() as f64;
        let mut ridge = vec![0.0];
        ridge.extend(std::iter::repeat_n(held.effects * own, r));
        ridge.extend(std::iter::repeat_n(held.effects * given, r));
        ridge.extend(std::iter::repeat_n(held.interaction, r * r));
        let mut diagonal = vec![cases.len() as f64];
        diagonal.extend(self.spread.iter().map(|w| w * own + held.effects * own));
        diagonal.extend(self.spread.iter().map(|w| w * given + held.effects * given));
        let pairs = self.spread.iter().flat_map(|a| self.spread.iter().map(move |v| (v, a)));
        let often = given / n as f64;
        diagonal.extend(pairs.map(|(v, a)| v * a * often + held.interaction));

        let centred: Vec<f64> = target.iter().map(|speed| speed - mean).collect();
        let right = self.back(cases, &centred);
        let whole = dot(&right, &over(&right, &diagonal));
        if !whole.is_finite() {
            return None;
        }
        let mut found = vec![0.0; right.len()];
        let mut rest = right;
        let mut step = over(&rest, &diagonal);
        let mut left = whole;
        for _ in 0..STEPS {
            if left <= SMALL * whole {
                break;
            }
            let mut image = self.back(cases, &self.forth(cases, &step));
            for ((image, step), ridge) in image.iter_mut().zip(&step).zip(&ridge) {
                *image += step * ridge;
            }
            let far = left / dot(&step, &image);
            if !far.is_finite() {
                break;
            }
            add(&mut found, far, &step);
            add(&mut rest, -far, &image);
            let scaled = over(&rest, &diagonal);
            let now = dot(&rest, &scaled);
            for (step, scaled) in step.iter_mut().zip(scaled) {
                *step = scaled + now / left * *step;
            }
            left = now;
        }
        if let Some(constant) = found.first_mut() {
            *constant += mean;
        }
        found.iter().all(|value| value.is_finite()).then(|| Solved::of(&found, r))
    }

    /// What weights say of each case.
    fn forth(&self, cases: &[Case], weights: &[f64]) -> Vec<f64> {
        let weights = Solved::of(weights, self.spread.len());
        let own = &self.places * &weights.own;
        let given = &self.places * &weights.given;
        let both = &self.places * &weights.interaction * self.places.transpose();
        let one = |case: &Case| {
            let done = |&other: &usize| given[other] + both[(case.victim, other)];
            weights.constant + own[case.victim] + case.others.iter().map(done).sum::<f64>()
        };
        cases.iter().map(one).collect()
    }

    /// The transpose of it.
    fn back(&self, cases: &[Case], values: &[f64]) -> Vec<f64> {
        let n = self.points.len();
        let (mut own, mut given) = (DVector::zeros(n), DVector::zeros(n));
        let mut both = DMatrix::zeros(n, n);
        for (case, value) in cases.iter().zip(values) {
            own[case.victim] += value;
            for &other in &case.others {
                given[other] += value;
                both[(case.victim, other)] += value;
            }
        }
        let mut weights = vec![values.iter().sum()];
        weights.extend(self.places.tr_mul(&own).iter());
        weights.extend(self.places.tr_mul(&given).iter());
        weights.extend((self.places.tr_mul(&both) * &self.places).iter());
        weights
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn over(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| if *b > 0.0 { a / b } else { 0.0 }).collect()
}

fn add(to: &mut [f64], times: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += times * what);
}

/// Weights in coordinates.
pub(super) struct Solved {
    constant: f64,
    own: DVector<f64>,
    given: DVector<f64>,
    interaction: DMatrix<f64>,
}

impl Solved {
    /// From constant, own, given, and columns of the interaction, one after the other.
    fn of(weights: &[f64], r: usize) -> Self {
        let part = |from: usize, length: usize| weights.get(from..from + length).unwrap_or(&[]);
        Self {
            constant: weights.first().copied().unwrap_or(0.0),
            own: DVector::from_column_slice(part(1, r)),
            given: DVector::from_column_slice(part(1 + r, r)),
            interaction: DMatrix::from_column_slice(r, r, part(1 + 2 * r, r * r)),
        }
    }

    /// Speed by effects alone.
    pub(super) fn effects(&self, victim: &DVector<f64>, others: &[&DVector<f64>]) -> f64 {
        let done = others.iter().map(|other| self.given.dot(other)).sum::<f64>();
        self.constant + self.own.dot(victim) + done
    }

    /// What is between them.
    pub(super) fn interaction(&self, victim: &DVector<f64>, others: &[&DVector<f64>]) -> f64 {
        others.iter().map(|other| victim.dot(&(&self.interaction * *other))).sum()
    }

    /// The same of kernel values.
    fn spelt(&self, basis: &Basis) -> Option<Bilinear> {
        let list = |values: DVector<f64>| values.iter().copied().collect::<Vec<f64>>();
        let square = self.interaction.tr_mul(&self.interaction);
        let all = square.trace();
        let Eigen { values, vectors } = Eigen::of(square)?;
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        let mut left = all;
        let mut factors = Vec::new();
        for at in order {
            if left <= LEFT * all || values[at] <= 0.0 {
                break;
            }
            left -= values[at];
            let direction = vectors.column(at);
            factors.push(Factor {
                victim: list(&basis.inward * (&self.interaction * direction)),
                aggressor: list(&basis.inward * direction),
            });
        }
        Some(Bilinear {
            constant: self.constant,
            features: Features::Shares,
            own: list(&basis.inward * &self.own),
            given: list(&basis.inward * &self.given),
            factors,
        })
    }
}

impl Kernel {
    /// Fits on all meetings.
    ///
    /// # Errors
    /// [`FitError::Empty`] without any, [`FitError::Unsolvable`] of what is not finite.
    pub(crate) fn fit(table: &Table, held: Held) -> Result<Self, FitError> {
        let stacks: Option<Vec<Vec<f64>>> = table.company(|_| true).into_iter().collect();
        let stacks = stacks.filter(|all| !all.is_empty()).ok_or(FitError::Empty)?;
        let stacks: Vec<&[f64]> = stacks.iter().map(Vec::as_slice).collect();
        let cases: Vec<Case> = (table.rows.iter())
            .map(|row| Case { victim: row.victim, others: row.others.clone(), speed: row.speed })
            .collect();
        let basis = Basis::of(&stacks, held.length).ok_or(FitError::Unsolvable)?;
        let solved = basis.solve(&cases, held).ok_or(FitError::Unsolvable)?;
        let speed = solved.spelt(&basis).ok_or(FitError::Unsolvable)?;
        let least = cases.iter().map(|case| case.speed).fold(LEAST_SLOWDOWN.recip(), f64::min);
        let Basis { scale, points, centre, .. } = basis;
        let fitted = Self { held, least: least / 2.0, scale, points, centre, speed };
        fitted.check(fitted.components()).map_err(|_| FitError::Unsolvable)?;
        Ok(fitted)
    }
}
