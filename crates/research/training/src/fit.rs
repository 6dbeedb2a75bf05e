//! Fits the model of one SMT mode by least squares.
//!
//! # Approach
//! Equations 1 to 3 are linear in α, β, γ and δ, so that each component is fitted on its own:
//!
//! ```text
//! for each component:
//!     without δ  →  the additive form, also for the inverse
//!     with δ     →  the whole form
//! ```
//!
//! Everything is fitted from sums over the training set ([`Moments`]). They are kept for each combination of
//! programs and can be added up, which makes leave-p-out cross-validation cheap. All observations weigh the same,
//! as published; or, which is ours, according to their slowdowns ([`Weighting::Relative`]).
//!
//! A component that never occurs, or features that never vary independently, leave coefficients undetermined: of
//! all solutions, the smallest is taken. Standard errors assume that quanta are independent. Those of one run are
//! not, so that the errors are too small: what counts is the cross-validation.
//!
//! # Properties
//! - Known coefficients are recovered, with and without noise
//!   (`known_coefficients_are_recovered`,
//!   `with_noise_most_coefficients_lie_within_their_intervals`).
//! - The order of the observations does not matter beyond rounding, nor how
//!   they are put together (`a_training_set_may_be_put_together_from_parts`).

mod least_squares;
mod moments;
#[cfg(test)]
mod tests;

use std::fmt;

use symbiont_model::{Coefficients, Fit, SmtMode, SmtModel, Terms};

use crate::Observation;

pub(crate) use least_squares::Sums;
pub(crate) use moments::Moments;

/// Why no model can be fitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// No observations at all.
    #[error(
        "nothing to fit on: no quantum in which a group ran and each thread's run alone is known"
    )]
    Empty,
    /// Observations with another number of components than the first.
    #[error("observation {index} (from 0) has {got} components, the first has {want}")]
    Components {
        /// Its place.
        index: usize,
        /// Its components.
        got: usize,
        /// Components of the first.
        want: usize,
    },
    /// A group that does not run in the mode that is fitted.
    #[error("observation {index} (from 0) has {threads} threads, which do not run in {mode}")]
    Mode {
        /// Its place.
        index: usize,
        /// Its threads.
        threads: usize,
        /// The mode.
        mode: SmtMode,
    },
    /// Observations are not finite, or so extreme that nothing can be solved.
    #[error("the observations cannot be solved for coefficients")]
    Unsolvable,
    /// The caller asked it to stop.
    #[error("the fit was asked to stop")]
    Stopped,
}

/// How much an observation weighs in a fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weighting {
    /// As much as any other: a plain linear regression (Feliu et al., section 3.1).
    #[default]
    Plain,
    /// 1/slowdown², so that the fit minimises squares of relative errors, by which models are judged. The few threads
    /// that suffer several times as much as all others then do not dominate it.
    Relative,
}

impl fmt::Display for Weighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain: each observation weighs the same",
            Self::Relative => "relative: an observation weighs 1/slowdown²",
        })
    }
}

impl Weighting {
    /// The weight of an observation of a slowdown.
    #[must_use]
    pub fn of(self, slowdown: f64) -> f64 {
        match self {
            Self::Plain => 1.0,
            Self::Relative => 1.0 / (slowdown * slowdown),
        }
    }
}

/// Fits the model of one SMT mode by a plain regression.
///
/// # Errors
/// When there is nothing to fit on, or observations do not belong together.
pub fn fit(mode: SmtMode, observations: &[Observation]) -> Result<Fit, FitError> {
    fit_weighted(mode, observations, Weighting::Plain)
}

/// Fits the model of one SMT mode by a weighted regression.
///
/// # Errors
/// As [`fit()`].
pub fn fit_weighted(
    mode: SmtMode,
    observations: &[Observation],
    weighting: Weighting,
) -> Result<Fit, FitError> {
    let mut moments = Moments::new(check(mode, observations)?, weighting);
    observations.iter().for_each(|observation| moments.add(observation));
    from_moments(&moments)
}

/// Number of components, if the observations belong together.
pub(crate) fn check(mode: SmtMode, observations: &[Observation]) -> Result<usize, FitError> {
    let want = observations.first().ok_or(FitError::Empty)?.components();
    for (index, observation) in observations.iter().enumerate() {
        let (got, threads) = (observation.components(), observation.threads().len());
        if got != want {
            return Err(FitError::Components { index, got, want });
        }
        if SmtMode::of(threads) != Some(mode) {
            return Err(FitError::Mode { index, threads, mode });
        }
    }
    Ok(want)
}

pub(crate) fn from_moments(moments: &Moments) -> Result<Fit, FitError> {
    if moments.observed() == 0 {
        return Err(FitError::Empty);
    }
    let (mean, _) = coefficients(moments, &[0])?;
    let mean = mean.terms().iter().map(|terms| terms.alpha).sum();
    let (linear, linear_errors) = coefficients(moments, &[0, 1, 2])?;
    let (delta, delta_errors) = coefficients(moments, &[0, 1, 2, 3])?;
    let model = SmtModel::new(mean, linear, delta);
    let model = model.map_err(|_| FitError::Unsolvable)?;
    Ok(Fit { model, linear_errors, delta_errors, observed: moments.observed() })
}

/// Coefficients of the chosen features, and their standard errors.
fn coefficients(
    moments: &Moments,
    features: &[usize],
) -> Result<(Coefficients, Vec<Terms>), FitError> {
    let terms = |values: &[f64]| {
        let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
        Terms { alpha: at(0), beta: at(1), gamma: at(2), delta: at(3) }
    };
    let mut values = Vec::with_capacity(moments.components.len());
    let mut errors = Vec::with_capacity(moments.components.len());
    for sums in &moments.components {
        let solution = sums.only(features).solve(|_| 0.0).ok_or(FitError::Unsolvable)?;
        values.push(terms(&solution.values));
        errors.push(terms(&solution.errors));
    }
    Ok((Coefficients::new(values).map_err(|_| FitError::Unsolvable)?, errors))
}
