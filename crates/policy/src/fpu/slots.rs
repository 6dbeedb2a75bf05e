//! Which hardware thread each top thread gets.
//!
//! # Approach
//! With *n* threads on *c* cores each core gets ⌊n/c⌋ of them, and n mod c cores get one more.
//! First the threads that were in the top before keep their hardware threads, the hungriest first,
//! as long as their core is not full by that. Then each other thread goes to the allowed core with the
//! fewest top threads, there to the hardware thread with the fewest; ties go to the hardware thread
//! with the longest history, then to the one with the lowest number.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use symbiont_topology::{CoreId, CpuSet, PuId, Topology};

use super::History;

/// What a top thread may have and would like.
pub(super) struct Request<'a> {
    pub allowed: CpuSet,
    /// Its hardware thread of the last period, if it was in the top.
    pub before: Option<PuId>,
    pub history: &'a History,
}

/// What it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub cpu: PuId,
    /// Top threads of its core, itself among them.
    pub on_core: usize,
}

/// The slot of each request, in order; none where nothing is allowed.
pub(super) fn assign(topology: &Topology, requests: &[Request<'_>]) -> Vec<Option<Slot>> {
    let mut loads = Loads::default();
    let allowed = requests.iter().fold(CpuSet::new(), |all, request| all.union(&request.allowed));
    let offers = |core: &&symbiont_topology::Core| !core.cpus.is_disjoint(&allowed);
    let cores = topology.cores().iter().filter(offers).count().max(1);
    let (share, mut with_more) = (requests.len() / cores, requests.len() % cores);
    let on_each = requests.len().div_ceil(allowed.len().max(1));
    let mut given = vec![None; requests.len()];
    for (request, given) in requests.iter().zip(&mut given) {
        let kept =
            request.before.filter(|cpu| request.allowed.contains(*cpu) && loads.on(*cpu) < on_each);
        let Some((cpu, core)) = kept.and_then(|cpu| Some((cpu, topology.core_of(cpu)?.id))) else {
            continue;
        };
        let load = loads.of(core);
        if load > share || (load == share && with_more == 0) {
            continue;
        }
        with_more -= usize::from(load == share);
        loads.add(cpu, core);
        *given = Some(cpu);
    }
    for (request, given) in requests.iter().zip(&mut given).filter(|(_, given)| given.is_none()) {
        let offered =
            request.allowed.iter().filter_map(|cpu| Some((cpu, topology.core_of(cpu)?.id)));
        let history = |cpu| Reverse(request.history.get(&cpu).copied().unwrap_or(0));
        let best =
            offered.min_by_key(|&(cpu, core)| (loads.of(core), loads.on(cpu), history(cpu), cpu));
        if let Some((cpu, core)) = best {
            loads.add(cpu, core);
            *given = Some(cpu);
        }
    }
    let slot = |cpu: PuId| {
        let on_core = topology.core_of(cpu).map_or(1, |core| loads.of(core.id));
        Slot { cpu, on_core }
    };
    given.into_iter().map(|given| given.map(slot)).collect()
}

/// Top threads by core and by hardware thread.
#[derive(Debug, Default)]
struct Loads {
    cores: BTreeMap<CoreId, usize>,
    cpus: BTreeMap<PuId, usize>,
}

impl Loads {
    fn of(&self, core: CoreId) -> usize {
        self.cores.get(&core).copied().unwrap_or(0)
    }

    fn on(&self, cpu: PuId) -> usize {
        self.cpus.get(&cpu).copied().unwrap_or(0)
    }

    fn add(&mut self, cpu: PuId, core: CoreId) {
        *self.cores.entry(core).or_default() += 1;
        *self.cpus.entry(cpu).or_default() += 1;
    }
}
