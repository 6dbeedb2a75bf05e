//! What becomes ready when: a calendar of cycles.
//!
//! # Approach
//! A ring of lists, one for each of the next cycles; what lies further ahead waits in the last list and is
//! put in again. Items lie in one vector, and free places are taken again, the last one first, so that few lines of
//! the host's caches hold all. A bit for each list finds the next one that is not empty.

const LISTS: usize = 1 << 8;

/// The end of a list.
const END: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    cycle: u64,
    item: T,
    next: u32,
}

/// A calendar of items.
#[derive(Debug, Clone)]
pub struct Wheel<T> {
    /// The first entry of each list.
    lists: [u32; LISTS],
    occupied: [u64; LISTS / 64],
    /// The first cycle that was not taken yet.
    now: u64,
    entries: Vec<Entry<T>>,
    /// The first free entry.
    free: u32,
}

impl<T> Default for Wheel<T> {
    /// An empty one, at cycle 0.
    fn default() -> Self {
        let (lists, occupied) = ([END; LISTS], [0; LISTS / 64]);
        Self { lists, occupied, now: 0, entries: Vec::new(), free: END }
    }
}

impl<T: Copy> Wheel<T> {
    /// Puts in an item that is due at `cycle`, or now if that is over.
    #[inline]
    pub fn put(&mut self, cycle: u64, item: T) {
        let at = self.list(cycle);
        let entry = Entry { cycle, item, next: self.lists[at] };
        if let Some(free) = self.entries.get_mut(self.free as usize) {
            self.lists[at] = self.free;
            self.free = free.next;
            *free = entry;
        } else {
            self.lists[at] = self.entries.len() as u32;
            self.entries.push(entry);
        }
    }

    /// The list of a cycle, which has an entry from now on.
    #[inline]
    fn list(&mut self, cycle: u64) -> usize {
        let at = cycle.clamp(self.now, self.now + LISTS as u64 - 1) as usize % LISTS;
        self.occupied[at / 64] |= 1 << (at % 64);
        at
    }

    /// Hands over what is due at `cycle`, in any order; every cycle in which something is due must be
    /// asked for, in order.
    #[inline]
    pub fn take(&mut self, cycle: u64, mut due: impl FnMut(T)) {
        self.now = cycle + 1;
        let at = cycle as usize % LISTS;
        if self.occupied[at / 64] >> (at % 64) & 1 == 0 {
            return;
        }
        self.occupied[at / 64] &= !(1 << (at % 64));
        let mut next = std::mem::replace(&mut self.lists[at], END);
        while let Some(&Entry { cycle: when, item, next: behind }) = self.entries.get(next as usize)
        {
            let list = if when <= cycle {
                due(item);
                &mut self.free
            } else {
                let at = self.list(when);
                &mut self.lists[at]
            };
            let before = std::mem::replace(list, next);
            self.entries[next as usize].next = before;
            next = behind;
        }
    }

    /// The first cycle after the one taken last in which something is to be taken.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let start = self.now as usize % LISTS;
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
                return Some(self.now + ((at + LISTS - start) % LISTS) as u64);
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
