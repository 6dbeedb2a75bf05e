//! `symbiotic-numa`: as `symbiotic`, and the groups that ask most of memory run
//! on the nodes that hold it (Feliu et al., section 6.2).
//!
//! Groups are ranked by the sum of their threads' requests to main memory; the
//! first ones get the cores of nodes with memory, the others the rest. Between
//! equal ones those that are there already come first. A thread that was not
//! measured counts with the mean of the others.
//!
//! Where all nodes have memory it is not known which of them a program uses, and
//! it decides as `symbiotic` does (`with_memory_everywhere_it_is_symbiotic`). A
//! node of which it is not known counts as having memory.

use std::time::Duration;

use symbiont_machine::{Placement, Signal};
use symbiont_topology::{CpuSet, Topology};

use crate::core_slots::{CoreSlots, Group, Pool};
use crate::{Entry, Foresight, Policy, Requirements, Symbiotic, View, symbiotic};

pub(crate) const ENTRY: Entry = Entry {
    name: "symbiotic-numa",
    summary: "as symbiotic, and the groups that use memory most run near it",
    paper: Some(
        "Feliu et al., Improving IBM POWER8 performance through symbiotic job scheduling, section 6.2",
    ),
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: symbiotic::PARAMETERS,
    make: |settings| Box::new(SymbioticNuma(Symbiotic::published(settings))),
};

/// The policy.
#[derive(Debug, Clone)]
pub struct SymbioticNuma(Symbiotic);

impl SymbioticNuma {
    /// Places the groups of that policy near memory.
    #[must_use]
    pub fn new(symbiotic: Symbiotic) -> Self {
        Self(symbiotic)
    }
}

impl Policy for SymbioticNuma {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        let mut requirements = self.0.requirements();
        requirements.required.insert(Signal::MemoryRequests);
        requirements
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        place_near_memory(&mut self.0, view)
    }

    fn achieved_slowdown(&self, thread: symbiont_machine::ThreadId) -> Option<f64> {
        self.0.achieved_slowdown(thread)
    }

    fn stack_alone(&self, thread: symbiont_machine::ThreadId) -> Option<Vec<(&str, f64)>> {
        self.0.stack_alone(thread)
    }

    fn foresight(&self, view: &View<'_>) -> Option<Box<dyn Foresight>> {
        self.0.foresight(view)
    }
}

/// Decides by a symbiotic policy, and ranks its groups by their requests to memory.
pub(crate) fn place_near_memory(policy: &mut Symbiotic, view: &View<'_>) -> Placement {
    let demand = demand(view);
    let near = near(view.topology);
    policy.decide(view, |slots, pool, groups, placement| {
        assign(view, (&near, &demand), (slots, pool), groups, placement);
    })
}

/// The hardware threads of nodes that have memory.
fn near(topology: &Topology) -> CpuSet {
    let with_memory = topology.nodes().iter().filter(|node| node.memory_bytes != Some(0));
    with_memory.flat_map(|node| node.cpus.iter()).collect()
}

/// Requests to memory of each thread of the view, in a unit that is the same
/// for all.
fn demand(view: &View<'_>) -> Vec<f64> {
    let reported = |name: &str| -> Vec<Option<f64>> {
        let value = |thread: &crate::ThreadView<'_>| thread.measured?.value(name);
        view.threads.iter().map(value).collect()
    };
    let rates = reported("memory_request_rate");
    let known = if rates.iter().any(Option::is_some) { rates } else { reported("memory_requests") };
    let there: Vec<f64> = known.iter().flatten().copied().collect();
    let mean = there.iter().sum::<f64>() / there.len().max(1) as f64;
    known.into_iter().map(|demand| demand.unwrap_or(mean)).collect()
}

fn assign(
    view: &View<'_>,
    (near, demand): (&CpuSet, &[f64]),
    (slots, pool): (&mut CoreSlots, &Pool),
    groups: &[Group],
    placement: &mut Placement,
) {
    let part = |cpus: CpuSet| Pool { allowed: cpus, threads: pool.threads.clone() };
    let close = part(pool.allowed.intersection(near));
    let far = part(pool.allowed.difference(near));
    if close.allowed.is_empty() || far.allowed.is_empty() {
        return slots.assign(view, pool, groups, placement);
    }
    let (close_cores, far_cores) = (slots.cores(&close), slots.cores(&far));
    let of = |group: &Group| -> f64 {
        group.members.iter().filter_map(|&member| demand.get(member)).sum()
    };
    let is_there = |group: &Group| {
        let here = |&&member: &&usize| {
            view.threads.get(member).and_then(|t| t.cpu).is_some_and(|cpu| near.contains(cpu))
        };
        2 * group.members.iter().filter(here).count() > group.members.len()
    };
    let mut ranked = groups.to_vec();
    ranked.sort_by(|a, b| of(b).total_cmp(&of(a)).then(is_there(b).cmp(&is_there(a))));
    let rounds = groups.len().div_ceil((close_cores + far_cores).max(1));
    let rest = ranked.split_off((rounds * close_cores).min(ranked.len()));
    for group in &mut ranked {
        group.reason = format!("near the memory; {}", group.reason).into();
    }
    slots.assign(view, &close, &ranked, placement);
    slots.assign(view, &far, &rest, placement);
}

/// Does a node with CPUs have no memory?
pub(crate) fn lacks_memory(topology: &Topology) -> bool {
    topology.nodes().iter().any(|node| !node.cpus.is_empty() && node.memory_bytes == Some(0))
}

#[cfg(test)]
mod tests;
