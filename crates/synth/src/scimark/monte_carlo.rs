//! Monte Carlo integration: the share of random points of the unit square that lie within the
//! quarter circle is a quarter of π.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::checksum::checksum;
use super::kernel::Workload;

/// Points in one execution.
const POINTS: u32 = 100_000;
/// Floating-point operations of one execution: four per point, without those of the generator.
pub(super) const OPERATIONS: u64 = 4 * POINTS as u64;

/// Estimates π.
#[derive(Debug)]
pub(super) struct MonteCarlo {
    seed: u64,
}

impl MonteCarlo {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }
}

impl Workload for MonteCarlo {
    fn execute(&mut self) -> u64 {
        checksum([estimate(self.seed, POINTS).to_bits()])
    }
}

/// An estimate of π by this many points.
fn estimate(seed: u64, points: u32) -> f64 {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut within: u32 = 0;
    for _ in 0..points {
        let (x, y): (f64, f64) = (rng.random(), rng.random());
        within += u32::from(x * x + y * y <= 1.0);
    }
    4.0 * f64::from(within) / f64::from(points.max(1))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn estimate_is_close_to_pi() {
        for seed in 1..=5 {
            // Standard deviation of a million points: 0.0016.
            let error = (estimate(seed, 1_000_000) - PI).abs();
            assert!(error < 0.008, "seed {seed}: {error}");
        }
    }

    #[test]
    fn a_seed_gives_one_estimate() {
        assert_eq!(estimate(1, 10_000), estimate(1, 10_000));
        assert_ne!(estimate(1, 10_000), estimate(2, 10_000));
    }
}
