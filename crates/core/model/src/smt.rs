//! The model of one SMT mode, in all its forms.

use serde::{Deserialize, Serialize};

use crate::forward::Coefficients;
use crate::inverse::{InverseEstimate, Inversion, invert};
use crate::{Interference, Shares, StackError};

/// Which terms predict the slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The mean slowdown of training, of every group: what is left where no stack is looked at.
    Constant,
    /// Equations 1 to 3 without δ: additive.
    Linear,
    /// Equations 1 to 3.
    Delta,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Constant, Self::Linear, Self::Delta];

    /// The name that files and reports use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Linear => "linear",
            Self::Delta => "delta",
        }
    }
}

/// Everything that was fitted for one SMT mode.
#[derive(Debug, Clone, PartialEq)]
pub struct SmtModel {
    constant: Coefficients,
    linear: Coefficients,
    delta: Coefficients,
}

impl SmtModel {
    /// From a mean slowdown, and coefficients without δ and with it.
    ///
    /// # Errors
    /// [`StackError::Length`] when they are not for the same number of
    /// components, [`StackError::NotFinite`] when a number is not finite.
    pub fn new(
        mean_slowdown: f64,
        linear: Coefficients,
        delta: Coefficients,
    ) -> Result<Self, StackError> {
        let want = linear.terms().len();
        let got = delta.terms().len();
        if got != want {
            return Err(StackError::Length { got, want });
        }
        if !mean_slowdown.is_finite() {
            return Err(StackError::NotFinite(0));
        }
        Ok(Self { constant: Coefficients::constant(mean_slowdown, want)?, linear, delta })
    }

    /// Number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.linear.terms().len()
    }

    /// Mean slowdown of training.
    #[must_use]
    pub fn mean_slowdown(&self) -> f64 {
        self.constant.terms().iter().map(|terms| terms.alpha).sum()
    }

    /// Coefficients trained without δ.
    #[must_use]
    pub fn linear(&self) -> &Coefficients {
        &self.linear
    }

    /// Coefficients trained with δ.
    #[must_use]
    pub fn delta(&self) -> &Coefficients {
        &self.delta
    }

    /// One of its forms.
    #[must_use]
    pub fn form(&self, form: Form) -> &Coefficients {
        match form {
            Form::Constant => &self.constant,
            Form::Linear => &self.linear,
            Form::Delta => &self.delta,
        }
    }

    /// Throttled stacks of a group from its SMT stacks.
    ///
    /// # Errors
    /// [`StackError::Length`] when a thread has another number of components.
    pub fn invert(
        &self,
        method: Inversion,
        group: &[&Shares],
    ) -> Result<InverseEstimate, StackError> {
        invert(method, &self.linear, group)
    }

    /// Slowdown of each thread of a group from throttled stacks.
    ///
    /// # Errors
    /// [`StackError::Length`] when a thread has another number of components.
    pub fn slowdowns(&self, form: Form, group: &[Shares]) -> Result<Vec<f64>, StackError> {
        let table = Interference::predict(self.form(form), group)?;
        let all: Vec<usize> = (0..group.len()).collect();
        Ok(all.iter().map(|&thread| table.slowdown(thread, &all)).collect())
    }
}
