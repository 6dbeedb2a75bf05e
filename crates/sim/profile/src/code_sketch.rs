//! Which lines of code a phase touches, as a small sketch.
//!
//! # Approach
//!
//! ```text
//! sketch(phase)       := the smallest hashes of its lines, at most LONGEST
//! part(phase, other)  := share of the phase's hashes that are in the other's sketch, as far as that one reaches
//! ```
//!
//! The smallest hashes are a uniform sample of the lines, and the same one in each phase that touches them (Beyer
//! et al., On synopses for distinct-value estimation under multiset operations, 2007). With no more lines than
//! are kept, the result is exact.
//!
//! Lines are those of virtual addresses, which mean nothing in another program: so a sketch says of which program
//! it is.
//!
//! # Properties
//! `small_sets_are_compared_exactly`, `the_common_part_of_large_sets_is_estimated`,
//! `a_sketch_of_parts_is_that_of_all`.

use serde::{Deserialize, Serialize};

/// Hashes that are kept.
const LONGEST: usize = 128;

/// The sketch of the lines of code that a phase touches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CodeSketch {
    /// Stands for the program; 0: it is not known.
    program: u32,
    /// In ascending order.
    hashes: Vec<u32>,
}

/// One-to-one on 32 bits (the finalizer of MurmurHash3), so that no two of the first 2³² lines fall together.
fn hash(line: u64) -> u32 {
    let mut hash = line as u32 ^ (line >> 32) as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

impl CodeSketch {
    /// The sketch of these lines, in any order and any number of times; its program is not known.
    #[must_use]
    pub fn of(lines: impl Iterator<Item = u64>) -> Self {
        let mut sketch = Self { program: 0, hashes: lines.map(hash).collect() };
        sketch.tidy();
        sketch
    }

    fn tidy(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes.truncate(LONGEST);
        self.hashes.shrink_to_fit();
    }

    /// The same sketch, as one of the program with this digest.
    #[must_use]
    pub fn in_program(self, digest: &str) -> Self {
        let byte = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let program = digest.bytes().fold(0x811c_9dc5, byte).max(1);
        Self { program, ..self }
    }

    /// Adds the lines of another sketch of the same program.
    pub fn merge(&mut self, other: &Self) {
        self.hashes.extend(&other.hashes);
        self.tidy();
    }

    /// Is it one that can have been made?
    pub(crate) fn is_sound(&self) -> bool {
        self.hashes.len() <= LONGEST && self.hashes.is_sorted_by(|one, next| one < next)
    }

    /// Are both of the same known program?
    #[must_use]
    pub fn is_of_program_of(&self, other: &Self) -> bool {
        self.program != 0 && self.program == other.program
    }

    /// The share of its lines that are in another sketch too, from 0 to 1; 0 if they are not [of one
    /// program](Self::is_of_program_of).
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> f64 {
        if !self.is_of_program_of(other) {
            return 0.0;
        }
        // Of a full sketch hashes beyond its largest are not known.
        let known = if other.hashes.len() < LONGEST { None } else { other.hashes.last() };
        let known = known.copied().unwrap_or(u32::MAX);
        let own = || self.hashes.iter().take_while(|hash| **hash <= known);
        let common = own().filter(|hash| other.hashes.binary_search(hash).is_ok()).count();
        common as f64 / own().count().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(lines: impl Iterator<Item = u64>) -> CodeSketch {
        CodeSketch::of(lines).in_program("digest")
    }

    proptest! {
        #[test]
        fn small_sets_are_compared_exactly(first in 0_u64..100, count in 1_u64..60, other in 1_u64..60) {
            let one = sketch(first..first + count);
            let two = sketch(50..50 + other);
            let common = (first..first + count).filter(|line| (50..50 + other).contains(line)).count();
            let share = common as f64 / count as f64;
            prop_assert!((one.shared_with(&two) - share).abs() < 1e-9);
        }

        #[test]
        fn the_common_part_of_large_sets_is_estimated(
            base in 0_u64..1 << 40,
            sizes in [1_000_u64..20_000, 1_000..20_000],
            part in 0.0..1.0,
        ) {
            let [one, two] = sizes;
            let common = (part * one.min(two) as f64) as u64;
            let first = sketch(base..base + one);
            let second = sketch(base + one - common..base + one - common + two);
            let share = first.shared_with(&second);
            // Five standard deviations of the share of as many as are known of both.
            let drawn = (LONGEST * one as usize / one.max(two) as usize).max(1) as f64;
            let bound = 5.0 * (0.25 / drawn).sqrt();
            prop_assert!((share - common as f64 / one as f64).abs() < bound, "{share}");
            prop_assert!(first.is_sound());
        }

        #[test]
        fn a_sketch_of_parts_is_that_of_all(lines in prop::collection::vec(0_u64..5_000, 0..2_000), at in 0_usize..2_000) {
            let (first, rest) = lines.split_at(at.min(lines.len()));
            let mut merged = sketch(first.iter().copied());
            merged.merge(&sketch(rest.iter().copied()));
            prop_assert_eq!(merged, sketch(lines.iter().copied()));
        }
    }

    #[test]
    fn estimates_are_right_on_average() {
        let shares = (0..200_u64).map(|round| {
            let base = round << 20;
            let one = sketch(base..base + 6_000);
            one.shared_with(&sketch(base + 3_000..base + 12_000))
        });
        let mean = shares.sum::<f64>() / 200.0;
        assert!((mean - 0.5).abs() < 0.03, "{mean}");
    }

    #[test]
    fn nothing_has_nothing_in_common() {
        let some = sketch(0..10);
        assert_eq!(some.shared_with(&some), 1.0);
        let of_others = [CodeSketch::of(0..10), CodeSketch::of(0..10).in_program("other")];
        assert_eq!(of_others.map(|other| some.shared_with(&other)), [0.0; 2]);
        assert_eq!(CodeSketch::default().shared_with(&some), 0.0);
        assert_eq!(some.shared_with(&CodeSketch::default()), 0.0);
    }
}
