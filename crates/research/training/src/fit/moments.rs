//! The sums over a training set from which a model is fitted.

use super::least_squares::Sums;
use symbiont_model::{Shares, component_sums};

use crate::{Observation, Weighting};

/// Sums for the coefficients of each component.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    /// For each component: features 1, own, others, own × others; target: the
    /// component with co-runners.
    pub(crate) components: Vec<Sums>,
    weighting: Weighting,
    observed: u64,
}

impl Moments {
    pub(crate) fn new(components: usize, weighting: Weighting) -> Self {
        Self { components: vec![Sums::new(4); components], weighting, observed: 0 }
    }

    /// Adds every thread of an observation.
    pub(crate) fn add(&mut self, observation: &Observation) {
        let alone = observation.alone();
        let group: Vec<&Shares> = alone.iter().collect();
        let all = component_sums(&group, self.components.len());
        for (thread, own) in observation.threads().iter().zip(&alone) {
            let own = own.parts();
            let others: Vec<f64> = all.iter().zip(own).map(|(all, own)| all - own).collect();
            let target = thread.relative();
            let slowdown: f64 = target.iter().sum();
            let weight = self.weighting.of(slowdown);
            let pairs = self.components.iter_mut().zip(own.iter().zip(&others)).zip(&target);
            for ((sums, (x, s)), target) in pairs {
                sums.add(&[1.0, *x, *s, x * s], *target, weight);
            }
            self.observed += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sums, other) in self.components.iter_mut().zip(&other.components) {
            sums.merge(other);
        }
        self.observed += other.observed;
    }

    /// Threads observed, each once a quantum.
    pub(crate) fn observed(&self) -> u64 {
        self.observed
    }
}
