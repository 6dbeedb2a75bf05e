//! Queues that operations leave in any order: is there room?
//!
//! A fractional number of entries means one entry more for a part of the operations.

use super::spread;

/// Cycles ahead for which leaving times are kept.
const HORIZON: usize = 1 << 13;
/// Words of a bit for each of these cycles.
const WORDS: usize = HORIZON / 64;
/// No entry leaves.
const NEVER: u32 = u32::MAX;

/// An issue queue: entered in program order, left in any.
#[derive(Debug, Clone)]
pub struct IssueQueue {
    entries: u32,
    /// One more for so many of 2³² operations.
    part: u32,
    entered: u32,
    held: u32,
    now: u32,
    /// The next cycle in which an entry leaves.
    next: u32,
    /// How many leave in each cycle, in a ring.
    leave: Box<[u16; HORIZON]>,
    /// In which of these cycles an entry does.
    any: Box<[u64; WORDS]>,
}

/// A number of entries, at least one, and what is left in 2⁻³².
pub fn whole_and_part(entries: f64) -> (u32, u32) {
    let entries = entries.max(1.0);
    (entries as u32, (entries.fract() * (1_u64 << 32) as f64) as u32)
}

impl Default for IssueQueue {
    fn default() -> Self {
        Self {
            entries: 1,
            part: 0,
            entered: 0,
            held: 0,
            now: 0,
            next: NEVER,
            leave: Box::new([0; HORIZON]),
            any: Box::new([0; WORDS]),
        }
    }
}

impl IssueQueue {
    /// Empty, with room for `entries`.
    pub fn reset(&mut self, entries: f64) {
        (self.entries, self.part) = whole_and_part(entries);
        (self.held, self.now, self.entered, self.next) = (0, 0, 0, NEVER);
        self.leave.fill(0);
        self.any.fill(0);
    }

    /// Lets those leave that leave next.
    fn step(&mut self) {
        let slot = self.next as usize % HORIZON;
        self.held = self.held.saturating_sub(u32::from(self.leave[slot]));
        self.leave[slot] = 0;
        let (mut word, bit) = (slot / 64, slot % 64);
        self.any[word] &= !(1 << bit);
        if self.held == 0 {
            self.next = NEVER;
            return;
        }
        // All lie within a turn of the ring: what is left of this word comes first.
        let mut rest = self.any[word] & (u64::MAX << bit);
        let mut passed = 64 - bit as u32;
        let mut from = self.next;
        while rest == 0 {
            (word, from) = ((word + 1) % WORDS, from + passed);
            (rest, passed) = (self.any[word], 64);
        }
        self.next = from - from % 64 + rest.trailing_zeros();
    }

    /// The first cycle from `cycle` at which it has room. Calls must come in
    /// the order of time.
    #[inline]
    pub fn room(&mut self, cycle: u32) -> u32 {
        while self.next <= cycle {
            self.step();
        }
        let entries = self.entries + u32::from(spread(self.entered) < self.part);
        self.now = self.now.max(cycle);
        while self.held >= entries {
            self.now = self.next;
            self.step();
        }
        self.now
    }

    /// The first cycle from `cycle`, but no later than `until`, at which it holds less than `entries`.
    /// Calls must come in the order of time.
    #[inline]
    pub fn less_than(&mut self, entries: u32, cycle: u32, until: u32) -> u32 {
        while self.next <= cycle {
            self.step();
        }
        self.now = self.now.max(cycle);
        while self.held >= entries && self.next < until {
            self.now = self.next;
            self.step();
        }
        if self.held < entries { self.now } else { until }
    }

    /// An operation entered that leaves at `cycle`.
    #[inline]
    pub fn enter(&mut self, cycle: u32) {
        let cycle = cycle.clamp(self.now + 1, self.now + HORIZON as u32 - 1);
        let slot = cycle as usize % HORIZON;
        self.leave[slot] += 1;
        self.any[slot / 64] |= 1 << (slot % 64);
        self.next = self.next.min(cycle);
        self.held += 1;
        self.entered += 1;
    }
}
