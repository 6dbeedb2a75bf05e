//! Series of 4×4 matrix products on integers or on floating-point numbers only.

use std::hint::black_box;
use std::num::Wrapping;
use std::ops::{Add, Mul};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::checksum::checksum;
use super::kernel::Workload;

/// Factors, which are used in turn.
const FACTORS: usize = 16;
/// Times that each factor is used in one execution.
const TURNS: usize = 600;
/// Operations of one execution: 64 multiplications and 48 additions per product.
pub(super) const OPERATIONS: u64 = (TURNS * FACTORS * 112) as u64;

type Matrix<T> = [[T; 4]; 4];

/// An integer whose arithmetic wraps.
pub(super) type Integer = Wrapping<u64>;

/// An element of a matrix.
pub(super) trait Element: Copy + Add<Output = Self> + Mul<Output = Self> {
    /// A random matrix whose powers stay in bounds.
    fn random(rng: &mut Pcg64) -> Matrix<Self>;
    /// The bits of the element.
    fn bits(self) -> u64;
}

impl Element for Integer {
    fn random(rng: &mut Pcg64) -> Matrix<Self> {
        [(); 4].map(|()| [(); 4].map(|()| Wrapping(rng.random())))
    }

    fn bits(self) -> u64 {
        self.0
    }
}

impl Element for f64 {
    /// Each row is positive and sums to one, and so do those of the products.
    fn random(rng: &mut Pcg64) -> Matrix<Self> {
        [(); 4].map(|()| {
            let row = [(); 4].map(|()| rng.random::<f64>() + 0.1);
            let sum: f64 = row.iter().sum();
            row.map(|value| value / sum)
        })
    }

    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Multiplies a series of matrices.
#[derive(Debug)]
pub(super) struct Series<T> {
    factors: [Matrix<T>; FACTORS],
}

impl<T: Element> Series<T> {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        Self { factors: std::array::from_fn(|_| T::random(&mut rng)) }
    }

    fn product(&self, turns: usize) -> Matrix<T> {
        let mut product = self.factors[0];
        for _ in 0..turns {
            for factor in &self.factors {
                // The product goes through memory, as that of a library's function does.
                product = black_box(multiply(&product, factor));
            }
        }
        product
    }
}

impl<T: Element> Workload for Series<T> {
    fn execute(&mut self) -> u64 {
        checksum(self.product(TURNS).into_iter().flatten().map(Element::bits))
    }
}

fn multiply<T: Element>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let element = |row: &[T; 4], k: usize| {
        row[0] * b[0][k] + row[1] * b[1][k] + row[2] * b[2][k] + row[3] * b[3][k]
    };
    a.each_ref().map(|row| std::array::from_fn(|column| element(row, column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_is_the_known_one() {
        let a = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]];
        let b = [[0, 1, 0, 0], [2, 0, 0, 1], [0, 0, 1, 1], [1, 0, 3, 0]];
        let expected = [[8, 1, 15, 5], [20, 5, 31, 13], [32, 9, 47, 21], [44, 13, 63, 29]];
        let integers = |m: Matrix<u64>| m.map(|row| row.map(Wrapping));
        let floats = |m: Matrix<u64>| m.map(|row| row.map(|value| value as f64));
        assert_eq!(multiply(&integers(a), &integers(b)), integers(expected));
        assert_eq!(multiply(&floats(a), &floats(b)), floats(expected));
    }

    #[test]
    fn integer_series_is_associative() {
        let series = Series::<Integer>::new(1);
        let turn = series.factors[1..].iter().fold(series.factors[0], |p, m| multiply(&p, m));
        let expected = multiply(&series.factors[0], &multiply(&turn, &turn));
        assert_eq!(series.product(2), expected);
    }

    #[test]
    fn floating_point_series_stays_in_bounds() {
        for row in Series::<f64>::new(1).product(1_000) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(row.iter().all(|value| *value > 0.0));
        }
    }
}
