//! CPI stack and slot stack of a thread.
//!
//! # Approach
//! A thread's cycle is charged to one cause, in this order: it retired something; it has nothing in flight
//! (after an instruction miss, after a misprediction, or else); its oldest operation is done but other threads
//! had the turn; else what the oldest operation waits for.
//!
//! A thread's slots of a cycle, as many as the width (of its half), are: those that it used, those that other
//! threads used, those that its wrong path took (bad speculation); the rest go to one cause: a structure was
//! full (what the oldest operation waits for), or the front end delivered nothing (after an instruction miss
//! or during the refill) or too little.

use symbiont_sim_fast::activity::{Cycle, Slot};

use super::Core;
use super::thread::{Full, Thread, Waits};

/// The slot that goes with what the oldest operation waits for.
fn slot_of(cause: Cycle) -> Slot {
    match cause {
        Cycle::L1 => Slot::L1,
        Cycle::L2 => Slot::L2,
        Cycle::L3 => Slot::L3,
        Cycle::Memory => Slot::Memory,
        Cycle::Store => Slot::Store,
        _ => Slot::Core,
    }
}

fn cycle(thread: &Thread<'_>) -> Cycle {
    if thread.retired > 0 {
        return Cycle::Retiring;
    }
    match thread.oldest() {
        None => match thread.front {
            Waits::Icache => Cycle::EmptyIcache,
            Waits::Redirect => Cycle::EmptyMispredict,
            // The first behind it are on their way.
            Waits::Flow => Cycle::EmptyOther,
        },
        Some(_) if thread.outrun => Cycle::Turn,
        Some(oldest) => oldest.cause,
    }
}

fn slot(thread: &Thread<'_>, now: u64) -> Slot {
    match thread.full {
        Some(Full::Stores) => Slot::Store,
        Some(Full::Other) => thread.oldest().map_or(Slot::Core, |oldest| slot_of(oldest.cause)),
        None => match thread.front {
            Waits::Redirect if thread.is_on_wrong_path(now) => Slot::FetchBandwidth,
            Waits::Redirect | Waits::Icache => Slot::FetchLatency,
            Waits::Flow => Slot::FetchBandwidth,
        },
    }
}

impl Core<'_> {
    /// Charges the cycle that was, and as many like it as make up `cycles`.
    pub(super) fn account(&mut self, cycles: u64) {
        let width = u64::from(self.width);
        let mut all = [0; 2];
        let halves = self.halves;
        for (at, thread) in self.threads.iter().enumerate() {
            all[at & (halves - 1)] += u64::from(thread.dispatched + thread.wrong_path.dispatched);
        }
        for (at, thread) in self.threads.iter_mut().enumerate() {
            if thread.is_done() {
                continue;
            }
            let (own, all) = (u64::from(thread.dispatched), all[at & (halves - 1)]);
            let wrong_path = u64::from(thread.wrong_path.dispatched);
            let (cause, rest) = (cycle(thread), slot(thread, self.now));
            let counts = &mut thread.counts;
            counts.cycles[cause as usize] += cycles;
            counts.slots[Slot::Retiring as usize] += own * cycles;
            counts.slots[Slot::BadSpeculation as usize] += wrong_path * cycles;
            counts.slots[Slot::OtherThread as usize] += (all - own - wrong_path) * cycles;
            counts.slots[rest as usize] += (width - all) * cycles;
            counts.vector_cycles += if thread.vectors > 0 { cycles } else { 0 };
        }
    }
}
