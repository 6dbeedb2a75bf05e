//! Questions that policies and readers of a topology ask.

use std::cmp::Reverse;

use crate::{Core, CoreId, CpuSet, HardwareThread, Llc, LlcId, NodeId, NumaNode, PuId, Topology};

impl Topology {
    /// A core by its index.
    #[must_use]
    pub fn core(&self, id: CoreId) -> Option<&Core> {
        self.cores().get(id.0 as usize)
    }

    /// An LLC domain by its index.
    #[must_use]
    pub fn llc(&self, id: LlcId) -> Option<&Llc> {
        self.llcs().get(id.0 as usize)
    }

    /// A NUMA node by the OS's number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&NumaNode> {
        self.nodes().binary_search_by_key(&id, |n| n.id).ok().and_then(|at| self.nodes().get(at))
    }

    /// The hardware threads of the core that `pu` belongs to, itself included;
    /// none if it is not online here.
    #[must_use]
    pub fn siblings(&self, pu: PuId) -> Option<&CpuSet> {
        self.core_of(pu).map(|core| &core.cpus)
    }

    /// The LLC domain of a hardware thread; none if it is not online here.
    #[must_use]
    pub fn llc_of(&self, pu: PuId) -> Option<&Llc> {
        self.core_of(pu).and_then(|core| self.llc(core.llc))
    }

    /// The NUMA node of a hardware thread; none if it is not online here.
    #[must_use]
    pub fn node_of(&self, pu: PuId) -> Option<&NumaNode> {
        self.core_of(pu).and_then(|core| self.node(core.node))
    }

    /// All cores, fastest first: by capacity, then core type, then frequency
    /// ceiling, then index.
    #[must_use]
    pub fn cores_by_speed(&self) -> Vec<&Core> {
        let mut cores: Vec<&Core> = self.cores().iter().collect();
        cores.sort_by_key(|c| (Reverse(c.capacity), c.kind, Reverse(c.max_khz), c.id));
        cores
    }

    /// The flat form: what [`Topology::new`] makes the same tree from.
    #[must_use]
    pub fn hardware_threads(&self) -> Vec<HardwareThread> {
        let of_core = |core: &Core| {
            let first = HardwareThread {
                pu: PuId(0),
                core: core.id.0,
                llc: core.llc.0,
                llc_bytes: self.llc(core.llc).and_then(|llc| llc.bytes),
                node: core.node,
                package: core.package,
                kind: core.kind,
                capacity: core.capacity,
                max_khz: core.max_khz,
            };
            core.cpus
                .iter()
                .map(move |pu| HardwareThread { pu, ..first.clone() })
                .collect::<Vec<_>>()
        };
        self.cores().iter().flat_map(of_core).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_hardware_thread_finds_what_it_shares() {
        let t = Topology::synthetic("package:2 llc:2 core:2 smt:2").unwrap();
        let (first, last, offline) = (PuId(0), PuId(15), PuId(16));
        assert_eq!(t.siblings(first), Some(&set("0-1")));
        assert_eq!(t.siblings(last), Some(&set("14-15")));
        assert_eq!(t.llc_of(first).unwrap().cpus, set("0-3"));
        assert_eq!(t.node_of(last).unwrap().cpus, set("8-15"));
        assert_eq!(t.core(CoreId(7)).unwrap().cpus, set("14-15"));
        assert!(t.core(CoreId(8)).is_none());
        assert!(t.siblings(offline).is_none());
        assert!(t.llc_of(offline).is_none());
        assert!(t.node_of(offline).is_none());
    }

    #[test]
    fn fast_cores_come_first() {
        let t = Topology::synthetic(
            "core:2 kind:efficiency capacity:600 | core:1 mhz:4000 | core:2 mhz:5000",
        )
        .unwrap();
        let order: Vec<u32> = t.cores_by_speed().iter().map(|c| c.id.0).collect();
        assert_eq!(order, [3, 4, 2, 0, 1]);
    }
}
