//! The model of one SMT mode, in all its forms.

use serde::{Deserialize, Serialize};

use crate::bilinear::Bilinear;
use crate::forward::Coefficients;
use crate::inverse::{Inversion, Inverted, invert};
use crate::{Interference, Kernel, Law, Shares, StackError};

/// Which terms predict the slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Equations 1 to 3 without δ: additive.
    Linear,
    /// Equations 1 to 3.
    Delta,
    /// One interaction of any components with any others, beyond the paper.
    #[serde(rename = "rank-1")]
    Rank1,
    /// Two of them.
    #[serde(rename = "rank-2")]
    Rank2,
    /// Three of them.
    #[serde(rename = "rank-3")]
    Rank3,
    /// Interactions of the square roots of all components with all others, held back by a
    /// ridge, beyond the paper.
    Roots,
    /// Of these interactions those that a resource stands behind which both threads use
    /// ([`Pressure`](crate::Pressure)), likewise.
    Pressure,
    /// Speeds of programs that are alike in company ([`Kernel`]), beyond the paper.
    Kernel,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Linear,
        Self::Delta,
        Self::Rank1,
        Self::Rank2,
        Self::Rank3,
        Self::Roots,
        Self::Pressure,
        Self::Kernel,
    ];

    /// Does it predict from mean stacks in company, instead of throttled stacks alone?
    #[must_use]
    pub fn in_company(self) -> bool {
        self == Self::Kernel
    }

    /// The name that files and reports use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Delta => "delta",
            Self::Rank1 => "rank-1",
            Self::Rank2 => "rank-2",
            Self::Rank3 => "rank-3",
            Self::Roots => "roots",
            Self::Pressure => "pressure",
            Self::Kernel => "kernel",
        }
    }
}

/// Everything that was fitted for one SMT mode.
#[derive(Debug, Clone, PartialEq)]
pub struct SmtModel {
    linear: Coefficients,
    delta: Coefficients,
    /// What the two say of the slowdown.
    published: [Bilinear; 2],
    ranks: [Bilinear; 3],
    /// Of roots: all products, and those that are named.
    held_back: [Bilinear; 2],
    kernel: Kernel,
}

impl SmtModel {
    /// From coefficients without δ, with δ, the forms of rank 1, 2 and 3, those of roots and of
    /// pressure, and the kernel.
    ///
    /// # Errors
    /// [`StackError::Length`] when they are not for the same number of
    /// components, [`StackError::NotFinite`] when a form has a number that is
    /// not finite.
    pub fn new(
        linear: Coefficients,
        delta: Coefficients,
        ranks: [Bilinear; 3],
        held_back: [Bilinear; 2],
        kernel: Kernel,
    ) -> Result<Self, StackError> {
        let want = linear.terms().len();
        let fitted = || ranks.iter().chain(&held_back);
        let lengths = [delta.terms().len()].into_iter().chain(fitted().flat_map(Bilinear::lengths));
        if let Some(got) = lengths.into_iter().find(|&got| got != want) {
            return Err(StackError::Length { got, want });
        }
        if let Some(odd) = fitted().position(|form| !form.is_finite()) {
            return Err(StackError::NotFinite(odd));
        }
        kernel.check(want)?;
        let published = [&linear, &delta].map(Bilinear::from);
        Ok(Self { linear, delta, published, ranks, held_back, kernel })
    }

    /// Number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.linear.terms().len()
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
    pub fn form(&self, form: Form) -> Law<'_> {
        let bilinear = match form {
            Form::Linear => &self.published[0],
            Form::Delta => &self.published[1],
            Form::Rank1 => &self.ranks[0],
            Form::Rank2 => &self.ranks[1],
            Form::Rank3 => &self.ranks[2],
            Form::Roots => &self.held_back[0],
            Form::Pressure => &self.held_back[1],
            Form::Kernel => return Law::Kernel(&self.kernel),
        };
        Law::Bilinear(bilinear)
    }

    /// The forms of roots and of pressure.
    #[must_use]
    pub fn held_back(&self) -> &[Bilinear; 2] {
        &self.held_back
    }

    /// The kernel form.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The forms of rank 1, 2 and 3.
    #[must_use]
    pub fn ranks(&self) -> &[Bilinear; 3] {
        &self.ranks
    }

    /// Throttled stacks of a group from its stacks in company.
    ///
    /// # Errors
    /// [`StackError::Length`] when a thread has another number of components.
    pub fn invert(&self, method: Inversion, group: &[&Shares]) -> Result<Inverted, StackError> {
        invert(method, &self.linear, &self.delta, group)
    }

    /// Slowdown of each thread of a group from throttled stacks, or from mean stacks in company where
    /// the form predicts from those ([`Form::in_company`]).
    ///
    /// # Errors
    /// [`StackError::Length`] when a thread has another number of components.
    pub fn slowdowns(&self, form: Form, group: &[Shares]) -> Result<Vec<f64>, StackError> {
        let table = Interference::predict(self.form(form), group)?;
        let all: Vec<usize> = (0..group.len()).collect();
        Ok(all.iter().map(|&thread| table.slowdown(thread, &all)).collect())
    }
}
