//! Logarithmic bins of reuse times.

use serde::{Deserialize, Serialize};

/// Octaves after the first four times, each split into four bins.
const OCTAVES: u32 = 39;

/// A reuse time, rounded to a quarter of an octave.
///
/// Reuse time: accesses of the same stream from one access to a line until the next one to it, that one counted;
/// so an access to the same line as the access before has reuse time 1. Bins 0 to 3 hold the times 0 to 3; bin
/// `4 + 4·(k − 2) + q` holds the times from `2^k + q·2^(k−2)` up to, but not including,
/// `2^k + (q + 1)·2^(k−2)`, for `k` from 2 to 40. Later times fall in the last bin. A first access has the bin [`ReuseBin::COLD`].
///
/// Time 0 stands for "no access of this stream": a fetch from the 128-byte
/// line or the page that the fetch before was from. No histogram counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReuseBin(u8);

impl ReuseBin {
    /// Number of bins, the cold one not counted.
    pub const COUNT: usize = 4 + 4 * OCTAVES as usize;
    /// Never accessed before.
    pub const COLD: Self = Self(u8::MAX);
    /// No access of this stream (time 0).
    pub const NONE: Self = Self(0);

    /// The bin of a reuse time.
    #[inline]
    pub fn of(time: u64) -> Self {
        // The first four are an octave of its own, so that there is no branch: times follow no pattern.
        let shift = (time | 4).ilog2() - 2;
        let bin = (time >> shift) + 4 * u64::from(shift);
        Self(bin.min(Self::COUNT as u64 - 1) as u8)
    }

    /// The bin of an index below [`ReuseBin::COUNT`], or the cold bin.
    pub fn from_index(index: usize) -> Self {
        if index < Self::COUNT { Self(index as u8) } else { Self::COLD }
    }

    /// A number of its own: its index, or 255 for cold accesses.
    #[inline]
    pub fn code(self) -> u8 {
        self.0
    }

    /// Its index in a histogram; none for cold accesses.
    #[inline]
    pub fn index(self) -> Option<usize> {
        (usize::from(self.0) < Self::COUNT).then_some(usize::from(self.0))
    }

    /// The shortest time in it; none for cold accesses.
    pub fn shortest(self) -> Option<u64> {
        let bin = self.index()? as u64;
        if bin < 4 {
            return Some(bin);
        }
        let octave = bin / 4 + 1;
        Some((4 + bin % 4) << (octave - 2))
    }

    /// The longest time in it; none for cold accesses. The last bin ends where
    /// one like the others would.
    pub fn longest(self) -> Option<u64> {
        let bin = self.index()? as u64;
        let octave = (bin / 4 + 1).max(2);
        Some(self.shortest()? + (1 << (octave - 2)) - 1)
    }

    /// The middle of it, in accesses: infinite for cold accesses.
    pub fn middle(self) -> f64 {
        match (self.shortest(), self.longest()) {
            (Some(shortest), Some(longest)) => (shortest as f64 + longest as f64) / 2.0,
            _ => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReuseBin;
    use proptest::prelude::*;

    #[test]
    fn bins_follow_each_other_without_gap_or_overlap() {
        let mut next = 0;
        for index in 0..ReuseBin::COUNT {
            let bin = ReuseBin::from_index(index);
            assert_eq!(bin.shortest(), Some(next), "bin {index}");
            next = bin.longest().unwrap() + 1;
        }
        assert_eq!(next, 1 << 41);
        assert_eq!(ReuseBin::from_index(ReuseBin::COUNT), ReuseBin::COLD);
    }

    proptest! {
        #[test]
        fn a_time_lies_in_its_bin(time in 0_u64..1 << 41) {
            let bin = ReuseBin::of(time);
            prop_assert!(bin.shortest().unwrap() <= time && time <= bin.longest().unwrap());
        }

        #[test]
        fn a_bin_is_at_most_a_quarter_of_its_times_wide(time in 4_u64..1 << 41) {
            let bin = ReuseBin::of(time);
            let width = bin.longest().unwrap() - bin.shortest().unwrap() + 1;
            prop_assert!(4 * width <= bin.shortest().unwrap());
        }

        #[test]
        fn times_past_the_last_bin_are_put_into_it(time in 1_u64 << 41..) {
            prop_assert_eq!(ReuseBin::of(time).index(), Some(ReuseBin::COUNT - 1));
        }
    }
}
