//! A set-associative cache with exact LRU, line by line.
//!
//! # Approach
//! A requested line is allocated at once and is *pending* until it arrives; so tags change in the order of the
//! accesses, as in a cache simulator without time.
//!
//! Every access is counted by set and by user (a hardware thread, or a job). A miss has a cause: the line was
//! never cached; the same user evicted it; another user did. The user that evicted a line is remembered
//! until the line is cached again.
//!
//! # Terms and units
//! Lines are addresses / line size. Times are nanoseconds.
//!
//! # Properties
//! - Misses by set are those of a list that is searched
//!   (`misses_by_set_are_those_of_a_plain_list`).
//! - Causes name the thread that took the line (`a_miss_names_the_thread_that_took_the_line`).

use std::collections::HashMap;

use symbiont_sim_fast::description::Cache as Described;

/// No line.
const EMPTY: u64 = u64::MAX;

/// A user's accesses to one set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetCounts {
    /// Accesses.
    pub accesses: u32,
    /// Those that missed.
    pub misses: u32,
    /// Misses of lines that the user itself had evicted.
    pub own: u32,
    /// Misses of lines that another user had evicted.
    pub inter_thread: u32,
}

impl SetCounts {
    /// Adds what was done to another set.
    pub fn add(&mut self, other: &Self) {
        self.accesses += other.accesses;
        self.misses += other.misses;
        self.own += other.own;
        self.inter_thread += other.inter_thread;
    }
}

/// An evicted line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// Its address.
    pub address: u64,
    /// Is it dirty?
    pub dirty: bool,
}

#[derive(Debug, Clone, Copy)]
struct Way {
    line: u64,
    used: u64,
    arrives: f64,
    dirty: bool,
}

const NO_WAY: Way = Way { line: EMPTY, used: 0, arrives: 0.0, dirty: false };

/// A cache.
#[derive(Debug, Clone)]
pub struct Cache {
    ways: usize,
    sets: u64,
    shift: u32,
    places: Vec<Way>,
    clock: u64,
    /// The user that displaced a line.
    lost: HashMap<u64, usize>,
    /// By user and set.
    counts: Vec<Vec<SetCounts>>,
}

/// The slot of a line in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSlot(usize);

impl Cache {
    /// An empty cache. What does not divide evenly is rounded: lines to a power of two,
    /// ways to at least one set.
    #[must_use]
    pub fn new(described: &Described) -> Self {
        let line = u64::from(described.line.max(1)).next_power_of_two();
        let lines = (described.bytes / line).max(1);
        Self::with(lines, u64::from(described.ways.max(1)), line.trailing_zeros())
    }

    /// A cache of so many lines of 2^`shift` bytes.
    #[must_use]
    pub fn with(lines: u64, ways: u64, shift: u32) -> Self {
        let ways = ways.clamp(1, lines.max(1));
        let sets = (lines / ways).max(1);
        Self {
            ways: ways as usize,
            sets,
            shift,
            places: vec![NO_WAY; (sets * ways) as usize],
            clock: 0,
            lost: HashMap::new(),
            counts: Vec::new(),
        }
    }

    /// A new user's number.
    pub fn add_user(&mut self) -> usize {
        self.counts.push(vec![SetCounts::default(); self.sets as usize]);
        self.counts.len() - 1
    }

    /// Its sets.
    #[must_use]
    pub fn sets(&self) -> usize {
        self.sets as usize
    }

    /// Its lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.places.len()
    }

    /// log₂ of the bytes of a line.
    #[must_use]
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// What a user did, by set.
    #[must_use]
    pub fn counts(&self, user: usize) -> &[SetCounts] {
        self.counts.get(user).map_or(&[], Vec::as_slice)
    }

    #[inline]
    fn set(&self, line: u64) -> usize {
        let sets = self.sets;
        (if sets.is_power_of_two() { line & (sets - 1) } else { line % sets }) as usize
    }

    /// Where the line of an address lies, if it is there. Changes nothing.
    #[inline]
    #[must_use]
    pub fn find(&self, address: u64) -> Option<LineSlot> {
        let line = address >> self.shift;
        let start = self.set(line) * self.ways;
        let found = self.places[start..start + self.ways].iter().position(|way| way.line == line);
        found.map(|way| LineSlot(start + way))
    }

    /// Uses a line that was found; returns when it has arrived.
    #[inline]
    pub fn touch(&mut self, place: LineSlot, writes: bool) -> f64 {
        self.clock += 1;
        let way = &mut self.places[place.0];
        way.used = self.clock;
        way.dirty |= writes;
        way.arrives
    }

    /// Counts a user's access. Only demand is counted.
    #[inline]
    pub fn count(&mut self, user: usize, address: u64, hit: bool) {
        let line = address >> self.shift;
        let set = self.set(line);
        let counts = &mut self.counts[user][set];
        counts.accesses += 1;
        if !hit {
            counts.misses += 1;
            match self.lost.get(&line) {
                Some(by) if *by == user => counts.own += 1,
                Some(_) => counts.inter_thread += 1,
                None => {}
            }
        }
    }

    /// Puts the line of an address in for a user; it arrives at `arrives`.
    pub fn insert(
        &mut self,
        user: usize,
        address: u64,
        arrives: f64,
        dirty: bool,
    ) -> Option<Victim> {
        self.clock += 1;
        let line = address >> self.shift;
        let start = self.set(line) * self.ways;
        let set = &mut self.places[start..start + self.ways];
        let way = set.iter_mut().min_by_key(|way| way.used)?;
        let old = std::mem::replace(way, Way { line, used: self.clock, arrives, dirty });
        self.lost.remove(&line);
        if old.line == EMPTY {
            return None;
        }
        self.lost.insert(old.line, user);
        Some(Victim { address: old.line << self.shift, dirty: old.dirty })
    }

    /// Marks the line of an address as written, if it is there.
    pub fn write_back(&mut self, address: u64) -> bool {
        let found = self.find(address);
        if let Some(place) = found {
            self.places[place.0].dirty = true;
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Plainly: for each set a list, the line used last at its end.
    fn plain(lines: &[(usize, u64)], sets: u64, ways: usize) -> Vec<Vec<u32>> {
        let mut content = vec![Vec::new(); sets as usize];
        let mut misses = vec![vec![0; sets as usize]; 2];
        for &(user, line) in lines {
            let set: &mut Vec<u64> = &mut content[(line % sets) as usize];
            match set.iter().position(|known| *known == line) {
                Some(at) => {
                    set.remove(at);
                }
                None => misses[user][(line % sets) as usize] += 1,
            }
            set.push(line);
            if set.len() > ways {
                set.remove(0);
            }
        }
        misses
    }

    fn access(cache: &mut Cache, user: usize, address: u64) {
        let found = cache.find(address);
        cache.count(user, address, found.is_some());
        match found {
            Some(place) => {
                cache.touch(place, false);
            }
            None => {
                cache.insert(user, address, 0.0, false);
            }
        }
    }

    proptest! {
        #[test]
        fn misses_by_set_are_those_of_a_plain_list(
            lines in prop::collection::vec((0_usize..2, 0_u64..60), 1..400),
            sets in 1_u64..9, ways in 1_usize..5,
        ) {
            let mut cache = Cache::with(sets * ways as u64, ways as u64, 6);
            cache.add_user();
            cache.add_user();
            for &(user, line) in &lines {
                access(&mut cache, user, line * 64 + 7);
            }
            let expected = plain(&lines, sets, ways);
            for (user, expected) in expected.iter().enumerate() {
                let misses: Vec<u32> = cache.counts(user).iter().map(|set| set.misses).collect();
                prop_assert_eq!(&misses, expected);
                let sane = |set: &SetCounts| set.own + set.inter_thread <= set.misses;
                prop_assert!(cache.counts(user).iter().all(sane));
            }
        }
    }

    #[test]
    fn a_miss_names_the_thread_that_took_the_line() {
        let mut cache = Cache::with(1, 1, 6);
        let (a, b) = (cache.add_user(), cache.add_user());
        for (user, address) in [(a, 0), (b, 64), (a, 0), (a, 128), (a, 0)] {
            access(&mut cache, user, address);
        }
        let counts = cache.counts(a)[0];
        assert_eq!((counts.accesses, counts.misses), (4, 4));
        assert_eq!((counts.inter_thread, counts.own), (1, 1));
        assert_eq!(cache.counts(b)[0].inter_thread, 0);
    }

    #[test]
    fn what_was_written_is_reported_when_it_goes() {
        let mut cache = Cache::with(1, 1, 6);
        let user = cache.add_user();
        cache.insert(user, 0, 0.0, false);
        assert!(cache.write_back(0) && !cache.write_back(64));
        assert_eq!(cache.insert(user, 64, 0.0, false), Some(Victim { address: 0, dirty: true }));
    }
}
