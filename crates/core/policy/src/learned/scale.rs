//! How much speeds vary: of one thread with the same co-runners from quantum to quantum, and between co-runners.
//!
//! Differences of ln IPC of a thread that keeps its co-runners are noise and a walk: over one quantum of variance
//! 2 σ² + w², over eight of 2 σ² + 8 w². Each thread has its own σ, which begins at that of all. What co-runners differ
//! by (ρ²) is what remains, of surprises at first meetings, beyond what had to be expected; surprises that were
//! uncertain anyway count less. A single value counts at most five standard deviations, so that a change of phase
//! says little.
//!
//! Property: the scales of simulated threads are found (`scales_are_found`).

/// Quanta of the longer difference.
const LONG: usize = 8;
/// Squares of a normal value beyond this times its variance count as this.
const CLIP: f64 = 25.0;
/// What σ, w and ρ are taken for, to begin with.
const NOISE: f64 = 0.03;
const WALK: f64 = 0.005;
const DIFFERENCE: f64 = 0.05;

/// A weighted mean that begins with a guess, and forgets slowly.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mean {
    sum: f64,
    weight: f64,
    most: f64,
}

impl Mean {
    fn guess(value: f64, weight: f64, most: f64) -> Self {
        Self { sum: value * weight, weight, most }
    }

    fn add(&mut self, value: f64, weight: f64) {
        self.sum += value * weight;
        self.weight += weight;
        if self.weight > self.most {
            self.sum *= self.most / self.weight;
            self.weight = self.most;
        }
    }

    fn value(self) -> f64 {
        self.sum / self.weight
    }
}

/// Of all threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scales {
    short: Mean,
    long: Mean,
    difference: Mean,
}

/// One thread with the co-runners that it has.
#[derive(Debug, Clone)]
pub(super) struct Stay {
    short: Mean,
    /// The last values, oldest first.
    values: Vec<f64>,
}

impl Default for Scales {
    fn default() -> Self {
        let difference = |quanta: f64| 2.0 * NOISE.powi(2) + quanta * WALK.powi(2);
        Self {
            short: Mean::guess(difference(1.0), 16.0, 4000.0),
            long: Mean::guess(difference(LONG as f64), 16.0, 4000.0),
            difference: Mean::guess(DIFFERENCE.powi(2), 4.0, 500.0),
        }
    }
}

impl Scales {
    /// Variance by which a speed alone walks in a quantum.
    pub fn walk(&self) -> f64 {
        ((self.long.value() - self.short.value()) / (LONG - 1) as f64).clamp(1e-6, 1e-3)
    }

    /// Variance of what a co-runner takes, about what its kind takes from all.
    pub fn difference(&self) -> f64 {
        self.difference.value().clamp(1e-6, 1.0)
    }

    /// Variance of a measurement of a thread.
    pub fn noise(&self, stay: &Stay) -> f64 {
        ((stay.short.value() - self.walk()) / 2.0).clamp(1e-6, 1.0)
    }

    /// A thread that was not known.
    pub fn stay(&self) -> Stay {
        Stay { short: Mean::guess(self.short.value(), 8.0, 200.0), values: Vec::new() }
    }

    /// It was measured; `is_same`: with the co-runners of the quantum before.
    pub fn note(&mut self, stay: &mut Stay, value: f64, is_same: bool) {
        if !is_same {
            stay.values.clear();
        }
        let clipped = |difference: f64, mean: Mean| difference.powi(2).min(CLIP * mean.value());
        if let Some(last) = stay.values.last() {
            let of_all = clipped(value - last, self.short);
            self.short.add(of_all, 1.0);
            let own = clipped(value - last, stay.short);
            stay.short.add(own, 1.0);
        }
        if stay.values.len() == LONG {
            let first = stay.values.remove(0);
            self.long.add(clipped(value - first, self.long), 1.0);
        }
        stay.values.push(value);
    }

    /// At a first meeting a measurement was off by so much, where this variance, the difference included, was expected.
    pub fn met(&mut self, off: f64, expected: f64) {
        let difference = self.difference();
        let remains = off.powi(2).min(CLIP * expected) - (expected - difference);
        self.difference.add(remains, (DIFFERENCE.powi(2) / expected).powi(2));
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_distr::StandardNormal;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn scales_are_found() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut draw = |deviation: f64| deviation * random.sample::<f64, _>(StandardNormal);
        for (noises, walk, difference) in [([0.02, 0.06], 0.01, 0.1), ([0.01, 0.01], 0.002, 0.02)] {
            let mut scales = Scales::default();
            let mut stays = [scales.stay(), scales.stay()];
            let mut alone = [0.3, -0.2];
            for quantum in 0..4000 {
                for at in 0..2 {
                    alone[at] += draw(walk);
                    // A change of phase now and then says little.
                    let phase = if quantum % 200 == 0 { 0.7 } else { 0.0 };
                    scales.note(
                        &mut stays[at],
                        alone[at] + draw(noises[at]) + phase,
                        quantum % 40 != 0,
                    );
                }
                let expected = 0.03 * 0.03 + scales.difference();
                scales.met(draw(difference) + draw(0.03), expected);
            }
            let near = |value: f64, wanted: f64, by: f64| {
                assert!(
                    value.sqrt() > wanted / by && value.sqrt() < wanted * by,
                    "{} {wanted}",
                    value.sqrt()
                );
            };
            near(scales.noise(&stays[0]), noises[0], 1.35);
            near(scales.noise(&stays[1]), noises[1], 1.35);
            near(scales.walk(), walk, 2.0);
            near(scales.difference(), difference, 1.35);
        }
    }
}
