//! Sparse matrix-vector multiplication, the matrix in compressed rows.

use rand::seq::index::sample;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::checksum::checksum;
use super::kernel::Workload;

/// Rows and columns of the matrix.
const SIDE: usize = 1000;
/// Elements of each row that are not zero; 5,000 in all.
const PER_ROW: usize = 5;
/// Pairs of products in one execution.
const PAIRS: usize = 60;
/// Floating-point operations of one execution.
pub(super) const OPERATIONS: u64 = (2 * PAIRS * 2 * SIDE * PER_ROW) as u64;

/// A matrix in compressed rows.
#[derive(Debug)]
struct Rows {
    /// Where each row begins in the two lists below, and where the last one ends.
    begins: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
}

impl Rows {
    /// A random matrix of positive elements, in which each row sums to one: products with it stay
    /// in bounds.
    fn random(side: usize, per_row: usize, rng: &mut Pcg64) -> Self {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for _ in 0..side {
            let mut chosen = sample(rng, side, per_row.min(side)).into_vec();
            chosen.sort_unstable();
            let row: Vec<f64> = chosen.iter().map(|_| rng.random::<f64>() + 0.1).collect();
            let sum: f64 = row.iter().sum();
            columns.extend(chosen);
            values.extend(row.iter().map(|value| value / sum));
        }
        let begins = (0..=side).map(|row| row * per_row.min(side)).collect();
        Self { begins, columns, values }
    }

    /// Multiplies the matrix with `x`.
    fn multiply(&self, x: &[f64], product: &mut [f64]) {
        for (bounds, out) in self.begins.windows(2).zip(product) {
            let row = bounds[0]..bounds[1];
            let elements = self.columns[row.clone()].iter().zip(&self.values[row]);
            *out = elements.map(|(column, value)| value * x[*column]).sum();
        }
    }
}

/// Multiplies a sparse matrix with a vector, and with the product.
#[derive(Debug)]
pub(super) struct Sparse {
    matrix: Rows,
    start: Vec<f64>,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Sparse {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let matrix = Rows::random(SIDE, PER_ROW, &mut rng);
        let start: Vec<f64> = (0..SIDE).map(|_| rng.random()).collect();
        Self { matrix, x: start.clone(), y: vec![0.0; SIDE], start }
    }
}

impl Workload for Sparse {
    fn execute(&mut self) -> u64 {
        self.x.copy_from_slice(&self.start);
        for _ in 0..PAIRS {
            self.matrix.multiply(&self.x, &mut self.y);
            self.matrix.multiply(&self.y, &mut self.x);
        }
        checksum(self.x.iter().map(|value| value.to_bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(matrix: &Rows, side: usize) -> Vec<Vec<f64>> {
        let mut dense = vec![vec![0.0; side]; side];
        for (row, bounds) in matrix.begins.windows(2).enumerate() {
            for element in bounds[0]..bounds[1] {
                dense[row][matrix.columns[element]] += matrix.values[element];
            }
        }
        dense
    }

    #[test]
    fn product_agrees_with_the_dense_matrix() {
        let sparse = Sparse::new(1);
        let mut product = vec![0.0; SIDE];
        sparse.matrix.multiply(&sparse.start, &mut product);
        for (row, found) in dense(&sparse.matrix, SIDE).iter().zip(product) {
            let expected: f64 = row.iter().zip(&sparse.start).map(|(a, b)| a * b).sum();
            assert!((expected - found).abs() < 1e-12);
        }
    }

    #[test]
    fn matrix_has_the_elements_asked_for() {
        let sparse = Sparse::new(2);
        assert_eq!(sparse.matrix.values.len(), SIDE * PER_ROW);
        let filled = |row: &Vec<f64>| row.iter().filter(|value| **value > 0.0).count();
        assert!(dense(&sparse.matrix, SIDE).iter().all(|row| filled(row) == PER_ROW));
    }

    #[test]
    fn constant_vector_stays_as_it_is() {
        let matrix = Rows::random(50, 5, &mut Pcg64::seed_from_u64(3));
        let mut product = vec![0.0; 50];
        matrix.multiply(&[2.0; 50], &mut product);
        assert!(product.iter().all(|value| (value - 2.0).abs() < 1e-12));
    }
}
