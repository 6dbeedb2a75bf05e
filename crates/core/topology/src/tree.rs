//! The tree itself and the one way to build it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::CpuSet;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// A hardware thread, by the OS's CPU number.
    PuId "cpu";
    /// A core: index into [`Topology::cores`].
    CoreId "core";
    /// A last-level-cache domain: index into [`Topology::llcs`].
    LlcId "llc";
    /// A NUMA node, by the OS's number.
    NodeId "node";
    /// A package (socket), by the OS's number.
    PackageId "package";
}

/// The type of a core, where a machine mixes types.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum CoreKind {
    /// The only type of this machine, or the fast one (Intel P-core, Arm big).
    #[default]
    Performance,
    /// The slower, smaller type (Intel E-core, Arm LITTLE).
    Efficiency,
}

impl CoreKind {
    /// The word that files and messages use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::Efficiency => "efficiency",
        }
    }
}

/// One online hardware thread and its place in the tree: the flat form that every
/// reader (sysfs, hwloc, synthetic) produces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HardwareThread {
    /// The OS's CPU number.
    pub pu: PuId,
    /// Hardware threads with the same key share a core. The key is any number
    /// that is unique on the machine, e.g. the lowest CPU number of the core.
    pub core: u32,
    /// Hardware threads with the same key share a last-level cache.
    pub llc: u32,
    /// Size of that cache in bytes, where known.
    pub llc_bytes: Option<u64>,
    /// NUMA node.
    pub node: NodeId,
    /// Package.
    pub package: PackageId,
    /// Core type.
    pub kind: CoreKind,
    /// Speed relative to the machine's fastest core, 1 to 1024.
    pub capacity: u32,
    /// Frequency ceiling in kHz, where known.
    pub max_khz: Option<u64>,
}

/// A core: hardware threads that share execution units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Its index.
    pub id: CoreId,
    /// Its hardware threads.
    pub cpus: CpuSet,
    /// Its package.
    pub package: PackageId,
    /// Its NUMA node.
    pub node: NodeId,
    /// Its LLC domain.
    pub llc: LlcId,
    /// Its type.
    pub kind: CoreKind,
    /// Speed relative to the machine's fastest core, 1 to 1024.
    pub capacity: u32,
    /// Frequency ceiling in kHz, where known.
    pub max_khz: Option<u64>,
}

/// Cores that share a last-level cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Llc {
    /// Its index.
    pub id: LlcId,
    /// Its hardware threads.
    pub cpus: CpuSet,
    /// Size in bytes, where known.
    pub bytes: Option<u64>,
}

/// A NUMA node. A node without CPUs has memory only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// The OS's number.
    pub id: NodeId,
    /// Its hardware threads.
    pub cpus: CpuSet,
    /// Memory in bytes, where known.
    pub memory_bytes: Option<u64>,
    /// Distance to each node as the firmware reports it (10 = local), where known.
    pub distances: BTreeMap<NodeId, u32>,
}

/// A package (socket).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// The OS's number.
    pub id: PackageId,
    /// Its hardware threads.
    pub cpus: CpuSet,
}

/// Where a topology came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The running host.
    Host,
    /// A copy of some machine's `/sys` tree at this path.
    SysTree(String),
    /// A synthetic description, as written.
    Synthetic(String),
    /// An hwloc XML export at this path.
    HwlocXml(String),
}

/// A machine's structure. Read-only once built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Topology {
    origin: Origin,
    cores: Vec<Core>,
    llcs: Vec<Llc>,
    nodes: Vec<NumaNode>,
    packages: Vec<Package>,
    /// In order of the hardware threads.
    #[serde(skip)]
    core_of: Vec<(PuId, CoreId)>,
}

/// A topology as it was written out; only one that is a tree is read back.
#[derive(Deserialize)]
struct Written {
    origin: Origin,
    cores: Vec<Core>,
    llcs: Vec<Llc>,
    nodes: Vec<NumaNode>,
    packages: Vec<Package>,
}

impl TryFrom<Written> for Topology {
    type Error = TopologyError;

    fn try_from(written: Written) -> Result<Self, TopologyError> {
        let Written { origin, cores, llcs, nodes, packages } = written;
        let as_written = Self { origin, cores, llcs, nodes, packages, core_of: Vec::new() };
        let rebuilt = Self::new(
            as_written.origin.clone(),
            as_written.hardware_threads(),
            as_written.nodes.clone(),
        )?;
        let same = Self { core_of: rebuilt.core_of.clone(), ..as_written } == rebuilt;
        same.then_some(rebuilt).ok_or(TopologyError::NoTree)
    }
}

/// A list of hardware threads that describes no machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// No hardware thread at all.
    #[error("the machine has no hardware thread")]
    Empty,
    /// The same CPU number twice.
    #[error("{0} is listed twice")]
    Twice(PuId),
    /// Two hardware threads of one core disagree about something.
    #[error("{pu} disagrees with {first} of the same core about its {what}")]
    SplitCore {
        /// The hardware thread that disagrees.
        pu: PuId,
        /// The first hardware thread of the core.
        first: PuId,
        /// What they disagree about.
        what: &'static str,
    },
    /// A capacity outside 1 to 1024.
    #[error("{pu} has capacity {capacity}; it must be 1 to 1024")]
    Capacity {
        /// The hardware thread.
        pu: PuId,
        /// Its capacity.
        capacity: u32,
    },
    /// No core is the fastest.
    #[error("no core has capacity 1024, which stands for the fastest")]
    NoFastest,
    /// A written topology whose levels contradict each other.
    #[error("the cores, LLC domains, NUMA nodes and packages do not make one tree")]
    NoTree,
}

impl Topology {
    /// Builds the tree from its hardware threads. `memory` describes NUMA
    /// nodes (their CPUs are filled in here, and nodes that only hardware
    /// threads name are added).
    ///
    /// # Errors
    /// When the list is empty, names a CPU twice, gives a capacity out of
    /// range or to none the highest, or has a core that lies in two packages,
    /// nodes or LLC domains.
    pub fn new(
        origin: Origin,
        mut threads: Vec<HardwareThread>,
        memory: Vec<NumaNode>,
    ) -> Result<Self, TopologyError> {
        threads.sort();
        check(&threads)?;
        let llc_index = indices(threads.iter().map(|t| (t.llc, t.pu)));
        let core_index = indices(threads.iter().map(|t| (t.core, t.pu)));

        let mut nodes: BTreeMap<NodeId, NumaNode> =
            memory.into_iter().map(|n| (n.id, NumaNode { cpus: CpuSet::new(), ..n })).collect();
        let mut packages: BTreeMap<PackageId, Package> = BTreeMap::new();
        let mut llcs: BTreeMap<LlcId, Llc> = BTreeMap::new();
        let mut cores: BTreeMap<CoreId, Core> = BTreeMap::new();
        let mut core_of = Vec::with_capacity(threads.len());
        for t in &threads {
            let llc = LlcId(llc_index[&t.llc]);
            let core = CoreId(core_index[&t.core]);
            core_of.push((t.pu, core));
            nodes.entry(t.node).or_insert_with(|| bare_node(t.node)).cpus.insert(t.pu);
            let package = Package { id: t.package, cpus: CpuSet::new() };
            packages.entry(t.package).or_insert(package).cpus.insert(t.pu);
            let domain = Llc { id: llc, cpus: CpuSet::new(), bytes: t.llc_bytes };
            llcs.entry(llc).or_insert(domain).cpus.insert(t.pu);
            let whole = Core {
                id: core,
                cpus: CpuSet::new(),
                package: t.package,
                node: t.node,
                llc,
                kind: t.kind,
                capacity: t.capacity,
                max_khz: t.max_khz,
            };
            cores.entry(core).or_insert(whole).cpus.insert(t.pu);
        }
        core_of.sort_unstable();
        Ok(Self {
            origin,
            cores: cores.into_values().collect(),
            llcs: llcs.into_values().collect(),
            nodes: nodes.into_values().collect(),
            packages: packages.into_values().collect(),
            core_of,
        })
    }

    /// Where this description came from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// All cores; `cores()[i].id == CoreId(i)`, ordered by lowest CPU number.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// All LLC domains; `llcs()[i].id == LlcId(i)`, ordered by lowest CPU number.
    #[must_use]
    pub fn llcs(&self) -> &[Llc] {
        &self.llcs
    }

    /// All NUMA nodes by number, those without CPUs included.
    #[must_use]
    pub fn nodes(&self) -> &[NumaNode] {
        &self.nodes
    }

    /// All packages by number.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// All online hardware threads.
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        self.core_of.iter().map(|(pu, _)| *pu).collect()
    }

    /// The core of a hardware thread; none if it is not online here.
    #[must_use]
    pub fn core_of(&self, pu: PuId) -> Option<&Core> {
        let at = self.core_of.binary_search_by_key(&pu, |(pu, _)| *pu).ok()?;
        self.core_of.get(at).and_then(|(_, core)| self.cores.get(core.0 as usize))
    }

    /// Largest number of hardware threads in a core: n of SMTn.
    #[must_use]
    pub fn smt_width(&self) -> usize {
        self.cores.iter().map(|c| c.cpus.len()).max().unwrap_or(1)
    }
}

impl Topology {
    /// The same machine with the cores of these hardware threads so many times
    /// as slow as it says. The fastest core has capacity 1024 again.
    pub(crate) fn slowed(mut self, factors: &BTreeMap<PuId, f64>) -> Self {
        let factor = |core: &Core| -> f64 {
            core.cpus.iter().filter_map(|pu| factors.get(&pu)).fold(1.0, |most, f| most.max(*f))
        };
        let speeds: Vec<f64> =
            self.cores.iter().map(|core| f64::from(core.capacity) / factor(core)).collect();
        let fastest = speeds.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (core, speed) in self.cores.iter_mut().zip(&speeds) {
            // 0 to 1024: no cast is out of range.
            core.capacity = ((1024.0 * speed / fastest).round() as u32).max(1);
        }
        self
    }
}

fn bare_node(id: NodeId) -> NumaNode {
    NumaNode { id, cpus: CpuSet::new(), memory_bytes: None, distances: BTreeMap::new() }
}

/// Numbers keys 0, 1, … by the lowest hardware thread that carries them.
fn indices(keys: impl Iterator<Item = (u32, PuId)>) -> BTreeMap<u32, u32> {
    let mut lowest: BTreeMap<u32, PuId> = BTreeMap::new();
    for (key, pu) in keys {
        let low = lowest.entry(key).or_insert(pu);
        *low = pu.min(*low);
    }
    let order: BTreeSet<(PuId, u32)> = lowest.into_iter().map(|(key, pu)| (pu, key)).collect();
    order.into_iter().zip(0u32..).map(|((_, key), index)| (key, index)).collect()
}

fn check(threads: &[HardwareThread]) -> Result<(), TopologyError> {
    if threads.is_empty() {
        return Err(TopologyError::Empty);
    }
    if threads.iter().all(|t| (1..1024).contains(&t.capacity)) {
        return Err(TopologyError::NoFastest);
    }
    let mut seen = BTreeSet::new();
    let mut first_of: BTreeMap<u32, &HardwareThread> = BTreeMap::new();
    for t in threads {
        if !seen.insert(t.pu) {
            return Err(TopologyError::Twice(t.pu));
        }
        if !(1..=1024).contains(&t.capacity) {
            return Err(TopologyError::Capacity { pu: t.pu, capacity: t.capacity });
        }
        let first = *first_of.entry(t.core).or_insert(t);
        let split = |what| TopologyError::SplitCore { pu: t.pu, first: first.pu, what };
        if t.package != first.package {
            return Err(split("package"));
        }
        if t.node != first.node {
            return Err(split("NUMA node"));
        }
        if t.llc != first.llc {
            return Err(split("last-level cache"));
        }
        if (t.kind, t.capacity) != (first.kind, first.capacity) {
            return Err(split("core type"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `cores` cores of `smt` hardware threads, siblings numbered a core apart
    /// as Linux numbers them on x86, `cores_per_llc` cores to an LLC and node.
    fn machine(cores: u32, smt: u32, cores_per_llc: u32) -> Vec<HardwareThread> {
        (0..cores * smt)
            .map(|cpu| HardwareThread {
                pu: PuId(cpu),
                core: cpu % cores,
                llc: cpu % cores / cores_per_llc,
                llc_bytes: Some(8 << 20),
                node: NodeId(cpu % cores / cores_per_llc),
                package: PackageId(0),
                kind: CoreKind::Performance,
                capacity: 1024,
                max_khz: None,
            })
            .collect()
    }

    proptest! {
        #[test]
        fn levels_partition_the_machine(cores in 1u32..12, smt in 1u32..9, per_llc in 1u32..5) {
            let t = Topology::new(Origin::Host, machine(cores, smt, per_llc), vec![]).unwrap();
            prop_assert_eq!(t.cores().len(), cores as usize);
            prop_assert_eq!(t.smt_width(), smt as usize);
            for sets in [
                t.cores().iter().map(|c| &c.cpus).collect::<Vec<_>>(),
                t.llcs().iter().map(|l| &l.cpus).collect(),
                t.nodes().iter().map(|n| &n.cpus).collect(),
                t.packages().iter().map(|p| &p.cpus).collect(),
            ] {
                let union = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
                prop_assert_eq!(&union, &t.cpus());
                prop_assert_eq!(sets.iter().map(|s| s.len()).sum::<usize>(), union.len());
            }
            for core in t.cores() {
                prop_assert!(core.cpus.is_subset(&t.llcs()[core.llc.0 as usize].cpus));
                for pu in core.cpus.iter() {
                    prop_assert_eq!(t.core_of(pu).unwrap().id, core.id);
                }
            }
        }

        #[test]
        fn order_of_the_list_does_not_matter(
            list in Just(machine(6, 2, 3)).prop_shuffle(),
        ) {
            let built = Topology::new(Origin::Host, list, vec![]).unwrap();
            let straight = Topology::new(Origin::Host, machine(6, 2, 3), vec![]).unwrap();
            prop_assert_eq!(built, straight);
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let build = |list| Topology::new(Origin::Host, list, vec![]);
        assert_eq!(build(vec![]), Err(TopologyError::Empty));

        let mut list = machine(2, 2, 2);
        list[1].pu = PuId(0);
        assert_eq!(build(list), Err(TopologyError::Twice(PuId(0))));

        let mut list = machine(2, 2, 2);
        list[2].node = NodeId(7);
        let error = build(list).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cpu2 disagrees with cpu0 of the same core about its NUMA node"
        );

        let mut list = machine(2, 2, 2);
        list[3].capacity = 0;
        assert!(matches!(build(list), Err(TopologyError::Capacity { .. })));

        let slow = |t| HardwareThread { capacity: 600, ..t };
        let list = machine(2, 2, 2).into_iter().map(slow).collect();
        assert_eq!(build(list), Err(TopologyError::NoFastest));
    }

    #[test]
    fn what_is_written_is_read_back_and_damage_is_refused() {
        let t = Topology::new(Origin::Host, machine(6, 2, 3), vec![]).unwrap();
        let text = serde_json::to_string(&t).unwrap();
        assert_eq!(serde_json::from_str::<Topology>(&text).unwrap(), t);
        for (there, damage) in [
            (r#""llc":1"#, r#""llc":7"#),
            (r#""cpus":"0,6""#, r#""cpus":"0,7""#),
            (r#""cpus":"0-11""#, r#""cpus":"0-10""#),
            (r#""capacity":1024"#, r#""capacity":0"#),
        ] {
            assert!(text.contains(there), "{there} in {text}");
            let damaged = text.replacen(there, damage, 1);
            assert!(serde_json::from_str::<Topology>(&damaged).is_err(), "{damage}");
        }
    }

    #[test]
    fn nodes_without_cpus_are_kept() {
        let memory_only = NumaNode { memory_bytes: Some(1 << 30), ..bare_node(NodeId(9)) };
        let t = Topology::new(Origin::Host, machine(2, 1, 2), vec![memory_only]).unwrap();
        assert_eq!(t.nodes().len(), 2);
        assert!(t.nodes()[1].cpus.is_empty());
    }
}
