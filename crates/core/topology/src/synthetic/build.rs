//! From the parsed line to the tree.

use super::{CoreGroup, Numbering, Synthetic};
use crate::{
    CpuSet, HardwareThread, NodeId, NumaNode, Origin, PackageId, PuId, Topology, TopologyError,
};

const LOCAL_DISTANCE: u32 = 10;
const REMOTE_DISTANCE: u32 = 20;

/// A core, by the group that describes it, and its place in the tree.
struct PlacedCore<'a> {
    package: PackageId,
    node: NodeId,
    llc: u32,
    llc_bytes: Option<u64>,
    group: &'a CoreGroup,
}

impl Synthetic {
    pub(super) fn build(&self, text: &str) -> Result<Topology, TopologyError> {
        let (cores, nodes) = self.lay_out();
        let threads: Vec<HardwareThread> = self
            .number(&cores)
            .into_iter()
            .zip(0u32..)
            .map(|(index, cpu)| (PuId(cpu), index))
            .filter(|(pu, _)| !self.offline.contains(*pu))
            .filter_map(|(pu, index)| Some(thread(pu, index, cores.get(index as usize)?)))
            .collect();
        Topology::new(Origin::Synthetic(text.to_owned()), threads, nodes)
    }

    /// All cores and all nodes, in order.
    fn lay_out(&self) -> (Vec<PlacedCore<'_>>, Vec<NumaNode>) {
        let mut cores = Vec::new();
        let mut memory = Vec::new();
        let mut llcs = 0..;
        let packages = self.packages.iter().flat_map(|p| repeat(p, p.count));
        for (package, number) in packages.zip(0u32..) {
            for node in package.nodes.iter().flat_map(|n| repeat(n, n.count)) {
                let id = NodeId(u32::try_from(memory.len()).unwrap_or(u32::MAX));
                memory.push(node.memory_bytes);
                for (llc, key) in node.llcs.iter().flat_map(|l| repeat(l, l.count)).zip(&mut llcs) {
                    let placed = |group| PlacedCore {
                        package: PackageId(number),
                        node: id,
                        llc: key,
                        llc_bytes: llc.bytes,
                        group,
                    };
                    cores.extend(llc.cores.iter().flat_map(|c| repeat(c, c.count)).map(placed));
                }
            }
        }
        (cores, nodes(&memory))
    }

    /// The index of the core of CPU 0, of CPU 1, and so on.
    fn number(&self, cores: &[PlacedCore<'_>]) -> Vec<u32> {
        let numbered = || (0u32..).zip(cores);
        match self.numbering {
            Numbering::Adjacent => numbered().flat_map(|(i, p)| repeat(i, p.group.smt)).collect(),
            Numbering::Spread => {
                let widest = cores.iter().map(|p| p.group.smt).max().unwrap_or(0);
                let with = |thread| numbered().filter(move |(_, p)| thread < p.group.smt);
                (0..widest).flat_map(|thread| with(thread).map(|(i, _)| i)).collect()
            }
        }
    }
}

fn repeat<T: Clone>(item: T, count: u32) -> impl Iterator<Item = T> {
    std::iter::repeat_n(item, count as usize)
}

fn thread(pu: PuId, number: u32, core: &PlacedCore<'_>) -> HardwareThread {
    HardwareThread {
        pu,
        core: number,
        llc: core.llc,
        llc_bytes: core.llc_bytes,
        node: core.node,
        package: core.package,
        kind: core.group.kind,
        capacity: core.group.capacity,
        max_khz: core.group.mhz.map(|mhz| u64::from(mhz) * 1000),
    }
}

fn nodes(memory: &[Option<u64>]) -> Vec<NumaNode> {
    let ids = || (0u32..).zip(memory).map(|(n, _)| NodeId(n));
    let distance = |a, b| if a == b { LOCAL_DISTANCE } else { REMOTE_DISTANCE };
    ids()
        .zip(memory)
        .map(|(id, &memory_bytes)| NumaNode {
            id,
            cpus: CpuSet::new(),
            memory_bytes,
            distances: ids().map(|other| (other, distance(id, other))).collect(),
        })
        .collect()
}
