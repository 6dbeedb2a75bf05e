//! Activity by super-set, of which activity vectors consist.

use crate::ReuseHistogram;
use serde::{Deserialize, Serialize};

/// Super-sets per cache.
pub const SUPER_SETS: usize = 32;

/// Which stream a map is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stream {
    /// Data accesses.
    Data,
    /// Fetches of instruction lines.
    Instruction,
}

/// Caches whose super-sets were observed: the stream and the number of sets.
pub const SUPER_SET_CACHES: [(Stream, u32); 5] = [
    (Stream::Data, 32),
    (Stream::Data, 128),
    (Stream::Data, 1024),
    (Stream::Instruction, 128),
    (Stream::Instruction, 1024),
];

/// One stream, split by the super-sets of a cache with 64-byte lines.
///
/// A super-set is a contiguous group of sets (Settle et al., section 2.2): with
/// S sets, a line number l (address / 64) belongs to super-set
/// `(l mod S) / (S / 32)`. A cache of a unified level sees the data and the
/// instruction map together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuperSetMap {
    /// Which stream.
    pub stream: Stream,
    /// Sets of the cache.
    pub sets: u32,
    /// The accesses of each super-set, and their reuse times: counted in
    /// accesses of the whole stream, so P of a super-set at the whole
    /// stream's T is its share of misses. Times are known to an octave only:
    /// each octave's count is spread over its four bins. [`SUPER_SETS`] of them.
    pub regions: Vec<ReuseHistogram>,
}

impl SuperSetMap {
    /// A map without accesses.
    pub fn empty(stream: Stream, sets: u32) -> Self {
        Self { stream, sets, regions: vec![ReuseHistogram::default(); SUPER_SETS] }
    }

    /// The super-set that a 64-byte line belongs to.
    pub fn region_of(sets: u32, line: u64) -> usize {
        let sets = u64::from(sets).max(SUPER_SETS as u64);
        ((line % sets) / (sets / SUPER_SETS as u64)) as usize % SUPER_SETS
    }

    /// Adds another stretch of the same stream and cache.
    pub fn merge(&mut self, other: &Self) {
        for (mine, more) in self.regions.iter_mut().zip(&other.regions) {
            mine.merge(more);
        }
    }
}
