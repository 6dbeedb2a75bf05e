//! Helpers of tests.

/// Equal but for rounding.
pub(crate) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}
