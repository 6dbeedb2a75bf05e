//! Captured activity of programs, as the policy `activity` sees it.

use symbiont_policy::ActivityInterval;
use symbiont_profile::vectors::Vectors;

/// The intervals of a program: uses and misses of each cache in turn.
#[must_use]
pub fn intervals(vectors: &Vectors) -> Vec<ActivityInterval> {
    let of = |interval: &symbiont_profile::vectors::Interval| {
        let caches = interval.caches.iter();
        let counts = caches.flat_map(|cache| [cache.uses.clone(), cache.misses.clone()]);
        ActivityInterval { instructions: interval.instructions, counts: counts.collect() }
    };
    vectors.intervals.iter().map(of).collect()
}
