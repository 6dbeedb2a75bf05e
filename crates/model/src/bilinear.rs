//! Slowdown as a bilinear form, and the terms beyond the paper.
//!
//! # Problem
//! With δ = 0 the slowdown is a sum of what a thread brings and what its
//! co-runners bring. Then the sum of all slowdowns is the same whoever shares
//! a core with whom, and there is nothing to choose by. What pairs gain lies
//! in the interaction. The δ of equations 1 to 3 let a component interact with
//! the same component only.
//!
//! # Approach
//! A [`Bilinear`] form covers every variant:
//!
//! slowdownⱼ = c + own·xⱼ + Σₖ (given·xₖ + Σᵣ (vᵣ·xⱼ)(aᵣ·xₖ)), over co-runners k.
//!
//! Equations 1 to 3 are the case c = Σ α, own = β, given = γ, and one factor
//! for each component with δ ≠ 0. A form of rank r has r factors in which any
//! component may meet any other: vᵣ is what a victim suffers from, aᵣ what an
//! aggressor does.
//!
//! Of roots ([`Features::Roots`]) there are two forms: in one any component's root meets any
//! other's, in the other what waits for a resource meets what uses it
//! ([`Pressure`](crate::Pressure)).
//!
//! Since co-runners only add up, one table of what each thread costs each
//! other serves groups of any size ([`Interference`](crate::Interference)).

use serde::{Deserialize, Serialize};

use crate::Shares;
use crate::forward::{Coefficients, TOO_LARGE};

/// One way in which threads hurt each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// How much each component of the victim suffers.
    pub victim: Vec<f64>,
    /// How much each component of the co-runner does.
    pub aggressor: Vec<f64>,
}

/// What a form weighs of a stack.
///
/// Half as many lines evict more than half as much, and a thread that waits for a cache in one
/// cycle of a hundred already loses what it holds there: sharing saturates, so square roots tell
/// more of it than shares do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Features {
    /// The shares.
    #[default]
    Shares,
    /// Their square roots.
    Roots,
}

impl Features {
    /// The features of a stack, in the order of its components.
    pub(crate) fn of(self, shares: &Shares) -> Vec<f64> {
        match self {
            Self::Shares => shares.parts().to_vec(),
            Self::Roots => shares.parts().iter().map(|share| share.sqrt()).collect(),
        }
    }
}

/// Slowdown of a thread from its own shares and its co-runners'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bilinear {
    /// Cost of company as such.
    pub constant: f64,
    /// What of the shares everything below is multiplied by.
    #[serde(default)]
    pub features: Features,
    /// What the thread's own components bring.
    pub own: Vec<f64>,
    /// What each co-runner's components bring.
    pub given: Vec<f64>,
    /// Interactions; none makes it additive.
    #[serde(default, rename = "factor")]
    pub factors: Vec<Factor>,
}

impl Bilinear {
    /// Numbers of components that its parts are for; all the same in a sound
    /// form.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts().map(<[f64]>::len)
    }

    pub(crate) fn is_finite(&self) -> bool {
        let mut values = self.parts().flatten().chain([&self.constant]);
        values.all(|value| value.abs() < TOO_LARGE)
    }

    fn parts(&self) -> impl Iterator<Item = &[f64]> {
        let factors = self.factors.iter().flat_map(|f| [&*f.victim, &*f.aggressor]);
        [&*self.own, &*self.given].into_iter().chain(factors)
    }

    /// What a thread brings by itself.
    pub(crate) fn own(&self, features: &[f64]) -> f64 {
        self.constant + dot(&self.own, features)
    }

    /// What a thread adds to every co-runner.
    pub(crate) fn given(&self, features: &[f64]) -> f64 {
        dot(&self.given, features)
    }
}

impl From<&Coefficients> for Bilinear {
    fn from(coefficients: &Coefficients) -> Self {
        let terms = coefficients.terms();
        let unit = |at: usize, value: f64| {
            (0..terms.len()).map(|i| if i == at { value } else { 0.0 }).collect()
        };
        let interacting = terms.iter().enumerate().filter(|(_, terms)| terms.delta != 0.0);
        Self {
            constant: terms.iter().map(|terms| terms.alpha).sum(),
            own: terms.iter().map(|terms| terms.beta).collect(),
            given: terms.iter().map(|terms| terms.gamma).collect(),
            features: Features::Shares,
            factors: interacting
                .map(|(at, terms)| Factor {
                    victim: unit(at, terms.delta),
                    aggressor: unit(at, 1.0),
                })
                .collect(),
        }
    }
}

/// Scalar product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
