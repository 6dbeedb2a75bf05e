//! AET: the average eviction time of a cache line, and the miss ratio that follows from it.
//!
//! # Problem
//! The window model and the shared caches need, for any cache size, how long a line stays cached and
//! how often a thread misses. All that a profile has is histograms of reuse times.
//!
//! # Approach
//! AET (Hu et al., Kinetic Modeling of Data Eviction in Cache, USENIX ATC 2016). With P(a) the share
//! of accesses whose reuse time exceeds a accesses, and r accesses per instruction, a cache with
//! least-recently-used replacement that holds C lines evicts a line at the age T for which
//!
//! ```text
//! F(T) = ∫ P(a) da, from 0 to r·T, = C          misses per instruction = r · P(r·T)
//! ```
//!
//! F(T) is also the *footprint*: the mean number of distinct lines
//! that are touched in T. Where several streams (data, code, prefetches) share a cache, their F and
//! their misses add up ([`Footprint::new`]). [`Footprint`] tabulates both in steps of a quarter octave,
//! as the profile's bins, and is linear in log t between.
//!
//! # Terms and units
//! Time and *reach* T: instructions of the thread, as log₂. Misses: per instruction.
//!
//! # Properties
//! - The reach of a cache is the time in which as many lines are touched
//!   (`a_reach_is_the_time_in_which_so_many_lines_are_touched`).
//! - A reach sought by its misses has these misses (`a_reach_within_has_so_many_misses`); of several the
//!   nearest is taken (`of_reaches_with_as_many_misses_the_nearest_is_taken`).
//! - A loop over less than the cache never misses (`a_loop_over_less_than_the_cache_never_misses`).

use std::hash::{Hash, Hasher};

use symbiont_profile::{ReuseCurve, ReuseHistogram};

/// Steps per octave.
pub(super) const STEPS: usize = 4;
/// Longest time, log₂ instructions.
const LONGEST: usize = 44;
/// Misses that differ by no more than this part are alike.
const ALIKE: f64 = 1e-4;
/// Points of a curve.
const POINTS: usize = STEPS * LONGEST + 1;

/// Distinct lines (or pages) and misses over time, of one thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Footprint {
    /// Lines at each point of time, and misses per instruction beyond.
    points: Box<[(f32, f32); POINTS]>,
    /// All lines that are ever touched.
    most: f64,
}

/// One stream: its curve and its accesses per instruction.
pub struct Stream {
    curve: ReuseCurve,
    rate: f64,
}

impl Stream {
    /// The stream of a histogram, over this number of instructions.
    #[must_use]
    pub fn new(histogram: &ReuseHistogram, instructions: u64) -> Self {
        let rate = histogram.accesses as f64 / instructions.max(1) as f64;
        Self { curve: histogram.curve(), rate }
    }
}

impl Footprint {
    /// The footprint of several streams together.
    #[must_use]
    pub fn new(streams: &[&Stream]) -> Self {
        let point = |index: usize| {
            let time = (index as f64 / STEPS as f64).exp2();
            let lines: f64 = streams.iter().map(|s| s.curve.integral(s.rate * time)).sum();
            let misses: f64 =
                streams.iter().map(|s| s.rate * s.curve.survival(s.rate * time)).sum();
            (lines as f32, misses as f32)
        };
        let points: [(f32, f32); POINTS] = std::array::from_fn(point);
        Self { most: f64::from(points[POINTS - 1].0), points: Box::new(points) }
    }

    /// Feeds it to a hash.
    pub(super) fn mark(&self, hasher: &mut impl Hasher) {
        for (lines, misses) in self.points.iter() {
            (lines.to_bits(), misses.to_bits()).hash(hasher);
        }
    }

    /// Point before `time` and the share of the step after it.
    fn place(time: f64) -> (usize, f64) {
        let at = (time * STEPS as f64).clamp(0.0, (POINTS - 1) as f64);
        let index = (at as u32 as usize).min(POINTS - 2);
        (index, at - index as f64)
    }

    /// Distinct lines in 2^`time` instructions, and their increase per octave.
    pub(super) fn lines_and_rise(&self, time: f64) -> (f64, f64) {
        let (index, share) = Self::place(time);
        let (a, b) = (self.points[index].0, self.points[index + 1].0);
        let (a, rise) = (f64::from(a), f64::from(b) - f64::from(a));
        // Below the first point lines grow with time.
        if time < 0.0 {
            let lines = a * time.exp2();
            return (lines, lines * std::f64::consts::LN_2);
        }
        (a + share * rise, rise * STEPS as f64)
    }

    /// Distinct lines in 2^`time` instructions.
    #[must_use]
    pub fn lines(&self, time: f64) -> f64 {
        self.lines_and_rise(time).0
    }

    /// Misses per instruction of a cache that reaches 2^`time` instructions back.
    #[must_use]
    pub fn misses(&self, time: f64) -> f64 {
        let (index, share) = Self::place(time);
        let (a, b) = (self.points[index].1, self.points[index + 1].1);
        f64::from(a) + share * (f64::from(b) - f64::from(a))
    }

    /// The reach, log₂ instructions, within an interval with this number of misses per instruction; of several
    /// the one nearest to `near`.
    #[must_use]
    pub fn reach_within(&self, [shortest, longest]: [f64; 2], misses: f64, near: f64) -> f64 {
        let steps = Self::place(shortest).0 + 1..=Self::place(longest).0;
        let between = steps.map(|index| index as f64 / STEPS as f64);
        let (mut more, mut alike) = (None, None);
        for time in [shortest].into_iter().chain(between).chain([longest]) {
            let here = self.misses(time);
            if here > misses * (1.0 + ALIKE) {
                more = Some((time, here));
            } else if here >= misses * (1.0 - ALIKE) {
                alike = Some((alike.map_or(time, |(first, _)| first), time));
            } else {
                return match (alike, more) {
                    (Some((first, last)), _) => near.clamp(first, last),
                    (None, Some((before, above))) => {
                        before + (time - before) * (above - misses) / (above - here)
                    }
                    (None, None) => time,
                };
            }
        }
        alike.map_or(longest, |(first, last)| near.clamp(first, last))
    }

    /// The shortest reach, log₂ instructions, with no more than these misses per instruction.
    #[must_use]
    pub fn reach_with_misses(&self, misses: f64) -> f64 {
        let after = self.points.partition_point(|point| f64::from(point.1) > misses);
        let Some(before) = after.checked_sub(1) else { return 0.0 };
        let Some(&(_, low)) = self.points.get(after) else { return FOREVER };
        let (high, low) = (f64::from(self.points[before].1), f64::from(low));
        let share = if high > low { (high - misses) / (high - low) } else { 0.0 };
        (before as f64 + share) / STEPS as f64
    }

    /// Accesses per instruction.
    #[must_use]
    pub fn accesses(&self) -> f64 {
        self.points.first().map_or(0.0, |point| f64::from(point.1))
    }

    /// The reach of a cache of this many lines: the time, log₂ instructions, in which as many are touched; the
    /// longest if they never are.
    #[must_use]
    pub fn reach(&self, lines: f64) -> f64 {
        if self.most <= lines {
            return FOREVER;
        }
        let after = self.points.partition_point(|point| f64::from(point.0) <= lines);
        let at = |index: usize| self.points.get(index).map_or(0.0, |point| f64::from(point.0));
        let Some(before) = after.checked_sub(1) else {
            // Below the first point lines grow with time.
            return (lines / at(0)).log2().max(-8.0);
        };
        (before as f64 + (lines - at(before)) / (at(after) - at(before))) / STEPS as f64
    }
}

/// The longest time, log₂ instructions, that is distinguished.
pub const FOREVER: f64 = LONGEST as f64;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use symbiont_profile::ReuseBin;

    fn footprint(times: &[(u64, u64)], cold: u64, per_instruction: f64) -> Footprint {
        let mut histogram = ReuseHistogram { cold, ..ReuseHistogram::default() };
        for &(time, count) in times {
            histogram.add(ReuseBin::of(time), count);
        }
        histogram.accesses = 1_000_000;
        let instructions = (1e6 / per_instruction) as u64;
        Footprint::new(&[&Stream::new(&histogram, instructions)])
    }

    pub fn any_footprint() -> impl Strategy<Value = Footprint> {
        let times = prop::collection::vec((1_u64..1 << 30, 1_u64..1000), 1..12);
        (times, 0_u64..100, 0.05_f64..1.0).prop_map(|(t, cold, rate)| footprint(&t, cold, rate))
    }

    proptest! {
        #[test]
        fn a_reach_within_has_so_many_misses(
            footprint in any_footprint(), ends in (0.0_f64..40.0, 0.0_f64..40.0),
            share in 0.0_f64..1.0, near in 0.0_f64..40.0,
        ) {
            let [shortest, longest] = [ends.0.min(ends.1), ends.0.max(ends.1)];
            let misses = footprint.misses(shortest + share * (longest - shortest));
            let reach = footprint.reach_within([shortest, longest], misses, near);
            prop_assert!((shortest..=longest).contains(&reach), "{reach}");
            let there = footprint.misses(reach);
            prop_assert!((there - misses).abs() <= 1e-3 * misses + 1e-9, "{there}, not {misses}");
        }

        #[test]
        fn a_reach_is_the_time_in_which_so_many_lines_are_touched(
            footprint in any_footprint(), lines in 0.01_f64..1e6,
        ) {
            let reach = footprint.reach(lines);
            let touched = footprint.lines(reach);
            let all = footprint.lines(FOREVER);
            prop_assert!((touched / lines.min(all) - 1.0).abs() < 1e-4, "{touched} for {lines}");
        }

    }

    #[test]
    fn of_reaches_with_as_many_misses_the_nearest_is_taken() {
        // Each line again after 100 accesses, or never.
        let half = footprint(&[(100, 1000)], 1000, 0.5);
        let misses = half.misses(20.0);
        for (near, expected) in [(12.3, 12.3), (9.0, 10.0), (31.0, 30.0)] {
            let reach = half.reach_within([10.0, 30.0], misses, near);
            assert!((reach - expected).abs() < 1e-9, "{reach} near {near}");
        }
    }

    #[test]
    fn a_loop_over_less_than_the_cache_never_misses() {
        let small = footprint(&[(100, 1000)], 0, 0.5);
        assert!(small.misses(small.reach(200.0)) < 1e-6);
        assert!((small.misses(small.reach(50.0)) - 0.5).abs() < 0.01);
        assert!((small.accesses() - 0.5).abs() < 1e-6);
    }
}
