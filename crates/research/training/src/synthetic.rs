//! Runs of synthetic programs, for tests and benchmarks of whatever uses a model.
//!
//! # Problem
//! Whether a fit recovers the true coefficients, and how much noise spoils it, shows only where the truth is
//! known.
//!
//! # Approach
//! A [`World`] has programs with phases, each of which is a stack, and a law of contention: equations 1 to 3 with
//! known coefficients. If wanted, it has something more, which the equations do not know ([`World::saturation`]):
//! where the co-runners' demands for a component exceed 1 in sum, they slow each other down by the square of the
//! excess. Observations are drawn by a seed, with multiplicative noise on every measured component.
//!
//! A world has no caches and no pipelines. It shows whether the mathematics works, not how good a model is on a
//! machine.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use symbiont_model::{Coefficients, CpiStack, Shares, Terms, component_sums};

use crate::{Observation, Observed};

/// Programs, and how they slow each other down.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// Name and phases of each program.
    pub programs: Vec<(Arc<str>, Vec<Shares>)>,
    /// The law.
    pub coefficients: Coefficients,
    /// Factor on the square of the excess over 1 of a component's sum over a group;
    /// with 0, only the equations hold.
    pub saturation: f64,
    /// Standard deviation of the relative noise of measured components.
    pub noise: f64,
}

impl World {
    /// Programs with random phases under a law. Each program is dominated by a few
    /// components, the same ones in all its phases.
    #[must_use]
    pub fn new(programs: usize, phases: usize, coefficients: Coefficients, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let m = coefficients.terms().len();
        let mut programs_made = Vec::with_capacity(programs);
        for at in 0..programs {
            let lean: Vec<f64> =
                (0..m).map(|_| random.random_range(0.02..1.0_f64).powi(3)).collect();
            let phase = |random: &mut Pcg64Mcg| {
                let parts: Vec<f64> =
                    lean.iter().map(|lean| lean * random.random_range(0.6..1.6)).collect();
                let sum = parts.iter().sum();
                Shares::scaled(parts, sum)
            };
            let phases = (0..phases.max(1)).map(|_| phase(&mut random)).collect();
            programs_made.push((format!("program-{at:02}").into(), phases));
        }
        Self { programs: programs_made, coefficients, saturation: 0.0, noise: 0.0 }
    }

    /// A law with interaction, of `components` components.
    #[must_use]
    pub fn law(components: usize, delta: f64) -> Vec<Terms> {
        let part = |at: usize, of: usize| (at % of) as f64 / of as f64;
        let terms = |at: usize| Terms {
            alpha: 0.01 + 0.02 * part(at, 3),
            beta: 0.95 + 0.15 * part(at, 2),
            gamma: 0.05 + 0.15 * part(at, 4),
            delta: delta * (1.0 - 0.5 * part(at, 5)),
        };
        (0..components).map(terms).collect()
    }

    /// The true components of a group with co-runners, over throttled CPI.
    #[must_use]
    pub fn truth(&self, group: &[&Shares]) -> Vec<Vec<f64>> {
        let terms = self.coefficients.terms();
        let all = component_sums(group, terms.len());
        let one = |((terms, own), all): ((&Terms, &f64), &f64)| {
            let excess = (all - 1.0).max(0.0);
            (terms.predict(*own, all - own) + self.saturation * own * excess * excess).max(0.0)
        };
        let of = |own: &&Shares| terms.iter().zip(own.parts()).zip(&all).map(one).collect();
        group.iter().map(of).collect()
    }

    /// True slowdown of one thread of each program co-running with one of each other, first
    /// phases.
    #[must_use]
    pub fn pair_slowdowns(&self) -> Vec<Vec<f64>> {
        let firsts: Vec<&Shares> =
            self.programs.iter().filter_map(|(_, phases)| phases.first()).collect();
        let slowdown = |victim: &Shares, other: &Shares| {
            self.truth(&[victim, other]).first().map_or(1.0, |parts| parts.iter().sum())
        };
        let row = |victim: &&Shares| firsts.iter().map(|other| slowdown(victim, other)).collect();
        firsts.iter().map(row).collect()
    }

    /// Observes groups of programs (by index) for some quanta each; phases
    /// pass at different speeds.
    #[must_use]
    pub fn observe(&self, groups: &[Vec<usize>], quanta: usize, seed: u64) -> Vec<Observation> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut observations = Vec::with_capacity(groups.len() * quanta);
        for group in groups {
            let members: Vec<_> = group.iter().filter_map(|&at| self.programs.get(at)).collect();
            for _ in 0..quanta {
                observations.extend(self.quantum(&members, &mut random));
            }
        }
        observations
    }

    /// All pairs of different programs.
    #[must_use]
    pub fn all_pairs(&self) -> Vec<Vec<usize>> {
        (0..self.programs.len()).flat_map(|a| (0..a).map(move |b| vec![b, a])).collect()
    }

    /// Groups of different programs, drawn from a seed.
    #[must_use]
    pub fn some_groups(&self, size: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let draw = |_| {
            let amount = size.min(self.programs.len());
            rand::seq::index::sample(&mut random, self.programs.len(), amount).into_vec()
        };
        (0..count).map(draw).collect()
    }

    fn quantum(
        &self,
        members: &[&(Arc<str>, Vec<Shares>)],
        random: &mut Pcg64Mcg,
    ) -> Option<Observation> {
        let mut phases = Vec::with_capacity(members.len());
        for (_, all) in members {
            phases.push(all.get(random.random_range(0..all.len()))?);
        }
        let mut observed = Vec::with_capacity(members.len());
        for ((member, alone), together) in members.iter().zip(&phases).zip(self.truth(&phases)) {
            let cpi = random.random_range(0.5..4.0);
            let mut stack = |parts: &[f64]| {
                let noisy =
                    parts.iter().map(|part| cpi * part * (1.0 + self.noise * normal(random)));
                CpiStack::new(noisy.collect()).ok()
            };
            let (alone, together) = (stack(alone.parts())?, stack(&together)?);
            observed.push(Observed { program: Arc::clone(&member.0), alone, together });
        }
        Observation::new(observed).ok()
    }
}

/// About standard normal, within ±6: a sum of twelve even draws.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    (0..12).map(|_| random.random_range(-0.5..0.5)).sum()
}
