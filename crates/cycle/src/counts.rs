//! What a thread did, counted.

use symbiont_sim::activity::{Activity, CYCLES, Cycle, SLOTS, Slot};

use crate::levels::Traffic;

/// Sums since the start, or over a stretch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: u64,
    /// Micro-operations retired.
    pub uops: u64,
    /// Loads retired.
    pub loads: u64,
    /// Stores retired.
    pub stores: u64,
    /// Branches guessed wrong.
    pub mispredicted: u64,
    /// Floating-point divisions retired.
    pub fp_divisions: u64,
    /// Cycles in which a vector operation stood between dispatch and issue.
    pub vector_cycles: u64,
    /// Cycles for which dividers were busy.
    pub divider_cycles: u64,
    /// Cycles by [`Cycle`].
    pub cycles: [u64; CYCLES],
    /// Slots by [`Slot`].
    pub slots: [u64; SLOTS],
    /// Cycle in which an operation retired last.
    pub last_retired: u64,
    /// What it asked of the caches.
    pub traffic: Traffic,
}

impl Counts {
    /// Cycles of all causes.
    #[must_use]
    pub fn all_cycles(&self) -> u64 {
        self.cycles.iter().sum()
    }

    /// Cycles per instruction; none before an instruction has retired.
    #[must_use]
    pub fn cpi(&self) -> Option<f64> {
        (self.instructions > 0).then(|| self.all_cycles() as f64 / self.instructions as f64)
    }

    /// Cycles of a cause.
    #[must_use]
    pub fn cycle(&self, cause: Cycle) -> u64 {
        self.cycles.get(cause as usize).copied().unwrap_or(0)
    }

    /// Slots of a cause.
    #[must_use]
    pub fn slot(&self, cause: Slot) -> u64 {
        self.slots.get(cause as usize).copied().unwrap_or(0)
    }

    /// What was done since `before`; when it last retired stays.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (t, b) = (&self.traffic, &before.traffic);
        Self {
            instructions: self.instructions - before.instructions,
            uops: self.uops - before.uops,
            loads: self.loads - before.loads,
            stores: self.stores - before.stores,
            mispredicted: self.mispredicted - before.mispredicted,
            fp_divisions: self.fp_divisions - before.fp_divisions,
            vector_cycles: self.vector_cycles - before.vector_cycles,
            divider_cycles: self.divider_cycles - before.divider_cycles,
            cycles: std::array::from_fn(|i| self.cycles[i] - before.cycles[i]),
            slots: std::array::from_fn(|i| self.slots[i] - before.slots[i]),
            last_retired: self.last_retired,
            traffic: Traffic {
                l1i_misses: t.l1i_misses - b.l1i_misses,
                itlb_misses: t.itlb_misses - b.itlb_misses,
                l1d_misses: t.l1d_misses - b.l1d_misses,
                l2_misses: t.l2_misses - b.l2_misses,
                l2_load_misses: t.l2_load_misses - b.l2_load_misses,
                llc_load_misses: t.llc_load_misses - b.llc_load_misses,
                far_loads: t.far_loads - b.far_loads,
                memory_near: t.memory_near - b.memory_near,
                memory_far: t.memory_far - b.memory_far,
            },
        }
    }

    /// In the terms of event counters. Floating-point operations are not known here:
    /// the core sees classes, not widths.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let traffic = &self.traffic;
        let sum = |count: u64| count as f64;
        Activity {
            cycles: self.cycles.map(sum),
            slots: self.slots.map(sum),
            instructions: sum(self.instructions),
            uops: sum(self.uops),
            loads: sum(self.loads),
            stores: sum(self.stores),
            mispredicted: sum(self.mispredicted),
            fp_divisions: sum(self.fp_divisions),
            vector_cycles: sum(self.vector_cycles),
            divider_cycles: sum(self.divider_cycles),
            l1i_misses: sum(traffic.l1i_misses),
            itlb_misses: sum(traffic.itlb_misses),
            l1d_misses: sum(traffic.l1d_misses),
            l2_misses: sum(traffic.l2_misses),
            l2_load_misses: sum(traffic.l2_load_misses),
            llc_load_misses: sum(traffic.llc_load_misses),
            far_loads: sum(traffic.far_loads),
            memory_near: sum(traffic.memory_near),
            memory_far: sum(traffic.memory_far),
            ..Activity::default()
        }
    }
}
