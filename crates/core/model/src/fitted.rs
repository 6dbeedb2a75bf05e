//! The fit of one SMT mode, as a model file keeps it.

use crate::{SmtModel, Terms};

/// A fitted model with the standard errors of its coefficients.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The model.
    pub model: SmtModel,
    /// Standard errors of the coefficients without δ, by component.
    pub linear_errors: Vec<Terms>,
    /// Standard errors of the coefficients with δ, by component.
    pub delta_errors: Vec<Terms>,
    /// Threads observed, each once a quantum.
    pub observed: u64,
}
