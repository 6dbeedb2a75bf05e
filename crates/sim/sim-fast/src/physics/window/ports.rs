//! Issue ports: the first cycle in which one is free.
//!
//! Operations come in program order but issue in any order, so what is taken is kept cycle by cycle and not
//! as a next free time. Co-runners leave a thread a share s of the cycles of a group: cycle t is its own
//! where the fractional part of t·g + φ is below s, g the golden ratio and φ different for each port. So its
//! cycles are spread evenly, without a period that loops could fall in step with, and a larger share
//! contains all cycles of a smaller one. They are found for a block of cycles at a time, when the first is
//! asked for. A division also occupies the divider of its port.

use super::account::{Ticks, begin, cycle, ticks};
use super::busy::Busy;
use super::spread;
use crate::physics::pipeline::{Environment, GROUPS, Group, Pipeline};

/// Cycles of a block.
const BLOCK: usize = 16;
/// Blocks ahead for which taken ports are kept. Later cycles count as free.
const BLOCKS: usize = 1 << 9;

/// What the cycles of a block are further on than its first, as [`spread`] has it.
const FURTHER: [u32; BLOCK] = {
    let mut further = [0; BLOCK];
    let mut at = 1;
    while at < BLOCK {
        further[at] = spread(at as u32);
        at += 1;
    }
    further
};

/// Which ports are taken when.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The ports taken in each cycle, in a ring of blocks.
    taken: Box<[[u32; BLOCK]; BLOCKS]>,
    /// The block that lies at each place of the ring, + 1.
    blocks: Box<[u32; BLOCKS]>,
    /// When the divider of each port is taken.
    divider: [Busy; 32],
    /// Ports whose cycles are shared, with share and φ in 2⁻³².
    shared: Vec<(u32, u32, u32)>,
    divider_share: f64,
    /// Cycles for which each port was taken, and all dividers.
    used: [u32; 32],
    divided: f64,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            taken: Box::new([[0; BLOCK]; BLOCKS]),
            blocks: Box::new([0; BLOCKS]),
            divider: std::array::from_fn(|_| Busy::default()),
            shared: Vec::new(),
            divider_share: 1.0,
            used: [0; 32],
            divided: 0.0,
        }
    }
}

impl Ports {
    /// Frees all ports and sets the shares.
    pub fn reset(&mut self, pipeline: &Pipeline, environment: &Environment) {
        self.blocks.fill(0);
        self.divider.iter_mut().for_each(Busy::clear);
        (self.used, self.divided) = ([0; 32], 0.0);
        self.divider_share = environment.ports[Group::Divider as usize].clamp(1e-3, 1.0);
        self.shared.clear();
        for group in (0..GROUPS).filter(|&group| group != Group::Divider as usize) {
            let share = environment.ports[group];
            let ports = pipeline.group_ports[group];
            if share >= 1.0 {
                continue;
            }
            // A cast from a float saturates.
            let share = (share.max(1e-3) * (1_u64 << 32) as f64) as u32;
            let bits = (0..u32::BITS).filter(|bit| ports >> bit & 1 == 1);
            for bit in bits {
                self.shared.push((1 << bit, share, spread(bit.wrapping_mul(7919))));
            }
        }
    }

    /// The ports that are not this thread's in the cycles of a block.
    #[inline(never)]
    fn of_others(&self, block: u32) -> [u32; BLOCK] {
        let first = spread(block.wrapping_mul(BLOCK as u32));
        let mut others = [0; BLOCK];
        for &(bit, share, offset) in &self.shared {
            let first = first.wrapping_add(offset);
            for (others, further) in others.iter_mut().zip(FURTHER) {
                *others |= if first.wrapping_add(further) < share { 0 } else { bit };
            }
        }
        others
    }

    /// Issues an operation at one of the ports `able`, at `ready` or as soon after as one is free;
    /// returns the cycle. `busy`: for how long it keeps a divider. `now`: no operation to come
    /// issues before it.
    #[inline]
    pub fn issue(&mut self, able: u32, busy: u32, ready: u32, now: u32) -> u32 {
        if able == 0 {
            return ready;
        }
        if busy > 1 {
            return self.divide(able, f64::from(busy), ready, now);
        }
        self.take(able, ready, now)
    }

    #[inline]
    fn take(&mut self, able: u32, ready: u32, now: u32) -> u32 {
        let mut cycle = ready;
        let last = now / BLOCK as u32 + BLOCKS as u32 - 1;
        loop {
            let block = cycle / BLOCK as u32;
            if block > last {
                self.used[able.trailing_zeros() as usize % 32] += 1;
                return cycle;
            }
            let place = block as usize % BLOCKS;
            if self.blocks[place] != block + 1 {
                self.blocks[place] = block + 1;
                self.taken[place] = self.of_others(block);
            }
            let from = cycle as usize % BLOCK;
            for (at, taken) in self.taken[place].iter_mut().enumerate().skip(from) {
                let free = able & !*taken;
                if free != 0 {
                    *taken |= free & free.wrapping_neg();
                    self.used[free.trailing_zeros() as usize % 32] += 1;
                    return block * BLOCK as u32 + at as u32;
                }
            }
            cycle = (block + 1) * BLOCK as u32;
        }
    }

    fn divide(&mut self, able: u32, busy: f64, ready: u32, now: u32) -> u32 {
        let long = ticks(busy / self.divider_share);
        let mut best: Option<(Ticks, u32)> = None;
        for unit in (0..u32::BITS).filter(|bit| able >> bit & 1 == 1) {
            let divider = &mut self.divider[unit as usize];
            divider.pass(begin(now));
            let free = divider.free(begin(ready), long);
            if best.is_none_or(|(soonest, _)| free < soonest) {
                best = Some((free, unit));
            }
        }
        let Some((free, unit)) = best else { return ready };
        let first = cycle(free + begin(1) - 1);
        let issue = self.take(1 << unit, first, now);
        self.divided += busy;
        // What was waited for the share of a busy unit is not waited again.
        let from = if issue == first { free } else { begin(issue) };
        self.divider[unit as usize].take(from, from + long);
        issue
    }

    /// Cycles for which the ports of each group were taken.
    pub fn taken_by_group(&self, pipeline: &Pipeline) -> [f64; GROUPS] {
        let mut cycles = pipeline.group_ports.map(|ports| {
            let of_group = (0..32).filter(|bit| ports >> bit & 1 == 1);
            of_group.map(|bit: usize| f64::from(self.used[bit])).sum()
        });
        cycles[Group::Divider as usize] = self.divided;
        cycles
    }
}
