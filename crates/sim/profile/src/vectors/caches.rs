//! The caches of one hardware thread, simulated line by line, without time.
//!
//! # Approach
//! Two first-level caches and a unified second-level one, each set-associative with exact LRU. What misses a
//! first-level cache goes to the second. Nothing is prefetched, and writing back changes no order.

use super::{Counts, Geometry, Hierarchy, SUPER_SETS};

/// No line.
const EMPTY: u64 = u64::MAX;

/// A cache.
#[derive(Debug, Clone)]
struct Cache {
    geometry: Geometry,
    /// By set, the line used last first.
    lines: Vec<u64>,
    counts: Counts,
}

impl Cache {
    fn new(geometry: Geometry) -> Self {
        let lines = geometry.sets as usize * geometry.ways as usize;
        Self { geometry, lines: vec![EMPTY; lines], counts: Counts::none(geometry) }
    }

    /// Uses the line of an address. Did it miss?
    fn access(&mut self, address: u64) -> bool {
        let Geometry { sets, ways, line } = self.geometry;
        let number = address / u64::from(line);
        let set = (number % u64::from(sets)) as usize;
        let ways = ways as usize;
        let lines = &mut self.lines[set * ways..(set + 1) * ways];
        let found = lines.iter().position(|known| *known == number);
        lines[..=found.unwrap_or(ways - 1)].rotate_right(1);
        lines[0] = number;
        let group = set * self.counts.uses.len() / sets as usize;
        // An interval may be longer than a count can be.
        let more = |count: &mut u32, by| *count = count.saturating_add(by);
        more(&mut self.counts.uses[group], 1);
        more(&mut self.counts.misses[group], u32::from(found.is_none()));
        found.is_none()
    }

    fn take(&mut self) -> Counts {
        std::mem::replace(&mut self.counts, Counts::none(self.geometry))
    }
}

/// The caches of a hierarchy, empty at first.
#[derive(Debug, Clone)]
pub struct Caches {
    l1d: Cache,
    l1i: Cache,
    l2: Cache,
}

impl Caches {
    /// Empty caches.
    #[must_use]
    pub fn new(hierarchy: &Hierarchy) -> Self {
        let Hierarchy { l1d, l1i, l2 } = *hierarchy;
        Self { l1d: Cache::new(l1d), l1i: Cache::new(l1i), l2: Cache::new(l2) }
    }

    /// A load or store.
    pub fn data(&mut self, address: u64) {
        if self.l1d.access(address) {
            self.l2.access(address);
        }
    }

    /// A fetch of a line of instructions.
    pub fn code(&mut self, address: u64) {
        if self.l1i.access(address) {
            self.l2.access(address);
        }
    }

    /// What has been counted since the last [`Caches::take`]; counting goes on.
    #[must_use]
    pub fn so_far(&self) -> [Counts; 3] {
        [&self.l1d, &self.l1i, &self.l2].map(|cache| cache.counts.clone())
    }

    /// What was counted since the last call, in the order of [`super::CACHES`].
    pub fn take(&mut self) -> [Counts; 3] {
        [self.l1d.take(), self.l1i.take(), self.l2.take()]
    }
}

impl Counts {
    fn none(geometry: Geometry) -> Self {
        let groups = geometry.sets.min(SUPER_SETS) as usize;
        Self { uses: vec![0; groups], misses: vec![0; groups] }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hierarchy() -> Hierarchy {
        let of = |sets, ways| Geometry { sets, ways, line: 64 };
        Hierarchy { l1d: of(4, 2), l1i: of(2, 1), l2: of(256, 2) }
    }

    /// Plainly: for each set a list, the line used last at its end; uses and misses by set.
    fn plain(lines: &[u64], sets: u64, ways: usize) -> Vec<(u32, u32)> {
        let mut content = vec![Vec::new(); sets as usize];
        let mut counts = vec![(0, 0); sets as usize];
        for &line in lines {
            let at = (line % sets) as usize;
            let set: &mut Vec<u64> = &mut content[at];
            let known = set.iter().position(|one| *one == line);
            known.map(|known| set.remove(known));
            set.push(line);
            if set.len() > ways {
                set.remove(0);
            }
            counts[at].0 += 1;
            counts[at].1 += u32::from(known.is_none());
        }
        counts
    }

    proptest! {
        #[test]
        fn counts_by_super_set_are_those_of_plain_lists(
            lines in prop::collection::vec(0_u64..2000, 1..600),
        ) {
            let mut caches = Caches::new(&hierarchy());
            lines.iter().for_each(|line| caches.data(line * 64 + 7));
            let [l1d, l1i, l2] = caches.take();
            let by_set = plain(&lines, 4, 2);
            let found: Vec<_> = l1d.uses.iter().copied().zip(l1d.misses).collect();
            prop_assert_eq!(found, by_set);
            // Two sets of the L2 are a super-set.
            prop_assert_eq!(l2.uses.len(), 128);
            let missed: u32 = l2.uses.iter().sum();
            prop_assert_eq!(missed, plain(&lines, 4, 2).iter().map(|set| set.1).sum::<u32>());
            prop_assert!(l1i.uses.iter().all(|uses| *uses == 0));
            // Counts begin anew, lines stay.
            let last = lines[lines.len() - 1];
            caches.data(last * 64);
            prop_assert_eq!(caches.take()[0].misses.iter().sum::<u32>(), 0);
        }
    }

    #[test]
    fn code_and_data_share_the_second_level() {
        let mut caches = Caches::new(&hierarchy());
        caches.data(0x1000);
        caches.code(0x1000);
        let [_, l1i, l2] = caches.take();
        assert_eq!(l1i.misses.iter().sum::<u32>(), 1);
        assert_eq!((l2.uses.iter().sum::<u32>(), l2.misses.iter().sum::<u32>()), (2, 1));
    }
}
