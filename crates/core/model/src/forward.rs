//! The forward model (Feliu et al., equations 1 to 3).
//!
//! For thread j of a group and component i, with shares x of throttled CPI:
//!
//! x′ⱼᵢ = αᵢ + βᵢ xⱼᵢ + γᵢ Σₖ xₖᵢ + δᵢ xⱼᵢ Σₖ xₖᵢ, the sums over the co-runners k ≠ j.
//!
//! x′ is the component with co-runners, normalised to the throttled CPI; the sum
//! of a thread's components is its slowdown. Base, resource and miss
//! components have the same form, so one type serves all three.
//!
//! Regression may give a small negative component where a thread has next to
//! none. The slowdown is the sum of the components as the equations give them
//! (clamping would bias it) and at least [`LEAST_SLOWDOWN`]; the components
//! themselves are clamped at 0, and counted.

use serde::{Deserialize, Serialize};

use crate::{Shares, StackError, stack::floor_at_zero};

/// Least slowdown that is ever predicted. Coefficients that are used far from
/// what they were trained on could give less, even nothing, and then 1/slowdown
/// would have no meaning.
pub const LEAST_SLOWDOWN: f64 = 0.5;

/// Coefficients of this size or more are refused: no fit gives them, and
/// predictions could overflow.
pub(crate) const TOO_LARGE: f64 = 1e12;

/// The coefficients of one component.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Constant cost of a co-runner.
    pub alpha: f64,
    /// What remains of the thread's own component.
    pub beta: f64,
    /// What the co-runners' components add.
    pub gamma: f64,
    /// Interaction of own and others' components.
    pub delta: f64,
}

impl Terms {
    /// The component with co-runners, from the own one and the sum of the
    /// co-runners'.
    #[must_use]
    pub fn predict(&self, own: f64, others: f64) -> f64 {
        self.alpha + self.beta * own + self.gamma * others + self.delta * own * others
    }
}

/// The coefficients of all components, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficients(Vec<Terms>);

/// The prediction for one thread of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Components over throttled CPI; not negative.
    pub parts: Vec<f64>,
    /// Co-running CPI over throttled CPI.
    pub slowdown: f64,
    /// Components that came out negative and were set to 0.
    pub clamped: usize,
}

impl Coefficients {
    /// From the terms of each component.
    ///
    /// # Errors
    /// [`StackError::Empty`] without any, [`StackError::NotFinite`] if one is
    /// not a number, infinite, or 10¹² and more.
    pub fn new(terms: Vec<Terms>) -> Result<Self, StackError> {
        let finite =
            |t: &Terms| [t.alpha, t.beta, t.gamma, t.delta].iter().all(|c| c.abs() < TOO_LARGE);
        match terms.iter().position(|t| !finite(t)) {
            Some(index) => Err(StackError::NotFinite(index)),
            None if terms.is_empty() => Err(StackError::Empty),
            None => Ok(Self(terms)),
        }
    }

    /// The same slowdown of every thread in every group.
    ///
    /// # Errors
    /// As [`Coefficients::new`].
    pub fn constant(slowdown: f64, components: usize) -> Result<Self, StackError> {
        let mut terms = vec![Terms::default(); components];
        if let Some(first) = terms.first_mut() {
            first.alpha = slowdown;
        }
        Self::new(terms)
    }

    /// The terms of each component.
    #[must_use]
    pub fn terms(&self) -> &[Terms] {
        &self.0
    }

    /// Are all δ zero?
    #[must_use]
    pub fn linear(&self) -> bool {
        self.0.iter().all(|terms| terms.delta == 0.0)
    }

    /// The prediction for each thread of a group of two or more. A thread alone
    /// keeps its shares, at slowdown 1.
    ///
    /// # Errors
    /// [`StackError::Length`] when a thread has another number of components.
    pub fn forward(&self, group: &[&Shares]) -> Result<Vec<Prediction>, StackError> {
        check(group, self.0.len())?;
        if let [alone] = group {
            let parts = alone.parts().to_vec();
            return Ok(vec![Prediction { parts, slowdown: 1.0, clamped: 0 }]);
        }
        let sums = component_sums(group, self.0.len());
        group.iter().map(|own| self.predict(own.parts(), &sums)).collect()
    }

    /// One thread, from its own shares and the sums over its whole group.
    fn predict(&self, own: &[f64], sums: &[f64]) -> Result<Prediction, StackError> {
        let mut parts: Vec<f64> = (self.0.iter().zip(own).zip(sums))
            .map(|((terms, own), sum)| terms.predict(*own, sum - own))
            .collect();
        let slowdown = parts.iter().sum::<f64>().max(LEAST_SLOWDOWN);
        let clamped = floor_at_zero(&mut parts)?;
        Ok(Prediction { parts, slowdown, clamped })
    }
}

/// Refuses a group if a thread has not `want` components.
pub(crate) fn check(group: &[&Shares], want: usize) -> Result<(), StackError> {
    match group.iter().map(|shares| shares.parts().len()).find(|&got| got != want) {
        Some(got) => Err(StackError::Length { got, want }),
        None => Ok(()),
    }
}

/// Sum of each component over a group.
pub fn component_sums(group: &[&Shares], components: usize) -> Vec<f64> {
    let mut sums = vec![0.0; components];
    for shares in group {
        for (sum, part) in sums.iter_mut().zip(shares.parts()) {
            *sum += part;
        }
    }
    sums
}
