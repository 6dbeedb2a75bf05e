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
//! Histories are hashed anew for each branch, instead of being folded step by step as in hardware: the entries
//! are the same, at other places.

/// Tables of tagged entries.
const TABLES: usize = 5;
/// Branches in the history of each.
const LENGTHS: [u32; TABLES] = [4, 10, 24, 55, 128];
/// Counters of the table by address for each entry of a tagged one.
const PER_ENTRY: usize = 4;
/// Bits of a tag.
const TAG_BITS: u32 = 11;
/// Branches after which all that is useful is half as useful.
const HALVED_AFTER: u32 = 1 << 18;
/// Limits of a tagged entry's counter; 0 and above: taken.
const COUNTER: (i8, i8) = (-4, 3);
const MOST_USEFUL: u8 = 3;
/// Limits of what is known about new entries; below 0: they are not to be trusted.
const TRUST: (i8, i8) = (-8, 7);

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    tag: u16,
    counter: i8,
    useful: u8,
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
    address: u64,
    hashes: [u64; TABLES],
    tags: [u16; TABLES],
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
        let [first, second, third, fourth, fifth] = hashes;
        let tags = [tag(first), tag(second), tag(third), tag(fourth), tag(fifth)];
        Self { address: mixed(at), hashes, tags }
    }
}

/// The tables of one predictor.
#[derive(Debug, Clone)]
pub struct Tage {
    by_address: Vec<u8>,
    /// All tagged tables, one after the other.
    tagged: Vec<Entry>,
    trust: i8,
    branches: u32,
    random: u32,
}

impl Tage {
    /// Tables with this many tagged entries in all, rounded to a power of two in each table.
    #[must_use]
    pub fn new(entries: u32) -> Self {
        let each = (entries as usize / TABLES).clamp(16, 1 << 20).next_power_of_two();
        Self {
            by_address: vec![1; PER_ENTRY * each],
            tagged: vec![Entry::default(); TABLES * each],
            trust: 0,
            branches: 0,
            random: 1,
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
        // Without branches: what is found differs from one call to the next. Bit 0 is the table by address.
        let (mut found, mut says) = (1_u32, 0_u32);
        for (table, at) in at.iter().enumerate() {
            let entry = self.tagged[*at];
            found |= u32::from(entry.tag == places.tags[table]) << (table + 1);
            says |= u32::from(entry.counter >= 0) << (table + 1);
        }
        let base = places.address as usize & (self.by_address.len() - 1);
        says |= u32::from(self.by_address[base] >= 2);
        let longest = found.ilog2() as usize;
        let next = (found & !(1 << longest)).max(1).ilog2() as usize;
        let (with, without) = (says >> longest & 1 == 1, says >> next & 1 == 1);
        if longest == 0 {
            self.count(base, &at, 0, taken);
            if with != taken {
                self.take_entry(places, &at, 0, taken);
            }
            self.age();
            return with != taken;
        }
        let entry = &mut self.tagged[at[longest - 1]];
        // Most often it is right and sure, and the next one agrees: nothing changes.
        let most = if taken { COUNTER.1 } else { COUNTER.0 };
        if with == taken && with == without && entry.counter == most {
            self.age();
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
            self.count(base, &at, next, taken);
        }
        self.count(base, &at, longest, taken);
        // A new entry that is right has what is to be known.
        if predicted != taken && !(is_new && with == taken) {
            self.take_entry(places, &at, longest, taken);
        }
        self.age();
        predicted != taken
    }

    /// Counts a direction in a table; 0 is that by address.
    #[inline]
    fn count(&mut self, base: usize, at: &[usize; TABLES], table: usize, taken: bool) {
        if let Some(table) = table.checked_sub(1) {
            self.tagged[at[table]].count(taken);
        } else {
            let counter = self.by_address[base];
            self.by_address[base] =
                (counter + u8::from(taken)).min(3).saturating_sub(u8::from(!taken));
        }
    }

    #[inline]
    fn age(&mut self) {
        self.branches += 1;
        if self.branches >= HALVED_AFTER {
            self.branches = 0;
            self.tagged.iter_mut().for_each(|entry| entry.useful >>= 1);
        }
    }

    /// Takes an entry with a longer history than that of table `first`, a table or two further on in some cases.
    #[cold]
    fn take_entry(&mut self, places: &Places, at: &[usize; TABLES], first: usize, taken: bool) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let skipped = (self.random.trailing_ones() as usize).min(2);
        let from = if first + skipped < TABLES { first + skipped } else { first };
        let free = (from..TABLES).find(|table| self.tagged[at[*table]].useful == 0);
        if let Some(table) = free {
            let (tag, counter) = (places.tags[table], if taken { 0 } else { -1 });
            self.tagged[at[table]] = Entry { tag, counter, useful: 0 };
            return;
        }
        for at in &at[from.min(TABLES)..] {
            let useful = &mut self.tagged[*at].useful;
            *useful = useful.saturating_sub(1);
        }
    }
}
