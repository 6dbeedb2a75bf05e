//! The cores and memory of a machine in another arrangement.
//!
//! Of the other topology are packages, nodes, LLC domains, which cores there are of which type, and their hardware
//! threads. All that a core, a cache and a memory can do stays that of the description; caches of a domain have the
//! size of the described ones. Where cores of one type differ in capacity, the slower ones are clocked down by as much.

use symbiont_topology::{Core, CoreKind, HardwareThread, NodeId, NumaNode, Origin, Topology};

use super::{Arrangement, Description};

impl Description {
    /// This machine's cores and memory, arranged as another topology has them. Nodes without CPUs are left out, and
    /// neither the check by the cycle level nor measurements count for what comes of it.
    ///
    /// # Errors
    /// When the description has nothing to say of a core type, of so many hardware threads on a core, or of links
    /// between nodes.
    pub fn arranged(mut self, topology: &Topology) -> Result<Self, Arrangement> {
        let machine = || self.name.clone();
        for core in topology.cores() {
            let described = self.topology.cores().iter().filter(|own| own.kind == core.kind);
            let Some(widest) = described.map(|own| own.cpus.len()).max() else {
                let core_type = core.kind;
                return Err(Arrangement::CoreType { machine: machine(), core_type });
            };
            if core.cpus.len() > widest {
                let asked = core.cpus.len();
                return Err(Arrangement::Smt { machine: machine(), smt: widest, asked });
            }
        }
        let nodes: Vec<NumaNode> =
            topology.nodes().iter().filter(|node| !node.cpus.is_empty()).cloned().collect();
        if nodes.len() > 1 && self.topology.nodes().len() < 2 {
            return Err(Arrangement::Links { machine: machine(), nodes: nodes.len() });
        }
        let has_memory = |node: &&NumaNode| node.memory_bytes.is_some_and(|bytes| bytes > 0);
        let ids = |nodes: &mut dyn Iterator<Item = &NumaNode>| -> Vec<NodeId> {
            nodes.map(|node| node.id).collect()
        };
        let with_memory = ids(&mut nodes.iter().filter(has_memory));
        self.memory.nodes =
            if with_memory.is_empty() { ids(&mut nodes.iter()) } else { with_memory };

        let threads: Vec<HardwareThread> = topology
            .hardware_threads()
            .into_iter()
            .map(|thread| HardwareThread {
                max_khz: self.slowed(topology, thread.kind, thread.capacity),
                ..thread
            })
            .collect();
        self.title = format!("{}, arranged as {}", self.title, named(topology.origin()));
        self.topology = Topology::new(topology.origin().clone(), threads, nodes)?;
        let used = |kind| self.topology.cores().iter().any(|core| core.kind == kind);
        self.core_types.retain(|core| used(core.kind));
        (self.checked, self.held) = (None, None);
        Ok(self)
    }

    /// The clock of a core that has less capacity than others of its type.
    fn slowed(&self, topology: &Topology, kind: CoreKind, capacity: u32) -> Option<u64> {
        let of_kind = |core: &&Core| core.kind == kind;
        let largest = topology.cores().iter().filter(of_kind).map(|core| core.capacity).max()?;
        let ghz = self.core_type(kind)?.ghz;
        let share = f64::from(capacity) / f64::from(largest.max(1));
        (capacity < largest).then_some((ghz * 1e6 * share).round() as u64)
    }
}

fn named(origin: &Origin) -> String {
    match origin {
        Origin::Host => "this machine".to_owned(),
        Origin::SysTree(path) | Origin::HwlocXml(path) => format!("in {path}"),
        Origin::Synthetic(line) => format!("'{line}'"),
    }
}
