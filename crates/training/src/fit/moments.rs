//! What a fit needs to know of a training set.
//!
//! An observation weighs 1/slowdown², so that squares of relative errors are summed up:
//! models are judged by those. Otherwise the few threads that suffer several times as much as
//! all others decide alone, and all others are said to suffer from them.

use super::least_squares::Sums;
use symbiont_model::{Shares, component_sums};

use crate::Observation;

/// Sums for the coefficients of each component.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    /// For each component: features 1, own, others, own × others; target: the
    /// component with co-runners.
    pub(crate) components: Vec<Sums>,
    observed: u64,
}

/// What an observation of a slowdown weighs.
pub(crate) fn weight(slowdown: f64) -> f64 {
    1.0 / (slowdown * slowdown)
}

impl Moments {
    pub(crate) fn new(components: usize) -> Self {
        Self { components: vec![Sums::new(4); components], observed: 0 }
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
            let weight = weight(slowdown);
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
