//! Queues that operations leave in any order: is there room?
//!
//! A number of entries that is not whole is one more for a part of the operations.

use super::spread;

/// Cycles ahead for which leaving times are kept.
const HORIZON: usize = 1 << 13;

/// An issue queue: entered in program order, left in any.
#[derive(Debug, Clone)]
pub struct IssueQueue {
    entries: u32,
    /// One more for so many of 2³² operations.
    part: u32,
    entered: u32,
    held: u32,
    now: u32,
    leave: Vec<u16>,
}

/// A number of entries, at least one, and what is left in 2⁻³².
pub fn whole_and_part(entries: f64) -> (u32, u32) {
    let entries = entries.max(1.0);
    (entries as u32, (entries.fract() * (1_u64 << 32) as f64) as u32)
}

impl Default for IssueQueue {
    fn default() -> Self {
        Self { entries: 1, part: 0, entered: 0, held: 0, now: 0, leave: vec![0; HORIZON] }
    }
}

impl IssueQueue {
    /// Empty, with room for `entries`.
    pub fn reset(&mut self, entries: f64) {
        (self.entries, self.part) = whole_and_part(entries);
        (self.held, self.now, self.entered) = (0, 0, 0);
        self.leave.fill(0);
    }

    fn step(&mut self) {
        self.now += 1;
        let slot = &mut self.leave[self.now as usize % HORIZON];
        self.held = self.held.saturating_sub(u32::from(*slot));
        *slot = 0;
    }

    /// The first cycle from `cycle` at which it has room. Calls must come in
    /// the order of time.
    pub fn room(&mut self, cycle: u32) -> u32 {
        while self.now < cycle {
            self.step();
        }
        let entries = self.entries + u32::from(spread(self.entered) < self.part);
        while self.held >= entries {
            self.step();
        }
        self.now.max(cycle)
    }

    /// An operation entered that leaves at `cycle`.
    pub fn enter(&mut self, cycle: u32) {
        let cycle = cycle.clamp(self.now + 1, self.now + HORIZON as u32 - 1);
        self.leave[cycle as usize % HORIZON] += 1;
        self.held += 1;
        self.entered += 1;
    }
}
