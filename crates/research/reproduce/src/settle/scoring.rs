//! How jobs are scored by what they did to the caches: counts by super-set, vectors made of them, and their overlap.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
pub use symbiont_policy::activity::VECTORS;
use symbiont_policy::activity::Vector;
use symbiont_sim_cycle::SuperSetIndexing;

/// How jobs are scored. What the paper leaves open is here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scoring {
    /// Super-sets of each cache.
    pub super_sets: usize,
    /// Which sets are one.
    pub reading: SuperSetIndexing,
    /// Count of a sample, per super-set, above which a bit is set, by vector.
    pub thresholds: [u64; VECTORS],
    /// Weights of overlapping bits, by vector.
    pub overlap: [f64; VECTORS],
    /// Weight of the product of misses, in units of the average program's per instruction.
    pub misses: f64,
    /// Those of the average program.
    pub average: f64,
    /// Weight of a sample of residence.
    pub resident: f64,
    /// A control: which job's vectors each job has, if not its own.
    pub vectors_of: Option<Vec<usize>>,
    /// A control: the seed by which the super-sets of each job are put into another order, if they are. As many bits
    /// are set as before, elsewhere.
    pub elsewhere: Option<u64>,
}

/// What was done to a cache in a sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Accesses by super-set.
    pub uses: Vec<u32>,
    /// Misses by super-set.
    pub misses: Vec<u32>,
    /// Misses of lines that another job had displaced.
    pub kicked_out: u32,
}

impl CacheCounts {
    /// Keeps the sums alone.
    pub(super) fn sum_up(&mut self) {
        for counts in [&mut self.uses, &mut self.misses] {
            *counts = vec![counts.iter().sum()];
        }
    }
}

/// The vectors of what was done to each cache, for so many super-sets.
#[must_use]
pub fn vectors(
    caches: &[CacheCounts],
    super_sets: usize,
    thresholds: &[u64; VECTORS],
) -> Vec<Vector> {
    ordered(caches, thresholds, &(0..super_sets).collect::<Vec<_>>(), SuperSetIndexing::Contiguous)
}

/// The same with the super-sets in an order.
fn ordered(
    caches: &[CacheCounts],
    thresholds: &[u64; VECTORS],
    order: &[usize],
    reading: SuperSetIndexing,
) -> Vec<Vector> {
    let counts = caches.iter().flat_map(|cache| [&cache.uses, &cache.misses]);
    let above = |(counts, threshold): (&Vec<u32>, &u64)| {
        let counts = grouped(counts, order.len(), reading);
        let ordered = order.iter().map(|place| counts.get(*place).copied().unwrap_or(0));
        Vector::above(ordered, *threshold)
    };
    counts.zip(thresholds).map(above).collect()
}

impl Scoring {
    /// The vectors of a job by what it did to its caches.
    #[must_use]
    pub fn vectors(&self, job: usize, caches: &[CacheCounts]) -> Vec<Vector> {
        let mut order: Vec<usize> = (0..self.super_sets).collect();
        if let Some(seed) = self.elsewhere {
            order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed.wrapping_add(job as u64)));
        }
        ordered(caches, &self.thresholds, &order, self.reading)
    }
}

/// Weighted overlap of two jobs' vectors.
#[must_use]
pub fn weighted(one: &[Vector], other: &[Vector], weights: &[f64; VECTORS]) -> f64 {
    let pairs = one.iter().zip(other).zip(weights);
    pairs.map(|((one, other), weight)| weight * f64::from(one.overlap(other))).sum()
}

/// Merges counts of one indexing into this many groups; fewer if there are fewer.
pub fn grouped(counts: &[u32], groups: usize, reading: SuperSetIndexing) -> Vec<u64> {
    let (of, groups) = reading.groups(counts.len(), groups);
    let mut sums = vec![0; groups];
    for (at, count) in counts.iter().enumerate() {
        if let Some(sum) = sums.get_mut(of(at)) {
            *sum += u64::from(*count);
        }
    }
    sums
}
