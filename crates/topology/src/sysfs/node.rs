//! NUMA nodes.

use super::{Sys, SysfsError, value};
use crate::{NodeId, NumaNode};

/// All nodes in order (their CPUs as listed, offline ones too), and the node
/// of CPUs that none of them lists.
pub(super) fn read(sys: &Sys<'_>) -> Result<(Vec<NumaNode>, NodeId), SysfsError> {
    let numbers = sys.numbered("devices/system/node", "node")?;
    let fallback = NodeId(numbers.first().copied().unwrap_or(0));
    let nodes = numbers.iter().map(|&n| read_one(sys, n, &numbers)).collect::<Result<_, _>>()?;
    Ok((nodes, fallback))
}

fn read_one(sys: &Sys<'_>, number: u32, all: &[u32]) -> Result<NumaNode, SysfsError> {
    let file = |name: &str| format!("devices/system/node/node{number}/{name}");
    let as_many_as_nodes = |text: &str| {
        let distances = value::distances(text)?;
        if distances.len() == all.len() {
            Ok(distances)
        } else {
            Err(format!("{} distances for {} nodes", distances.len(), all.len()))
        }
    };
    let distances = sys.value(&file("distance"), as_many_as_nodes)?.unwrap_or_default();
    Ok(NumaNode {
        id: NodeId(number),
        cpus: sys.list(&file("cpulist"))?.unwrap_or_default(),
        memory_bytes: sys.value(&file("meminfo"), value::memory_total)?,
        distances: all.iter().map(|&n| NodeId(n)).zip(distances).collect(),
    })
}
