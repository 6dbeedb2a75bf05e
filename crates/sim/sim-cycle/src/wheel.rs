//! What becomes ready when: a calendar of cycles.
//!
//! # Approach
//! A ring of buckets, one for each of the next cycles; what lies further ahead waits
//! in the last bucket and is put in again. Buckets keep their room, so that nothing is
//! allocated once it runs. A bit for each bucket finds the next one that is not empty.

const BUCKETS: usize = 1 << 11;

/// A calendar of items.
#[derive(Debug, Clone)]
pub struct Wheel<T> {
    buckets: Vec<Vec<(u64, T)>>,
    occupied: [u64; BUCKETS / 64],
    /// The first cycle that was not taken yet.
    now: u64,
    spare: Vec<(u64, T)>,
}

impl<T: Copy> Default for Wheel<T> {
    /// An empty one, at cycle 0.
    fn default() -> Self {
        let buckets = std::iter::repeat_with(Vec::new).take(BUCKETS).collect();
        Self { buckets, occupied: [0; BUCKETS / 64], now: 0, spare: Vec::new() }
    }
}

impl<T: Copy> Wheel<T> {
    /// Puts in an item that is due at `cycle`, or now if that is over.
    #[inline]
    pub fn put(&mut self, cycle: u64, item: T) {
        let at = cycle.clamp(self.now, self.now + BUCKETS as u64 - 1) as usize % BUCKETS;
        self.buckets[at].push((cycle, item));
        self.occupied[at / 64] |= 1 << (at % 64);
    }

    /// Hands over what is due at `cycle`; every cycle in which something is due must be
    /// asked for, in order.
    #[inline]
    pub fn take(&mut self, cycle: u64, mut due: impl FnMut(T)) {
        self.now = cycle + 1;
        let at = cycle as usize % BUCKETS;
        if self.occupied[at / 64] >> (at % 64) & 1 == 0 {
            return;
        }
        self.occupied[at / 64] &= !(1 << (at % 64));
        let mut items = std::mem::take(&mut self.spare);
        std::mem::swap(&mut items, &mut self.buckets[at]);
        for (when, item) in items.drain(..) {
            if when <= cycle { due(item) } else { self.put(when, item) }
        }
        self.spare = items;
    }

    /// The first cycle after the one taken last in which something is to be taken.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let start = self.now as usize % BUCKETS;
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let at = word * 64 + bits.trailing_zeros() as usize;
                return Some(self.now + ((at + BUCKETS - start) % BUCKETS) as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn everything_comes_when_it_is_due(
            puts in prop::collection::vec((0_u64..3, 0_u64..9000), 1..200)
        ) {
            let mut wheel = Wheel::default();
            let (mut now, mut came, mut put) = (0, Vec::new(), 0);
            for (gap, ahead) in puts {
                wheel.put(now + ahead, now + ahead);
                put += 1;
                for _ in 0..gap {
                    let Some(next) = wheel.next() else { break };
                    prop_assert!(next >= now);
                    now = next;
                    wheel.take(now, |due| came.push((now, due)));
                    now += 1;
                }
            }
            while let Some(next) = wheel.next() {
                wheel.take(next, |due| came.push((next, due)));
            }
            prop_assert_eq!(came.len(), put);
            prop_assert!(came.iter().all(|(now, due)| now == due));
        }
    }
}
