//! Misses: a free miss register (MSHR), a slot of memory, and lines in flight.
//!
//! Memory grants a thread one request per interval. A request takes the first free interval at or after
//! its arrival, wherever the requests of later operations lie already: a pointer to the next free time
//! would make an early request of a late operation wait for all others. A miss register is held from issue
//! to data, in a gap between the holds of earlier operations if there is one.

use super::account::{Ticks, Wait, begin, cycle};
use super::busy::Busy;
use super::queue::whole_and_part;
use super::spread;

/// Requests ahead for which granted intervals are kept.
const SLOTS: usize = 1 << 13;
/// Lines in flight are kept by the last bits of their number.
const LINES: usize = 1 << 9;
const NOTHING: (u32, u32, Wait) = (u32::MAX, 0, Wait::L1);

/// Memory and the lines under way.
#[derive(Debug, Clone)]
pub struct Memory {
    interval: f64,
    /// Requests granted per cycle.
    rate: f64,
    granted: Vec<u32>,
    registers: Vec<Busy>,
    /// The last register serves so many of 2³² misses.
    part: u32,
    missed: u32,
    held: f64,
    flight: Vec<(u32, u32, Wait)>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            interval: 1.0,
            rate: 1.0,
            granted: vec![0; SLOTS],
            registers: Vec::new(),
            part: 0,
            missed: 0,
            held: 0.0,
            flight: vec![NOTHING; LINES],
        }
    }
}

impl Memory {
    /// Nothing under way; `registers` miss registers, a request per `interval`.
    pub fn reset(&mut self, registers: f64, interval: f64) {
        self.interval = interval.max(0.05);
        self.rate = 1.0 / self.interval;
        self.granted.fill(0);
        let (whole, part) = whole_and_part(registers);
        (self.part, self.missed) = (part, 0);
        self.registers.resize(whole as usize + 1, Busy::default());
        self.registers.iter_mut().for_each(Busy::clear);
        self.held = 0.0;
        self.flight.fill(NOTHING);
    }

    /// When memory takes up a request that comes at `cycle`.
    pub fn grant(&mut self, cycle: u32) -> u32 {
        let first = (f64::from(cycle) * self.rate) as u32;
        let mut slot = first;
        while self.granted[slot as usize % SLOTS] == slot + 1 {
            slot += 1;
            if slot - first >= SLOTS as u32 {
                break;
            }
        }
        self.granted[slot as usize % SLOTS] = slot + 1;
        cycle.max((f64::from(slot) * self.interval) as u32)
    }

    /// The first cycle from `ready` in which a miss register is free for `long` cycles, and its
    /// index. `now`: no operation to come issues before it.
    pub fn register(&mut self, ready: u32, long: u32, now: u32) -> (u32, usize) {
        let mut best = (Ticks::MAX, 0);
        let last = usize::from(spread(self.missed) >= self.part);
        let most = self.registers.len().saturating_sub(last);
        for (index, register) in self.registers[..most].iter_mut().enumerate() {
            register.pass(begin(now));
            let free = register.free(begin(ready), begin(long));
            if free < best.0 {
                best = (free, index);
                if free <= begin(ready) {
                    break;
                }
            }
        }
        (cycle(best.0), best.1)
    }

    /// A miss register is taken from `cycle` until its data come; so is the line.
    pub fn hold(&mut self, register: usize, line: u32, cycle: u32, until: u32, wait: Wait) {
        if let Some(slot) = self.registers.get_mut(register) {
            slot.take(begin(cycle), begin(until));
        }
        self.missed += 1;
        self.held += f64::from(until - cycle);
        self.flight[line as usize % LINES] = (line, until, wait);
    }

    /// Cycles for which miss registers were held.
    pub fn held(&self) -> f64 {
        self.held
    }

    /// When the line arrives, if it is under way at `cycle`, and what waiting for it
    /// is.
    pub fn under_way(&self, line: u32, cycle: u32) -> Option<(u32, Wait)> {
        let (number, arrives, wait) = self.flight[line as usize % LINES];
        (number == line && arrives > cycle).then_some((arrives, wait))
    }
}
