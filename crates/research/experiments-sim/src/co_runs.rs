//! Which programs shared a core, and how often.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_machine::Machine;
use symbiont_sim_fast::machine::{Contention, SimMachine};
use symbiont_topology::CoreId;

/// Counts quanta.
#[derive(Debug, Default)]
pub(super) struct CoRuns {
    quanta: u64,
    /// By the places of two programs in the workload, the lower one first.
    together: BTreeMap<(usize, usize), u64>,
}

impl CoRuns {
    /// Adds the quantum that has just passed.
    pub fn add<'p, C: Contention<'p>>(&mut self, machine: &SimMachine<'p, C>) {
        let mut cores: BTreeMap<CoreId, BTreeSet<usize>> = BTreeMap::new();
        for truth in machine.truth() {
            let core = truth.cpu.and_then(|cpu| machine.topology().core_of(cpu));
            if let Some(core) = core {
                cores.entry(core.id).or_default().insert(truth.slot);
            }
        }
        self.quanta += 1;
        for slots in cores.values() {
            for one in slots {
                for other in slots.range(one + 1..) {
                    *self.together.entry((*one, *other)).or_default() += 1;
                }
            }
        }
    }

    /// Shares of quanta by the places of two programs, of so many; 1 for a program and itself.
    pub fn shares(&self, programs: usize) -> Vec<Vec<f64>> {
        let share = |one: usize, other: usize| {
            let pair = (one.min(other), one.max(other));
            let quanta = self.together.get(&pair).copied().unwrap_or(0);
            if one == other { 1.0 } else { quanta as f64 / self.quanta.max(1) as f64 }
        };
        let row = |one| (0..programs).map(|other| share(one, other)).collect();
        (0..programs).map(row).collect()
    }
}
