//! Dense LU factorization with partial pivoting, in place.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::checksum::checksum;
use super::kernel::Workload;

/// Rows and columns of the matrix.
const SIDE: usize = 100;
/// Floating-point operations of one execution: two thirds of the cube of the side.
pub(super) const OPERATIONS: u64 = (2 * SIDE * SIDE * SIDE / 3) as u64;

type Matrix<const N: usize> = Vec<[f64; N]>;

/// Factorizes a random matrix.
#[derive(Debug)]
pub(super) struct Lu {
    start: Matrix<SIDE>,
    factors: Matrix<SIDE>,
}

impl Lu {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let start = random(&mut rng);
        Self { factors: start.clone(), start }
    }
}

impl Workload for Lu {
    fn execute(&mut self) -> u64 {
        self.factors.copy_from_slice(&self.start);
        let order = factorize(&mut self.factors);
        let factors = self.factors.iter().flatten().map(|value| value.to_bits());
        checksum(factors.chain(order.into_iter().map(|row| row as u64)))
    }
}

fn random<const N: usize>(rng: &mut Pcg64) -> Matrix<N> {
    (0..N).map(|_| std::array::from_fn(|_| rng.random())).collect()
}

/// Replaces a matrix A by its factors, L below the diagonal (its ones left out) and U from there
/// on, and returns the order of A's rows in L·U.
fn factorize<const N: usize>(matrix: &mut [[f64; N]]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..matrix.len()).collect();
    for column in 0..N.min(matrix.len()) {
        let pivot = pivot_of(matrix, column);
        matrix.swap(column, pivot);
        order.swap(column, pivot);
        let (done, rest) = matrix.split_at_mut(column + 1);
        if let [.., row] = done {
            eliminate(row, rest, column);
        }
    }
    order
}

/// The row with the element of largest magnitude in this column, on the diagonal or below.
fn pivot_of<const N: usize>(matrix: &[[f64; N]], column: usize) -> usize {
    let magnitude = |row: usize| matrix[row][column].abs();
    (column..matrix.len()).fold(
        column,
        |best, row| {
            if magnitude(row) > magnitude(best) { row } else { best }
        },
    )
}

/// Subtracts from each row of `rest` the multiple of `pivot` that makes its element in this
/// column zero, where the factor is stored instead. A pivot of zero has only zeros below.
fn eliminate<const N: usize>(pivot: &[f64; N], rest: &mut [[f64; N]], column: usize) {
    if pivot[column] == 0.0 {
        return;
    }
    let reciprocal = 1.0 / pivot[column];
    for row in rest {
        let factor = row[column] * reciprocal;
        row[column] = factor;
        for (value, above) in row[column + 1..].iter_mut().zip(&pivot[column + 1..]) {
            *value -= factor * above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L·U of the factors.
    fn product<const N: usize>(factors: &Matrix<N>) -> Matrix<N> {
        let lower = |row: usize, k: usize| if row == k { 1.0 } else { factors[row][k] };
        let element = |row: usize, column: usize| {
            (0..=row.min(column)).map(|k| lower(row, k) * factors[k][column]).sum()
        };
        (0..N).map(|row| std::array::from_fn(|column| element(row, column))).collect()
    }

    #[test]
    fn product_of_the_factors_is_the_matrix_with_rows_in_order() {
        let matrix: Matrix<SIDE> = random(&mut Pcg64::seed_from_u64(1));
        let mut factors = matrix.clone();
        let order = factorize(&mut factors);
        for (row, source) in product(&factors).iter().zip(order) {
            let pairs = row.iter().zip(&matrix[source]);
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-12));
        }
        for (row, values) in factors.iter().enumerate() {
            assert!(values[..row].iter().all(|value| value.abs() <= 1.0), "pivots are largest");
        }
    }

    #[test]
    fn known_matrix_has_its_known_factors() {
        let mut matrix = vec![[1.0, 2.0], [4.0, 4.0]];
        assert_eq!(factorize(&mut matrix), [1, 0]);
        assert_eq!(matrix, [[4.0, 4.0], [0.25, 1.0]]);
    }

    #[test]
    fn singular_matrix_is_factorized_as_well() {
        let mut matrix = vec![[0.0, 2.0], [0.0, 3.0]];
        let order = factorize(&mut matrix);
        assert_eq!((order, matrix), (vec![0, 1], vec![[0.0, 2.0], [0.0, 3.0]]));
    }
}
