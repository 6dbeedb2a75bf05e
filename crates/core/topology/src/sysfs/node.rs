//! NUMA nodes.
//!
//! *Distances.* A node's file has a number for each node that was online when it was read, in the
//! order of their numbers. `node/online` says which these are; where it is missing or does not fit, they are
//! those with a directory, else the possible ones. Numbers that fit none of these are left out.

use std::collections::BTreeMap;

use super::{Sys, value};
use crate::{CpuSet, NodeId, NumaNode, counted};

/// All nodes in order (their CPUs as listed, offline ones too), and the node
/// of CPUs that none of them lists.
pub(super) fn read(sys: &Sys<'_>) -> (Vec<NumaNode>, NodeId) {
    let there = sys.numbered("devices/system/node", "node");
    let fallback = NodeId(there.first().copied().unwrap_or(0));
    let listed =
        |name: &str| sys.list(&format!("devices/system/node/{name}")).map(|set| numbers(&set));
    let orders: Vec<Vec<u32>> =
        listed("online").into_iter().chain([there.clone()]).chain(listed("possible")).collect();
    (there.iter().map(|&n| read_one(sys, n, &there, &orders)).collect(), fallback)
}

fn numbers(set: &CpuSet) -> Vec<u32> {
    set.iter().map(|number| number.0).collect()
}

fn read_one(sys: &Sys<'_>, number: u32, there: &[u32], orders: &[Vec<u32>]) -> NumaNode {
    let file = |name: &str| format!("devices/system/node/node{number}/{name}");
    let by_number = |text: &str| {
        let distances = value::distances(text)?;
        let order = orders.iter().find(|order| order.len() == distances.len());
        let order = order.ok_or_else(|| {
            let distances = counted(distances.len(), "distance");
            format!("{distances} for {}", counted(there.len(), "node"))
        })?;
        let all = order.iter().map(|&n| NodeId(n)).zip(distances);
        Ok(all.filter(|(to, _)| there.contains(&to.0)).collect::<BTreeMap<_, _>>())
    };
    NumaNode {
        id: NodeId(number),
        cpus: sys
            .list_or_map(&file("cpulist"), &file("cpumap"))
            .map(|(_, cpus)| cpus)
            .unwrap_or_default(),
        memory_bytes: sys.value(&file("meminfo"), value::memory_total),
        distances: sys.value(&file("distance"), by_number).unwrap_or_default(),
    }
}
