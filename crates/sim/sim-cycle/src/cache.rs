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

mod lost;

use symbiont_sim_fast::description::Cache as Described;

use self::lost::Lost;

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

/// A cache.
#[derive(Debug, Clone)]
pub struct Cache {
    ways: usize,
    sets: u64,
    /// One less than the sets, if they are a power of two.
    mask: Option<u64>,
    shift: u32,
    /// The line in each place, a set's side by side: they are looked through at each access.
    held: Vec<u64>,
    /// When each place was used last.
    used: Vec<u64>,
    /// When the line in each place arrives.
    arrives: Vec<f64>,
    dirty: Vec<bool>,
    clock: u64,
    /// The users that displaced lines; none where accesses are not counted.
    lost: Option<Lost>,
    users: usize,
    /// By user and set.
    counts: Vec<SetCounts>,
}

/// The slot of a line in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSlot(usize);

/// The answer of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    line: u64,
    set: usize,
    /// Where the line lies, if it is there.
    pub place: Option<LineSlot>,
}

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
        Self { lost: Some(Lost::default()), ..Self::uncounted(lines, ways, shift) }
    }

    /// The same, but accesses are not counted.
    #[must_use]
    pub(crate) fn uncounted(lines: u64, ways: u64, shift: u32) -> Self {
        let ways = ways.clamp(1, lines.max(1));
        let sets = (lines / ways).max(1);
        let places = (sets * ways) as usize;
        Self {
            ways: ways as usize,
            sets,
            mask: sets.is_power_of_two().then_some(sets - 1),
            shift,
            held: vec![EMPTY; places],
            used: vec![0; places],
            arrives: vec![0.0; places],
            dirty: vec![false; places],
            clock: 0,
            lost: None,
            users: 0,
            counts: Vec::new(),
        }
    }

    /// A new user's number.
    pub fn add_user(&mut self) -> usize {
        self.counts.resize(self.counts.len() + self.sets(), SetCounts::default());
        self.users += 1;
        self.users - 1
    }

    /// Its sets.
    #[must_use]
    pub fn sets(&self) -> usize {
        self.sets as usize
    }

    /// Its lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.held.len()
    }

    /// log₂ of the bytes of a line.
    #[must_use]
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// What a user did, by set.
    #[must_use]
    pub fn counts(&self, user: usize) -> &[SetCounts] {
        let sets = self.sets();
        self.counts.get(user * sets..(user + 1) * sets).unwrap_or_default()
    }

    #[inline]
    fn set(&self, line: u64) -> usize {
        (if let Some(mask) = self.mask { line & mask } else { line % self.sets }) as usize
    }

    /// Looks for the line of an address. Changes nothing.
    #[inline]
    #[must_use]
    pub fn find(&self, address: u64) -> Found {
        let line = address >> self.shift;
        let set = self.set(line);
        let start = set * self.ways;
        let held = &self.held[start..start + self.ways];
        let place = held.iter().position(|held| *held == line).map(|way| LineSlot(start + way));
        Found { line, set, place }
    }

    /// Uses a line that was found; returns when it has arrived.
    #[inline]
    pub fn touch(&mut self, place: LineSlot, writes: bool) -> f64 {
        self.clock += 1;
        self.used[place.0] = self.clock;
        if writes {
            self.dirty[place.0] = true;
        }
        self.arrives[place.0]
    }

    /// Counts a user's access. Only demand is counted.
    #[inline]
    pub fn count(&mut self, user: usize, found: &Found) {
        let at = user * self.sets() + found.set;
        let counts = &mut self.counts[at];
        counts.accesses += 1;
        if found.place.is_none() {
            counts.misses += 1;
            match self.lost.as_ref().and_then(|lost| lost.is_by(found.line, user)) {
                Some(true) => counts.own += 1,
                Some(false) => counts.inter_thread += 1,
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
        let used = self.used[start..start + self.ways].iter().enumerate();
        let (way, _) = used.min_by_key(|(_, used)| **used)?;
        let at = start + way;
        self.used[at] = self.clock;
        let old = std::mem::replace(&mut self.held[at], line);
        let was_dirty = std::mem::replace(&mut self.dirty[at], dirty);
        self.arrives[at] = arrives;
        if let Some(lost) = &mut self.lost {
            lost.back(line);
            if old != EMPTY {
                lost.displaced(old, user);
            }
        }
        (old != EMPTY).then(|| Victim { address: old << self.shift, dirty: was_dirty })
    }

    /// Marks the line of an address as written, if it is there.
    pub fn write_back(&mut self, address: u64) -> bool {
        let place = self.find(address).place;
        if let Some(place) = place {
            self.dirty[place.0] = true;
        }
        place.is_some()
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
        cache.count(user, &found);
        match found.place {
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
