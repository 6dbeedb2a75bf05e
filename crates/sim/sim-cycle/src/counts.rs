//! Counts of what a thread did.

use symbiont_sim_fast::activity::{Activity, CYCLES, Cycle, SLOTS, Slot};

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
    /// Mispredicted branches.
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
        self.with(before, |now, before| now - before)
    }

    /// Both together; when it last retired is this one's, if it did.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let last_retired = other.last_retired.max(self.last_retired);
        Self { last_retired, ..self.with(other, |own, other| own + other) }
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let (t, o) = (&self.traffic, &other.traffic);
        Self {
            instructions: of(self.instructions, other.instructions),
            uops: of(self.uops, other.uops),
            loads: of(self.loads, other.loads),
            stores: of(self.stores, other.stores),
            mispredicted: of(self.mispredicted, other.mispredicted),
            fp_divisions: of(self.fp_divisions, other.fp_divisions),
            vector_cycles: of(self.vector_cycles, other.vector_cycles),
            divider_cycles: of(self.divider_cycles, other.divider_cycles),
            cycles: std::array::from_fn(|i| of(self.cycles[i], other.cycles[i])),
            slots: std::array::from_fn(|i| of(self.slots[i], other.slots[i])),
            last_retired: self.last_retired,
            traffic: Traffic {
                l1i_misses: of(t.l1i_misses, o.l1i_misses),
                itlb_misses: of(t.itlb_misses, o.itlb_misses),
                l1d_misses: of(t.l1d_misses, o.l1d_misses),
                l2_misses: of(t.l2_misses, o.l2_misses),
                l2_load_misses: of(t.l2_load_misses, o.l2_load_misses),
                llc_load_misses: of(t.llc_load_misses, o.llc_load_misses),
                far_loads: of(t.far_loads, o.far_loads),
                memory_near: of(t.memory_near, o.memory_near),
                memory_far: of(t.memory_far, o.memory_far),
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
