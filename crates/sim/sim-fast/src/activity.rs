//! What a thread did, in terms of the hardware: the sums that event
//! counters are read from.
//!
//! Cycles are charged at retirement and slots at dispatch, each to one cause, so
//! the causes sum to the cycles and to width × cycles. All fields are
//! sums (or, per instruction, means), so activities add and scale.

use std::ops::AddAssign;

pub use crate::physics::window::account::{
    CYCLE_CAUSES as CYCLES, Cycle, SLOT_CAUSES as SLOTS, Slot,
};

macro_rules! activity {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Sums over some stretch of a thread's execution.
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct Activity {
            /// Cycles by [`Cycle`].
            pub cycles: [f64; CYCLES],
            /// Slots by [`Slot`].
            pub slots: [f64; SLOTS],
            /// Cycles with the core in ST, SMT2, SMT4 and SMT8 mode.
            pub modes: [f64; 4],
            $($(#[$doc])* pub $name: f64,)*
        }

        impl Activity {
            /// Scaled by a factor.
            #[must_use]
            pub fn times(mut self, factor: f64) -> Self {
                self.cycles.iter_mut().for_each(|sum| *sum *= factor);
                self.slots.iter_mut().for_each(|sum| *sum *= factor);
                self.modes.iter_mut().for_each(|sum| *sum *= factor);
                $(self.$name *= factor;)*
                self
            }

            /// Adds another, scaled by a factor.
            pub fn add_times(&mut self, more: &Self, factor: f64) {
                let add = |(sum, more): (&mut f64, &f64)| *sum += more * factor;
                self.cycles.iter_mut().zip(&more.cycles).for_each(add);
                self.slots.iter_mut().zip(&more.slots).for_each(add);
                self.modes.iter_mut().zip(&more.modes).for_each(add);
                $(self.$name += more.$name * factor;)*
            }
        }

        impl AddAssign<&Activity> for Activity {
            fn add_assign(&mut self, more: &Self) {
                self.add_times(more, 1.0);
            }
        }
    };
}

activity! {
    /// Instructions retired.
    instructions,
    /// Micro-operations retired.
    uops,
    /// Loads retired.
    loads,
    /// Stores retired.
    stores,
    /// Mispredicted branches retired.
    mispredicted,
    /// Floating-point operations on single values.
    flops,
    /// Scalar floating-point micro-operations.
    fp_scalar,
    /// Packed floating-point micro-operations.
    fp_packed,
    /// Floating-point divisions.
    fp_divisions,
    /// Cycles in which a floating-point or vector operation stood between
    /// dispatch and issue.
    vector_cycles,
    /// Cycles in which a divider was busy for the thread.
    divider_cycles,
    /// Fetches that missed the L1 instruction cache.
    l1i_misses,
    /// Fetches that missed the first-level translation buffer.
    itlb_misses,
    /// Loads that missed the L1 data cache.
    l1d_misses,
    /// Requests of the thread, data and code, that missed the L2.
    l2_misses,
    /// Loads that missed the L2.
    l2_load_misses,
    /// Loads that missed all caches.
    llc_load_misses,
    /// Loads that memory of another node served.
    far_loads,
    /// Lines read from memory of the own node, prefetched ones too.
    memory_near,
    /// Lines read from memory of another node, prefetched ones too.
    memory_far,
}

impl Activity {
    /// All cycles.
    #[must_use]
    pub fn all_cycles(&self) -> f64 {
        self.cycles.iter().sum()
    }

    /// Share of the cycles in which the floating-point unit held an operation, 0…1.
    #[must_use]
    pub fn fpu_busy(&self) -> f64 {
        let cycles = self.all_cycles();
        if cycles > 0.0 { (self.vector_cycles / cycles).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Cycles of a cause.
    #[must_use]
    pub fn cycle(&self, cause: Cycle) -> f64 {
        self.cycles.get(cause as usize).copied().unwrap_or(0.0)
    }

    /// Slots of a cause.
    #[must_use]
    pub fn slot(&self, cause: Slot) -> f64 {
        self.slots.get(cause as usize).copied().unwrap_or(0.0)
    }

    /// Slots of several causes.
    #[must_use]
    pub fn slots_of(&self, causes: &[Slot]) -> f64 {
        causes.iter().map(|cause| self.slot(*cause)).sum()
    }

    /// Cycles of several causes.
    #[must_use]
    pub fn cycles_of(&self, causes: &[Cycle]) -> f64 {
        causes.iter().map(|cause| self.cycle(*cause)).sum()
    }

    /// All slots.
    #[must_use]
    pub fn all_slots(&self) -> f64 {
        self.slots.iter().sum()
    }

    /// Adds `cycles` in which nothing moved because memory was awaited, on a core
    /// that dispatches `width` micro-ops a cycle: refilling caches, draining.
    pub fn stall(&mut self, cycles: f64, width: f64) {
        self.cycles[Cycle::Memory as usize] += cycles;
        self.slots[Slot::Memory as usize] += cycles * width;
    }
}

/// Names of the causes of cycles, in the order of [`Cycle`].
pub const CAUSES: [&str; CYCLES] = [
    "retiring",
    "empty_icache",
    "empty_mispredict",
    "empty_other",
    "turn",
    "finish",
    "integer",
    "vector",
    "l1",
    "l2",
    "l3",
    "memory",
    "store",
];
