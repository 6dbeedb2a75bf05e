//! Which hardware thread each top thread gets.
//!
//! # Approach
//! Section 5.3: the hungriest threads, as many as there are cores, are on the first hardware threads of the
//! cores, each on another core; the next ones on the second hardware threads; and so on. Threads that get
//! hardware threads of one rank are a *tier*. Tier after tier:
//! 1. Its threads are the hungriest of those that are left that can all have cores of their own
//!    ([`matching`](super::matching)). Where threads may not run everywhere, others come in a later tier.
//! 2. Those that were in the same tier in the last period keep their cores. Each other one goes to a core that
//!    is free in this tier: to its present one, else to the one with its longest history, else to the first.
//!    A thread makes room for another that would have no core else.
//! 3. A thread keeps its hardware thread in its tier, else it gets the one of the tier's rank, where it is
//!    allowed there and that is free, else another one of the core.
//!
//! Threads for whose cores no hardware thread is left share them, by further tiers: none is sent to a core that has one
//! of its tier to leave its own core to them.

use std::cmp::Reverse;

use symbiont_topology::{CpuSet, PuId, Topology};

use super::History;
use super::matching::Matching;

/// What a top thread may have and would like.
pub(super) struct Request<'a> {
    pub allowed: CpuSet,
    /// What it had in the last period, if it was in the top.
    pub before: Option<TieredCpu>,
    pub history: &'a History,
}

/// A hardware thread, and the tier in which it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TieredCpu {
    pub tier: usize,
    pub cpu: PuId,
}

/// What a top thread gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub given: TieredCpu,
    /// Top threads of its core, itself among them.
    pub on_core: usize,
}

/// The slot of each request, the hungriest thread's first; none where nothing is allowed.
pub(super) fn assign(topology: &Topology, requests: &[Request<'_>]) -> Vec<Option<Slot>> {
    let offered = requests.iter().fold(CpuSet::new(), |all, request| all.union(&request.allowed));
    let cores = topology.cores().iter().map(|core| core.cpus.intersection(&offered));
    let cores: Vec<CpuSet> = cores.filter(|cpus| !cpus.is_empty()).collect();
    let mut all = vec![None; requests.len()];
    let mut left: Vec<usize> = (0..requests.len()).collect();
    let mut first = 0;
    while !left.is_empty() {
        let mut table = Table::new(&cores, requests, first);
        while table.deal(&mut left) {}
        if table.tier == first {
            break;
        }
        for (cpu, at) in table.given.iter().flat_map(Matching::iter) {
            all[at] = Some(TieredCpu { tier: table.tiers[at], cpu });
        }
        first = table.tier;
    }
    let on_core = |cpu: PuId| {
        let core = cores.iter().find(|cpus| cpus.contains(cpu));
        let there = |given: &&TieredCpu| core.is_some_and(|cpus| cpus.contains(given.cpu));
        all.iter().flatten().filter(there).count()
    };
    let slot =
        |given: &Option<TieredCpu>| given.map(|given| Slot { given, on_core: on_core(given.cpu) });
    all.iter().map(slot).collect()
}

/// What is dealt as long as no hardware thread is given twice.
struct Table<'a> {
    /// The hardware threads of each core that are offered.
    cores: &'a [CpuSet],
    /// By core, whose they are.
    given: Vec<Matching<PuId>>,
    requests: &'a [Request<'a>],
    /// The tier of each request that has a hardware thread.
    tiers: Vec<usize>,
    /// The tier that gets the first hardware threads, and the next one to be dealt.
    first: usize,
    tier: usize,
}

impl<'a> Table<'a> {
    fn new(cores: &'a [CpuSet], requests: &'a [Request<'a>], first: usize) -> Self {
        let given = vec![Matching::default(); cores.len()];
        let tiers = vec![first; requests.len()];
        Self { cores, given, requests, tiers, first, tier: first }
    }

    /// Gives the threads of a tier their hardware threads; false: nothing is left for any. `left`: those that
    /// have none yet, the hungriest first.
    fn deal(&mut self, left: &mut Vec<usize>) -> bool {
        let tier = self.tier;
        left.iter().for_each(|at| self.tiers[*at] = tier);
        let accepted = |at: usize| self.cores_for(at);
        let mut members = Matching::default();
        let fits = left.iter().copied().filter(|at| members.place(*at, &accepted));
        let mut own: Vec<usize> = fits.take(self.cores.len()).collect();
        // Those that stay choose first, then those that have a core that they may stay on.
        own.sort_by_key(|at| (self.kept(*at).is_none(), self.requests[*at].before.is_none()));
        let mut on_cores = Matching::default();
        for at in &own {
            on_cores.place(*at, &accepted);
        }
        for (core, at) in on_cores.iter() {
            let mut given = std::mem::take(&mut self.given[core]);
            given.place(at, &|at| self.cpus_for(core, at));
            self.given[core] = given;
        }
        left.retain(|at| !own.contains(at));
        self.tier += 1;
        !own.is_empty()
    }

    /// Where a thread was, if it was in its tier.
    fn kept(&self, at: usize) -> Option<PuId> {
        let before = self.requests[at].before.filter(|before| before.tier == self.tiers[at]);
        before.map(|before| before.cpu)
    }

    /// The cores that have room for a thread, the best one first.
    fn cores_for(&self, at: usize) -> Vec<usize> {
        let request = &self.requests[at];
        let mut cores: Vec<usize> =
            (0..self.cores.len()).filter(|core| self.has_room(*core, at)).collect();
        cores.sort_by_cached_key(|core| {
            let cpus = &self.cores[*core];
            let present = request.before.is_some_and(|before| cpus.contains(before.cpu));
            let periods = request.history.iter().filter(|(cpu, _)| cpus.contains(**cpu));
            (!present, Reverse(periods.map(|(_, periods)| periods).sum::<u64>()))
        });
        cores
    }

    fn has_room(&self, core: usize, at: usize) -> bool {
        let allowed = self.cores[core].intersection(&self.requests[at].allowed);
        let given = &self.given[core];
        allowed.iter().any(|cpu| given.is_free(cpu))
            || given.clone().place(at, &|at| self.cpus_for(core, at))
    }

    /// The hardware threads of a core that a thread may use, the best one first.
    fn cpus_for(&self, core: usize, at: usize) -> Vec<PuId> {
        let (kept, of_tier) = (self.kept(at), self.tiers[at] - self.first);
        let mut ranked: Vec<(usize, PuId)> = self.cores[core].iter().enumerate().collect();
        ranked.retain(|(_, cpu)| self.requests[at].allowed.contains(*cpu));
        ranked.sort_by_key(|(rank, cpu)| (Some(*cpu) != kept, *rank != of_tier));
        ranked.into_iter().map(|(_, cpu)| cpu).collect()
    }
}
