//! The topology that Symbiont reads is the one that the guest was given.

use symbiont_topology::{CpuSet, HostTopology};

use crate::given::Given;

/// CPUs by group, in ascending order, whatever the groups are called.
fn groups<'a>(sets: impl Iterator<Item = &'a CpuSet>) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = sets.map(|set| set.iter().map(|pu| pu.0).collect()).collect();
    groups.sort();
    groups
}

pub fn as_given(given: &Given) {
    let host = HostTopology::read().unwrap();
    assert_eq!(groups(host.cores().iter().map(|core| &core.cpus)), given.cores, "cores");
    assert_eq!(groups(host.llcs().iter().map(|llc| &llc.cpus)), given.llcs, "LLC domains");
    assert_eq!(groups(host.nodes().iter().map(|node| &node.cpus)), given.nodes, "NUMA nodes");
    let memory: Vec<bool> = host.nodes().iter().map(|node| node.memory_bytes != Some(0)).collect();
    let given_memory: Vec<bool> = given.memory_mib.iter().map(|mib| *mib > 0).collect();
    assert_eq!(memory, given_memory, "nodes with memory");
    let packages = groups(host.packages().iter().map(|package| &package.cpus));
    assert_eq!(packages, given.packages, "packages");
    for core in host.cores() {
        let cpus: Vec<u32> = core.cpus.iter().map(|pu| pu.0).collect();
        let position = given.cores.iter().position(|given| *given == cpus).unwrap();
        assert_eq!(core.capacity, given.capacities[position], "capacity of the core of {cpus:?}");
    }
}
