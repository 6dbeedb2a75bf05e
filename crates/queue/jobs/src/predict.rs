//! The slowdown of a program next to others.

use crate::ProgramNumber;

/// Predicts slowdowns.
pub trait Predict {
    /// Slowdown (time together / time alone) of a program while these others run on its node.
    fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> f64;
}

/// Predicts that no program disturbs another: jobs start in the order of the queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flat;

impl Predict for Flat {
    fn slowdown(&self, _: ProgramNumber, _: &[ProgramNumber]) -> f64 {
        1.0
    }
}

/// The prediction, or 1 where it is no number above 0.
pub(crate) fn finite(slowdown: f64) -> f64 {
    if slowdown.is_finite() && slowdown > 0.0 { slowdown } else { 1.0 }
}
