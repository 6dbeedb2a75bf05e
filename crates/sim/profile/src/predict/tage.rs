//! Predicts the directions of branches by tagged tables for many lengths of history (TAGE).
//!
//! # Approach
//! As Seznec and Michaud, A case for (partially) tagged geometric history length branch prediction, JILP 2006: a
//! table of two-bit counters by address, and tables of tagged entries by the address and the directions of the
//! last 4 to 128 branches.
//!
//! ```text
//! provider := the entry with the longest history whose tag matches; else the two-bit counter
//! predict by the provider; by the next shorter one while the provider is new and new entries were wrong more often
//! mispredicted: claim an entry of a longer history that is useful to no other; how useful it is is a counter, which is
//!               halved now and then
//! ```
//!
//! Learning ([`Learner`]) is apart from the tables, which may lie in other ways ([`super::Pair`]).
//!
//! Histories are hashed anew for each branch, instead of being folded step by step as in hardware: the entries
//! are the same, at other places.

/// Tables of tagged entries.
pub(super) const TABLES: usize = 5;
/// Branches in the history of each.
const LENGTHS: [u32; TABLES] = [4, 10, 24, 55, 128];
/// Counters of the table by address for each entry of a tagged one.
pub(super) const PER_ENTRY: usize = 4;
/// Bits of a tag.
const TAG_BITS: u32 = 11;
/// Branches after which all that is useful is half as useful.
pub(super) const HALVED_AFTER: u32 = 1 << 18;
/// Limits of a tagged entry's counter; 0 and above: taken.
pub(super) const COUNTER: (i8, i8) = (-4, 3);
pub(super) const MOST_USEFUL: u8 = 3;
/// Limits of what is known about new entries; below 0: they are not to be trusted.
const TRUST: (i8, i8) = (-8, 7);

/// A tagged entry; its tag has twelve bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) tag: u16,
    pub(super) counter: i8,
    pub(super) useful: u8,
}

impl Entry {
    fn count(&mut self, taken: bool) {
        let step = if taken { 1 } else { -1 };
        self.counter = (self.counter + step).clamp(COUNTER.0, COUNTER.1);
    }
}

/// Where a branch with its history is found, in tables of any size.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    pub(super) address: u64,
    pub(super) hashes: [u64; TABLES],
}

/// Spreads a number over 64 bits.
#[inline]
pub(super) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// A hash of the last so many bits of a history, and an address.
#[inline]
pub(super) fn hashed(at: u64, history: u128, bits: u32) -> u64 {
    let kept = history & (u128::MAX >> (u128::BITS - bits.clamp(1, u128::BITS)));
    let folded = (kept as u64) ^ ((kept >> 64) as u64).wrapping_mul(0xa076_1d64_78bd_642f);
    mixed(folded ^ mixed(at))
}

/// The tag in a hash; none is 0, which is that of an entry that was never taken.
#[inline]
pub(super) fn tag(hash: u64) -> u16 {
    (hash >> (u64::BITS - TAG_BITS)) as u16 | 1 << TAG_BITS
}

impl Places {
    /// The places of a branch at `at`; the direction of the last branch is the lowest bit of `history`.
    #[must_use]
    #[inline]
    pub fn of(at: u64, history: u128) -> Self {
        // One by one, so that lengths are known as this is compiled: a loop takes four times as long.
        let [first, second, third, fourth, fifth] = LENGTHS;
        let of = |bits| hashed(at, history, bits);
        let hashes = [of(first), of(second), of(third), of(fourth), of(fifth)];
        Self { address: mixed(at), hashes }
    }

    /// The tag in a table.
    #[inline]
    fn tag(&self, table: usize) -> u16 {
        tag(self.hashes[table])
    }
}

/// What a branch finds in each table: a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// The two-bit counter.
    pub(super) base: u8,
    pub(super) entries: [Entry; TABLES],
}

impl Found {
    /// Counts a direction in a table; 0 is that by address.
    fn count(&mut self, table: usize, taken: bool) {
        if let Some(table) = table.checked_sub(1) {
            self.entries[table].count(taken);
        } else {
            self.base = (self.base + u8::from(taken)).min(3).saturating_sub(u8::from(!taken));
        }
    }
}

/// What is learnt in addition to the entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Learner {
    trust: i8,
    random: u32,
}

impl Learner {
    pub(super) fn new() -> Self {
        Self { trust: 0, random: 1 }
    }

    /// A conditional branch that finds this was taken or not: was it mispredicted? Learns from it; the copy is to be
    /// written back.
    #[inline]
    pub(super) fn mispredicts(&mut self, all: &mut Found, places: &Places, taken: bool) -> bool {
        // Without branches: what is found differs from one call to the next. Bit 0 is the table by address.
        let (mut found, mut says) = (1_u32, u32::from(all.base >= 2));
        for (table, entry) in all.entries.iter().enumerate() {
            found |= u32::from(entry.tag == places.tag(table)) << (table + 1);
            says |= u32::from(entry.counter >= 0) << (table + 1);
        }
        let longest = found.ilog2() as usize;
        let next = (found & !(1 << longest)).max(1).ilog2() as usize;
        let (with, without) = (says >> longest & 1 == 1, says >> next & 1 == 1);
        if longest == 0 {
            all.count(0, taken);
            if with != taken {
                self.take_entry(all, places, 0, taken);
            }
            return with != taken;
        }
        let entry = &mut all.entries[longest - 1];
        // Most often it is right and sure, and the next one agrees: nothing changes.
        let most = if taken { COUNTER.1 } else { COUNTER.0 };
        if with == taken && with == without && entry.counter == most {
            return false;
        }
        let is_new = entry.useful == 0 && (-1..=0).contains(&entry.counter);
        if with != without {
            let right = with == taken;
            let more = (entry.useful + u8::from(right)).min(MOST_USEFUL);
            entry.useful = more.saturating_sub(u8::from(!right));
        }
        let predicted = if is_new && self.trust < 0 { without } else { with };
        if is_new {
            if with != without {
                let step = if with == taken { 1 } else { -1 };
                self.trust = (self.trust + step).clamp(TRUST.0, TRUST.1);
            }
            all.count(next, taken);
        }
        all.count(longest, taken);
        // A new entry that is right has what is to be known.
        if predicted != taken && !(is_new && with == taken) {
            self.take_entry(all, places, longest, taken);
        }
        predicted != taken
    }

    /// Takes an entry with a longer history than that of table `first`, a table or two further on in some cases.
    #[cold]
    fn take_entry(&mut self, all: &mut Found, places: &Places, first: usize, taken: bool) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let skipped = (self.random.trailing_ones() as usize).min(2);
        let from = if first + skipped < TABLES { first + skipped } else { first };
        let free = (from..TABLES).find(|table| all.entries[*table].useful == 0);
        if let Some(table) = free {
            let (tag, counter) = (places.tag(table), if taken { 0 } else { -1 });
            all.entries[table] = Entry { tag, counter, useful: 0 };
            return;
        }
        for entry in &mut all.entries[from.min(TABLES)..] {
            entry.useful = entry.useful.saturating_sub(1);
        }
    }
}

/// Entries of each table, of so many in all.
pub(super) const fn each(entries: u32) -> usize {
    let each = entries as usize / TABLES;
    let each = if each < 16 { 16 } else { each };
    if each > 1 << 20 { 1 << 20 } else { each.next_power_of_two() }
}

/// The tables of one predictor.
#[derive(Debug, Clone)]
pub struct Tage {
    by_address: Vec<u8>,
    /// All tagged tables, one after the other.
    tagged: Vec<Entry>,
    learner: Learner,
    branches: u32,
}

impl Tage {
    /// Tables with this many tagged entries in all, rounded to a power of two in each table.
    #[must_use]
    pub fn new(entries: u32) -> Self {
        let each = each(entries);
        Self {
            by_address: vec![1; PER_ENTRY * each],
            tagged: vec![Entry::default(); TABLES * each],
            learner: Learner::new(),
            branches: 0,
        }
    }

    /// Where the branch's entry is in each table.
    #[inline]
    fn at(&self, places: &Places) -> [usize; TABLES] {
        let each = self.tagged.len() / TABLES;
        let mask = self.by_address.len() / PER_ENTRY - 1;
        std::array::from_fn(|table| table * each + (places.hashes[table] as usize & mask))
    }

    /// A conditional branch was taken or not: was it mispredicted? Learns from it.
    #[inline]
    pub fn mispredicts(&mut self, places: &Places, taken: bool) -> bool {
        let at = self.at(places);
        let base = places.address as usize & (self.by_address.len() - 1);
        let mut all = Found { base: self.by_address[base], entries: at.map(|at| self.tagged[at]) };
        let wrong = self.learner.mispredicts(&mut all, places, taken);
        self.by_address[base] = all.base;
        for (at, entry) in at.into_iter().zip(all.entries) {
            self.tagged[at] = entry;
        }
        self.branches += 1;
        if self.branches >= HALVED_AFTER {
            self.branches = 0;
            self.tagged.iter_mut().for_each(|entry| entry.useful >>= 1);
        }
        wrong
    }
}
