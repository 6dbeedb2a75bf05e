//! Weights of pairs, as whole numbers.

use std::ops::Range;

use crate::matrix::{Matrix, TILE};

/// Weights that cannot be matched on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightError {
    /// A weight that is infinite or no number.
    #[error("the weight of {i} with {j} is {value}; weights must be finite")]
    NotFinite {
        /// One of the pair.
        i: usize,
        /// The other.
        j: usize,
        /// What was given.
        value: f64,
    },
    /// Weights too far apart to be added without overflow.
    #[error("weights range over {range:e}, at most {limit:e} is possible here; scale them down")]
    RangeTooLarge {
        /// Largest less smallest weight.
        range: f64,
        /// The limit for this number of vertices.
        limit: f64,
    },
}

/// Weights of all pairs of some vertices, on a grid of whole steps.
///
/// Integers are held exactly. Floats are rounded to a grid whose step is a
/// power of two, small against their range (see [`Weights::step`]), so that
/// all sums and comparisons after that are exact. Only differences between
/// weights matter for a perfect matching, so negative weights are as good as
/// any.
#[derive(Debug, Clone)]
pub struct Weights {
    vertices: usize,
    /// Steps above the least weight, for i < j, row by row.
    steps: Vec<i64>,
    least: f64,
    step: f64,
    exact: bool,
}

impl Weights {
    /// Largest difference of two integer weights of `vertices` vertices:
    /// about 2⁵⁶ / vertices², so 2⁴⁸ for 16 and 2³⁶ for 1,024.
    #[must_use]
    pub fn max_range(vertices: usize) -> i64 {
        // Doubled, times what makes room for a preference for each edge, plus one.
        Matrix::limit(vertices) / (vertices as i64 + 2) - 1
    }

    /// Asks `weight` for each pair `i < j` of `vertices` vertices.
    ///
    /// # Errors
    /// Weights that are more than [`Weights::max_range`] apart.
    pub fn from_integers(
        vertices: usize,
        mut weight: impl FnMut(usize, usize) -> i64,
    ) -> Result<Self, WeightError> {
        let given = upper_triangle(vertices, |i, others, weights| {
            weights.iter_mut().zip(others).for_each(|(given, j)| *given = weight(i, j));
        });
        let least = given.iter().copied().min().unwrap_or(0);
        let most = given.iter().copied().max().unwrap_or(0);
        let range = i128::from(most) - i128::from(least);
        let limit = Self::max_range(vertices);
        if range > i128::from(limit) {
            return Err(WeightError::RangeTooLarge { range: range as f64, limit: limit as f64 });
        }
        let steps = given.into_iter().map(|w| w - least).collect();
        Ok(Self { vertices, steps, least: least as f64, step: 1.0, exact: true })
    }

    /// Asks `weight` for each pair `i < j` of `vertices` vertices.
    ///
    /// # Errors
    /// A weight that is not finite, or weights whose difference is not.
    pub fn from_floats(
        vertices: usize,
        mut weight: impl FnMut(usize, usize) -> f64,
    ) -> Result<Self, WeightError> {
        Self::from_rows(vertices, |i, others, weights| {
            weights.iter_mut().zip(others).for_each(|(given, j)| *given = weight(i, j));
        })
    }

    /// Asks `weigh` for pieces of rows: to write the weights of a vertex with each of some that follow it.
    ///
    /// # Errors
    /// Those of [`Weights::from_floats`].
    pub(crate) fn from_rows(
        vertices: usize,
        weigh: impl FnMut(usize, Range<usize>, &mut [f64]),
    ) -> Result<Self, WeightError> {
        let given = upper_triangle(vertices, weigh);
        if let Some(at) = given.iter().position(|w| !w.is_finite()) {
            let (i, j) = pair_at(vertices, at);
            return Err(WeightError::NotFinite { i, j, value: given[at] });
        }
        let least = given.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = given.iter().copied().reduce(f64::max).unwrap_or(0.0);
        let range = most - least;
        if !range.is_finite() {
            return Err(WeightError::RangeTooLarge { range, limit: f64::MAX });
        }
        let finest = (range / Self::max_range(vertices) as f64).max(f64::MIN_POSITIVE);
        let step = if range > 0.0 { power_of_two(finest) } else { 1.0 };
        let steps = given.into_iter().map(|w| nearest((w - least) / step)).collect();
        Ok(Self { vertices, steps, least, step, exact: range == 0.0 })
    }

    /// How many vertices there are.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Width of the grid, in the unit of the weights: 1 for integers, about
    /// range × vertices² / 2⁵⁶ for floats.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.step
    }

    /// By how much rounding may make a matching that is best on the grid
    /// heavier than the best one: one step for each pair; 0 for integers and for
    /// weights that are all equal.
    #[must_use]
    pub fn rounding(&self) -> f64 {
        if self.exact { 0.0 } else { self.step * (self.vertices / 2) as f64 }
    }

    /// The matrix for the solver: lighter matchings first, and among equal ones those with more
    /// preferred pairs. What is no pair of these vertices is passed over.
    pub(crate) fn matrix(&self, preferred: impl IntoIterator<Item = (usize, usize)>) -> Matrix {
        let factor = self.factor();
        let mut steps = self.steps.iter();
        let mut matrix = Matrix::doubled(self.vertices, |_, _| {
            steps.next().map_or(0, |steps| steps * factor) + 1
        });
        for (i, j) in preferred {
            let (i, j) = (i.min(j), i.max(j));
            if i < j && j < self.vertices {
                let steps = self.steps[row_of(self.vertices, i) + j - i - 1];
                matrix.set_doubled(i, j, steps * factor);
            }
        }
        matrix
    }

    /// The value of one step in the matrix (before doubling): more than the preferences of
    /// all edges of a matching together.
    fn factor(&self) -> i64 {
        self.vertices as i64 / 2 + 1
    }

    /// A sum of the matrix over all edges of a matching, or a bound on it, in
    /// the unit of the weights. Rounded down to whole steps: preferences do not count.
    pub(crate) fn total(&self, sum: i128) -> f64 {
        let steps = sum.div_euclid(i128::from(2 * self.factor()));
        steps as f64 * self.step + self.least * (self.vertices / 2) as f64
    }
}

/// The nearest whole number of one that is not negative.
fn nearest(x: f64) -> i64 {
    let whole = x as i64;
    whole + i64::from(x - whole as f64 >= 0.5)
}

/// The least power of two that is not below a normal positive number.
fn power_of_two(x: f64) -> f64 {
    // Without its fraction a float is the power of two below it.
    let below = f64::from_bits(x.to_bits() & f64::INFINITY.to_bits());
    if below < x { 2.0 * below } else { below }
}

/// Where the weights of `i` with those that follow it begin.
fn row_of(n: usize, i: usize) -> usize {
    // Rows of n − 1, n − 2, … pairs stand before it.
    i * (2 * n - i - 1) / 2
}

/// Asks square by square, so that what is looked up by either end stays in the cache.
fn upper_triangle<T: Clone + Default>(
    n: usize,
    mut weigh: impl FnMut(usize, Range<usize>, &mut [T]),
) -> Vec<T> {
    let mut cells = vec![T::default(); n * n.saturating_sub(1) / 2];
    let tile = |k: usize| k..(k + TILE).min(n);
    for low in (0..n).step_by(TILE) {
        for high in (low..n).step_by(TILE) {
            for i in tile(low) {
                let Range { start, end } = tile(high);
                let others = start.max(i + 1)..end;
                if !others.is_empty() {
                    let row = row_of(n, i);
                    let piece = row + others.start - i - 1..row + others.end - i - 1;
                    weigh(i, others, &mut cells[piece]);
                }
            }
        }
    }
    cells
}

/// The pair whose weight stands at `at` in the upper triangle.
fn pair_at(n: usize, mut at: usize) -> (usize, usize) {
    let mut i = 0;
    while at >= n - 1 - i {
        at -= n - 1 - i;
        i += 1;
    }
    (i, i + 1 + at)
}
