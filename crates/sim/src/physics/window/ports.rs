//! Issue ports: the first cycle in which one is free.
//!
//! Operations come in program order but issue in any order, so what is taken is
//! kept per cycle and not as a next free time. Co-runners leave a thread a share s
//! of the cycles of a group: cycle t is its own where the fractional part of t·g + φ lies
//! below s, g the golden ratio and φ different for each port. So its cycles are spread evenly,
//! without a period that loops could fall in step with, and a larger share holds all cycles of a
//! smaller one. A division also keeps the divider of its port busy.

use symbiont_profile::OpClass;

use super::spread;
use crate::physics::pipeline::{Environment, GROUPS, Group, Pipeline};

/// Cycles ahead for which taken ports are kept. Later ones count as free.
const HORIZON: usize = 1 << 13;

/// Which ports are taken when.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Cycle + 1 and the ports taken in it, in a ring.
    taken: Vec<(u32, u32)>,
    /// When the divider of each port is free again.
    divider: [f64; 32],
    /// Ports whose cycles are shared, with share and φ in 2⁻³².
    shared: Vec<(u32, u32, u32)>,
    divider_share: f64,
    /// Cycles for which each port was taken, and all dividers.
    used: [u32; 32],
    divided: f64,
}

impl Default for Ports {
    fn default() -> Self {
        let taken = vec![(0, 0); HORIZON];
        Self {
            taken,
            divider: [0.0; 32],
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
        self.taken.fill((0, 0));
        self.divider = [0.0; 32];
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

    /// Ports that are not this thread's in a cycle.
    fn of_others(&self, cycle: u32) -> u32 {
        self.shared.iter().fold(0, |others, &(bit, share, offset)| {
            if spread(cycle).wrapping_add(offset) < share { others } else { others | bit }
        })
    }

    /// Issues an operation at `ready` or as soon after as a port is free; tells
    /// the cycle. `now`: no operation to come issues before it.
    pub fn issue(&mut self, pipeline: &Pipeline, class: OpClass, ready: u32, now: u32) -> u32 {
        let able = pipeline.ports[class as usize];
        if able == 0 {
            return ready;
        }
        let busy = pipeline.divider_busy[class as usize];
        if busy > 1 {
            return self.divide(able, f64::from(busy), ready, now);
        }
        self.take(able, ready, now)
    }

    fn take(&mut self, able: u32, ready: u32, now: u32) -> u32 {
        let mut cycle = ready;
        loop {
            if cycle >= now + HORIZON as u32 - 1 {
                self.used[able.trailing_zeros() as usize] += 1;
                return cycle;
            }
            let slot = cycle as usize % HORIZON;
            if self.taken[slot].0 != cycle + 1 {
                self.taken[slot] = (cycle + 1, self.of_others(cycle));
            }
            let free = able & !self.taken[slot].1;
            if free != 0 {
                self.taken[slot].1 |= free & free.wrapping_neg();
                self.used[free.trailing_zeros() as usize] += 1;
                return cycle;
            }
            cycle += 1;
        }
    }

    fn divide(&mut self, able: u32, busy: f64, ready: u32, now: u32) -> u32 {
        let bits = (0..u32::BITS).filter(|bit| able >> bit & 1 == 1);
        let first =
            |a: &u32, b: &u32| self.divider[*a as usize].total_cmp(&self.divider[*b as usize]);
        let Some(unit) = bits.min_by(first) else { return ready };
        let free = self.divider[unit as usize];
        let cycle = self.take(1 << unit, ready.max(free.ceil() as u32), now);
        self.divided += busy;
        // What was waited for the share of a busy unit is not waited again.
        self.divider[unit as usize] = f64::from(cycle).max(free) + busy / self.divider_share;
        cycle
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
