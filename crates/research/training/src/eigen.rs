//! Eigenvalues and eigenvectors of small symmetric matrices, by Jacobi's cyclic rotations.
//!
//! ```text
//! until the matrix is diagonal up to rounding:
//!     for each pair p < q:  rotate rows and columns p and q such that element (p, q) becomes 0
//! eigenvalues := the diagonal; eigenvectors := the product of the rotations
//! ```
//!
//! (Golub and Van Loan, Matrix Computations, section 8.5.) This is slow for large matrices, but exact to rounding
//! whatever the eigenvalues. The library's own method assigns vectors to the wrong values for some matrices whose
//! eigenvalues lie close together (dimforge/nalgebra, issue 1109), as those of balanced designs do: then least
//! squares were wrong by any factor.

use nalgebra::{DMatrix, DVector};

/// Rounds over all pairs; each squares what is left off the diagonal.
const ROUNDS: usize = 30;

/// Eigenvalues, in no order, and their eigenvectors (columns).
pub(crate) struct Eigen {
    pub(crate) values: DVector<f64>,
    pub(crate) vectors: DMatrix<f64>,
}

impl Eigen {
    /// Of a symmetric matrix; none if it is not square or not finite.
    pub(crate) fn of(mut matrix: DMatrix<f64>) -> Option<Self> {
        let n = matrix.nrows();
        if !matrix.is_square() || !matrix.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut vectors = DMatrix::identity(n, n);
        let least = f64::EPSILON * matrix.norm() / n.max(1) as f64;
        for _ in 0..ROUNDS {
            let mut moved = false;
            for q in 1..n {
                for p in 0..q {
                    let off = matrix[(p, q)];
                    if off.abs() <= least {
                        continue;
                    }
                    moved = true;
                    let theta = (matrix[(q, q)] - matrix[(p, p)]) / (2.0 * off);
                    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
                    let cosine = 1.0 / tangent.hypot(1.0);
                    let sine = tangent * cosine;
                    turn_columns(&mut matrix, (p, q), (cosine, sine));
                    turn_rows(&mut matrix, (p, q), (cosine, sine));
                    turn_columns(&mut vectors, (p, q), (cosine, sine));
                }
            }
            if !moved {
                break;
            }
        }
        Some(Self { values: matrix.diagonal(), vectors })
    }
}

fn turn_columns(matrix: &mut DMatrix<f64>, (p, q): (usize, usize), (c, s): (f64, f64)) {
    for row in 0..matrix.nrows() {
        let (a, b) = (matrix[(row, p)], matrix[(row, q)]);
        matrix[(row, p)] = c * a - s * b;
        matrix[(row, q)] = s * a + c * b;
    }
}

fn turn_rows(matrix: &mut DMatrix<f64>, (p, q): (usize, usize), (c, s): (f64, f64)) {
    for column in 0..matrix.ncols() {
        let (a, b) = (matrix[(p, column)], matrix[(q, column)]);
        matrix[(p, column)] = c * a - s * b;
        matrix[(q, column)] = s * a + c * b;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Largest errors of the recomposed matrix and of orthogonality.
    fn errors(matrix: &DMatrix<f64>) -> (f64, f64) {
        let Eigen { values, vectors } = Eigen::of(matrix.clone()).unwrap();
        let again = &vectors * DMatrix::from_diagonal(&values) * vectors.transpose();
        let n = matrix.nrows();
        let square = vectors.tr_mul(&vectors) - DMatrix::identity(n, n);
        ((again - matrix).amax(), square.amax())
    }

    /// The matrix of the library's issue 1109.
    #[test]
    fn vectors_belong_to_their_values() {
        let matrix = DMatrix::from_row_slice(
            4,
            4,
            &[
                -19884.07, -10.07188, 11.277279, -188560.63, -10.07188, 12.518197, 1.3770627,
                -102.97504, 11.277279, 1.3770627, 14.587362, 113.26099, -188560.63, -102.97504,
                113.26099, -1788112.3,
            ],
        );
        let (off, skew) = errors(&matrix);
        assert!(off < 1e-14 * matrix.norm() && skew < 1e-14, "{off} {skew}");
    }

    #[test]
    fn what_is_not_finite_has_none() {
        assert!(Eigen::of(DMatrix::from_element(2, 2, f64::NAN)).is_none());
        assert!(Eigen::of(DMatrix::zeros(2, 3)).is_none());
        assert!(Eigen::of(DMatrix::zeros(0, 0)).is_some_and(|none| none.values.is_empty()));
    }

    proptest! {
        /// Balanced designs: each row and column effect alike, so eigenvalues are repeated.
        #[test]
        fn repeated_values_are_no_trouble(n in 1_usize..12, ridge in 0.0..1e-3_f64, a in -2.0..2.0_f64) {
            let matrix = DMatrix::from_fn(n, n, |row, column| {
                if row == column { 1.0 + ridge } else { a / n as f64 }
            });
            let (off, skew) = errors(&matrix);
            prop_assert!(off < 1e-12 && skew < 1e-12, "{off} {skew}");
        }

        #[test]
        fn a_symmetric_matrix_is_recomposed(parts in prop::collection::vec(-3.0..3.0_f64, 64)) {
            let half = DMatrix::from_row_slice(8, 8, &parts);
            let (off, skew) = errors(&(&half + half.transpose()));
            prop_assert!(off < 1e-12 && skew < 1e-12, "{off} {skew}");
        }
    }
}
