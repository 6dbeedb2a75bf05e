//! What a fit needs to know of a training set.

use super::least_squares::Sums;
use crate::forward::sums;
use crate::{Observation, Shares};

/// Sums for the coefficients of each component, and for the slowdown.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    /// For each component: features 1, own, others, own × others; target: the
    /// component in company.
    pub(crate) components: Vec<Sums>,
    /// Features 1, each own, each others, each own × each others; target: the
    /// slowdown.
    pub(crate) slowdown: Sums,
}

impl Moments {
    pub(crate) fn new(components: usize) -> Self {
        Self {
            components: vec![Sums::new(4); components],
            slowdown: Sums::new(1 + components * (2 + components)),
        }
    }

    /// Adds every thread of an observation.
    pub(crate) fn add(&mut self, observation: &Observation) {
        let alone = observation.alone();
        let group: Vec<&Shares> = alone.iter().collect();
        let all = sums(&group, self.components.len());
        for (thread, own) in observation.threads().iter().zip(&alone) {
            let own = own.parts();
            let others: Vec<f64> = all.iter().zip(own).map(|(all, own)| all - own).collect();
            let target = thread.relative();
            let pairs = self.components.iter_mut().zip(own.iter().zip(&others)).zip(&target);
            for ((sums, (x, s)), target) in pairs {
                sums.add(&[1.0, *x, *s, x * s], *target, 1.0);
            }
            let products = own.iter().flat_map(|x| others.iter().map(move |s| x * s));
            let features = [1.0].into_iter().chain(own.iter().copied());
            let features: Vec<f64> =
                features.chain(others.iter().copied()).chain(products).collect();
            self.slowdown.add(&features, target.iter().sum(), 1.0);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sums, other) in self.components.iter_mut().zip(&other.components) {
            sums.merge(other);
        }
        self.slowdown.merge(&other.slowdown);
    }

    /// Threads observed, each once a quantum.
    pub(crate) fn count(&self) -> f64 {
        self.slowdown.count()
    }
}
