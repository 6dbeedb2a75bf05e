//! Tagged tables of two sizes, one half the other, looked up at once.
//!
//! # Problem
//! A profile needs what a [`Tage`](super::Tage) and one of half its size mispredict, for every conditional branch of
//! a program. Both look for the same tags at nearly the same places.
//!
//! # Approach
//! The two entries that a hash leads to are the halves of one word, so that each step is done for both. Of the
//! smaller, each entry is kept twice, since the larger has two places for each of its own.
//!
//! ```text
//! entry  := bits 0 … 11 tag, 12 none, 13 taken, 14 unsure, 15 could be more useful, 16 … 18 counter, 20 … 21 useful
//! entry ⊕ tag looked for, plus 0xfff  →  bit 12 is set if the tags differ
//! bits 12 to 15 of all tables, those of the longest history lowest  →  four bits each in a half of a word
//! provider := the lowest one found, x ∧ ¬(x − 1); the next shorter one := the lowest of the others
//! most often the provider is sure and right, and the next one is right or the provider known to be useful: nothing
//! changes
//! otherwise learn, in the half for which this is not so
//! ```
//!
//! # Properties
//! It mispredicts what two [`Tage`](super::Tage)s do (`a_pair_is_two_of_them`).

use super::tage::{
    COUNTER, Entry, Found, HALVED_AFTER, Learner, MOST_USEFUL, PER_ENTRY, Places, TABLES, each,
};
use super::{GSHARES, PREDICTOR_CONFIGS};

/// Entries of each tagged table, and counters of the table by address, of the larger and of the smaller.
const LARGER: usize = each(PREDICTOR_CONFIGS[GSHARES].entries);
const SMALLER: usize = LARGER / 2;
const LARGER_BASE: usize = PER_ENTRY * LARGER;
const SMALLER_BASE: usize = PER_ENTRY * SMALLER;
const _: () = assert!(each(PREDICTOR_CONFIGS[GSHARES + 1].entries) == SMALLER);

/// Bit 0 of each half: the smaller's is the lower one.
const HALVES: u64 = 1 | 1 << 32;
/// An entry that was never taken has this in place of a tag: tags that are looked for are shorter.
const NEVER: u32 = 1 << 11;
const TAG: u32 = 0xfff;
const DIFFERS_AT: u32 = 12;
const TAKEN: u32 = 1 << 13;
const UNSURE: u32 = 1 << 14;
const UNPROVEN: u32 = 1 << 15;
const COUNTER_AT: u32 = 16;
const USEFUL_AT: u32 = 20;
/// Where the bits of the table by address are, behind those of the others.
const BASE_AT: u32 = 4 * TABLES as u32;
/// The lowest bit of each table.
const FIRSTS: u64 = 0x11_1111 * HALVES;
/// Added to a half, its highest bit is set unless it was 0.
const CARRY: u64 = 0x7fff_ffff * HALVES;

/// The bits of a table by address for its counters of the smaller and, from bit 2 on, the larger.
const BASES: [u64; 16] = {
    let mut bases = [0; 16];
    let mut counters = 0;
    while counters < 16 {
        let smaller = base(counters as u64 & 3);
        bases[counters] = base(counters as u64 >> 2) << 32 | smaller;
        counters += 1;
    }
    bases
};

const fn base(counter: u64) -> u64 {
    let (taken, unsure) = (counter >> 1, (counter == 1 || counter == 2) as u64);
    (taken << 1 | unsure << 2) << BASE_AT
}

fn packed(entry: Entry) -> u32 {
    let tag = if entry.tag == 0 { NEVER } else { u32::from(entry.tag) & (NEVER - 1) };
    let taken = if entry.counter >= 0 { TAKEN } else { 0 };
    let is_sure = entry.counter == COUNTER.0 || entry.counter == COUNTER.1;
    let unsure = if is_sure { 0 } else { UNSURE };
    let counter = (entry.counter - COUNTER.0) as u32;
    let unproven = if entry.useful < MOST_USEFUL { UNPROVEN } else { 0 };
    tag | taken | unsure | unproven | counter << COUNTER_AT | u32::from(entry.useful) << USEFUL_AT
}

fn unpacked(packed: u32) -> Entry {
    let tag = packed & TAG;
    Entry {
        tag: if tag == NEVER { 0 } else { (tag | NEVER) as u16 },
        counter: (packed >> COUNTER_AT & 7) as i8 + COUNTER.0,
        useful: (packed >> USEFUL_AT & 3) as u8,
    }
}

/// Which of the two.
#[derive(Debug, Clone, Copy)]
enum Half {
    Smaller,
    Larger,
}

impl Half {
    /// Where its entry is in a word.
    fn at(self) -> u32 {
        match self {
            Self::Smaller => 0,
            Self::Larger => 32,
        }
    }

    /// Where its counter by address is in a byte.
    fn base_at(self) -> u32 {
        match self {
            Self::Smaller => 0,
            Self::Larger => 2,
        }
    }
}

/// The tables of both.
#[derive(Debug)]
pub(super) struct Pair {
    /// Two bits of the smaller and two of the larger.
    by_address: Box<[u8; LARGER_BASE]>,
    tagged: Box<[[u64; LARGER]; TABLES]>,
    smaller: Learner,
    larger: Learner,
    branches: u32,
}

impl Pair {
    pub(super) fn new() -> Self {
        let never = u64::from(packed(Entry::default())) * HALVES;
        Self {
            by_address: Box::new([0b01_01; LARGER_BASE]),
            tagged: Box::new([[never; LARGER]; TABLES]),
            smaller: Learner::new(),
            larger: Learner::new(),
            branches: 0,
        }
    }

    /// A conditional branch was taken or not: which mispredicted it? Bit 0 is the larger, bit 1 the smaller. Learns
    /// from it.
    #[inline]
    pub(super) fn mispredict(&mut self, places: &Places, taken: bool) -> u8 {
        let counters = self.by_address[places.address as usize % LARGER_BASE];
        let mut all = BASES[usize::from(counters % 16)];
        for (table, (entries, hash)) in self.tagged.iter().zip(places.hashes).enumerate() {
            let entries = entries[hash as usize % LARGER];
            let tags = (hash >> 53) * HALVES;
            let bits = (entries ^ tags) + u64::from(TAG) * HALVES;
            all |= (bits >> DIFFERS_AT & (15 * HALVES)) << (4 * (TABLES - 1 - table));
        }
        let found = !all & FIRSTS;
        let provider = found & !(found - HALVES);
        let others = (found ^ provider) | HALVES << BASE_AT;
        let next = others & !(others - HALVES);
        let wrong = all >> 1 ^ if taken { u64::MAX } else { 0 };
        let proves = ((next & wrong) + CARRY) & ((provider & all >> 3) + CARRY) & !CARRY;
        let changes = provider & (all >> 2 | wrong) | proves;
        let mut missed = 0;
        if changes >> 32 != 0 {
            missed |= u8::from(self.learn(Half::Larger, places, taken));
        }
        if changes as u32 != 0 {
            missed |= u8::from(self.learn(Half::Smaller, places, taken)) << 1;
        }
        self.branches += 1;
        if self.branches >= HALVED_AFTER {
            self.age();
        }
        missed
    }

    /// Learns in one of the two: was the branch mispredicted?
    fn learn(&mut self, half: Half, places: &Places, taken: bool) -> bool {
        let counters = self.by_address[places.address as usize % LARGER_BASE];
        let entry = |table: usize| {
            let entries = self.tagged[table][places.hashes[table] as usize % LARGER];
            unpacked((entries >> half.at()) as u32)
        };
        let before =
            Found { base: counters >> half.base_at() & 3, entries: std::array::from_fn(entry) };
        let mut all = before;
        let learner = match half {
            Half::Smaller => &mut self.smaller,
            Half::Larger => &mut self.larger,
        };
        let missed = learner.mispredicts(&mut all, places, taken);
        let address = places.address as usize;
        let copies = match half {
            Half::Smaller => [address % SMALLER_BASE, address % SMALLER_BASE + SMALLER_BASE],
            Half::Larger => [address % LARGER_BASE; 2],
        };
        for copy in copies {
            let counters = &mut self.by_address[copy];
            *counters = *counters & !(3 << half.base_at()) | all.base << half.base_at();
        }
        for (table, entry) in all.entries.into_iter().enumerate() {
            if entry == before.entries[table] {
                continue;
            }
            let (entries, hash) = (&mut self.tagged[table], places.hashes[table]);
            let hash = hash as usize;
            let copies = match half {
                Half::Smaller => [hash % SMALLER, hash % SMALLER + SMALLER],
                Half::Larger => [hash % LARGER; 2],
            };
            for copy in copies {
                let kept = entries[copy] & !(u64::from(u32::MAX) << half.at());
                entries[copy] = kept | u64::from(packed(entry)) << half.at();
            }
        }
        missed
    }

    /// All that is useful is half as useful.
    #[cold]
    fn age(&mut self) {
        self.branches = 0;
        let halved = |packed| {
            let entry = unpacked(packed);
            u64::from(self::packed(Entry { useful: entry.useful >> 1, ..entry }))
        };
        for entries in self.tagged.iter_mut().flatten() {
            *entries = halved((*entries >> 32) as u32) << 32 | halved(*entries as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GSHARES, PREDICTOR_CONFIGS, Places, Tage};
    use super::Pair;

    #[test]
    fn a_pair_is_two_of_them() {
        let mut pair = Pair::new();
        let mut two = [0, 1].map(|size| Tage::new(PREDICTOR_CONFIGS[GSHARES + size].entries));
        let (mut history, mut state, mut missed) = (0_u128, 1_u64, [0; 4]);
        for round in 0..900_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Loops of several lengths, branches that go as one before, and some that cannot be known.
            let branch = round % 997;
            let taken = match branch % 5 {
                0 => round / 997 % 7 != 6,
                1 => history >> (branch % 60) & 1 == 1,
                2 => state >> 60 == 0,
                _ => branch.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1,
            };
            let at = 0x40_0000 + 16 * branch + (round >> 18 << 12);
            let places = Places::of(at, history);
            let each = two.iter_mut().map(|tage| u8::from(tage.mispredicts(&places, taken)));
            let expected = each.zip(0..).fold(0, |bits, (wrong, bit)| bits | wrong << bit);
            assert_eq!(pair.mispredict(&places, taken), expected, "round {round}");
            missed[usize::from(expected)] += 1;
            history = history << 1 | u128::from(taken);
        }
        assert!(missed.iter().all(|rounds| *rounds > 1_000), "{missed:?}");
    }
}
