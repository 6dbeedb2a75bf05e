//! The machine as its threads share it: pipelines, caches, memory.
//!
//! # Approach
//! [`Physics`] is made once from a description: for each core its type, clock and node, and for each
//! [`CacheLevel`] the cache instance that it uses. Two threads share a cache if their cores name the same
//! instance.

use symbiont_topology::NodeId;

use super::pipeline::{CacheLevel, CoreSharing, Pipeline, REACHES};
use crate::description::{CoreType, Description, Scope};

/// Utilisation by others is capped at this for queueing: threads with few misses in
/// flight each cannot queue for longer.
pub const BUSIEST: f64 = 0.9;

/// In the order in which pipelines are kept.
const SHARINGS: [CoreSharing; 2] = [CoreSharing::Alone, CoreSharing::Others];

/// Size of the pages that profiles count, bytes.
const PROFILE_PAGE: u64 = 4096;

/// A cache or translation buffer that a core uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instance {
    /// Lines, pages or streams that it holds.
    pub lines: f64,
    /// The first core that shares it; none: each thread has one.
    pub shared: Option<usize>,
}

/// A core of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct CorePlace {
    /// Index of its core type in the description.
    pub core_type: usize,
    /// Clock, 10⁹ cycles per second.
    pub ghz: f64,
    /// Index of its node in the topology.
    pub node: usize,
    /// Index of the node that holds its threads' memory unless specified otherwise: its own, or
    /// the first with memory.
    pub home: usize,
    /// By [`CacheLevel`]; at [`CacheLevel::Last`] its L3, or its L2 where there is none.
    pub caches: [Instance; REACHES],
}

/// A core type as its cores are placed.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreTypePlace {
    /// Slowest and fastest clock, 10⁹ cycles per second.
    pub ghz: (f64, f64),
    /// Hardware threads of the machine.
    pub threads: f64,
    /// By [`CacheLevel`].
    pub caches: [SharedBy; REACHES],
}

/// How many threads share a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedBy {
    /// Lines or pages it holds.
    pub lines: f64,
    /// Cores that share it.
    pub cores: usize,
    /// Has each hardware thread one of its own?
    pub per_thread: bool,
}

/// Memory and links, of all nodes alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryPlace {
    /// Unloaded latency of the own node, ns.
    pub latency: f64,
    /// Remote latency over local.
    pub remote: f64,
    /// 10⁹ bytes per second that a node reads at most.
    pub read: f64,
    /// 10⁹ bytes per second that it writes at most.
    pub write: f64,
    /// 10⁹ bytes per second that it reads and writes at most, together.
    pub total: f64,
    /// 10⁹ bytes per second that a link between two nodes brings.
    pub link: f64,
    /// 10⁹ bytes per second that it takes away.
    pub link_write: f64,
    /// How many nodes there are.
    pub nodes: f64,
}

impl MemoryPlace {
    /// Ns between two lines of a node, if of each line that comes the share `written` is
    /// written back.
    #[must_use]
    pub fn interval(&self, line: f64, written: f64) -> f64 {
        let both = line * (1.0 + written) / self.total;
        both.max(line / self.read).max(line * written / self.write)
    }

    /// The same of a link.
    #[must_use]
    pub fn link_interval(&self, line: f64, written: f64) -> f64 {
        f64::max(line / self.link, line * written / self.link_write)
    }

    /// The longest mean latency there can be, ns: remote, with full queues.
    #[must_use]
    pub fn longest(&self, line: f64) -> f64 {
        let queue = |bandwidth: f64| line / bandwidth * BUSIEST / (2.0 * (1.0 - BUSIEST));
        let far = if self.nodes > 1.0 { queue(self.link) } else { 0.0 };
        let remote = if self.nodes > 1.0 { self.remote } else { 1.0 };
        self.latency * remote + queue(self.read) + far
    }
}

/// A described machine, as the fixed point sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Physics {
    /// By core of the topology.
    pub cores: Vec<CorePlace>,
    /// By core type, then SMT mode − 1: alone, and with co-runners.
    pub pipelines: Vec<Vec<[Pipeline; 2]>>,
    /// By core type.
    pub core_types: Vec<CoreTypePlace>,
    /// Memory and links.
    pub memory: MemoryPlace,
    /// Nodes of the topology.
    pub nodes: Vec<NodeId>,
}

impl Physics {
    /// Of a described machine.
    #[must_use]
    pub fn new(machine: &Description) -> Self {
        let topology = &machine.topology;
        let nodes: Vec<_> = topology.nodes().iter().map(|node| node.id).collect();
        let threads = u32::try_from(topology.smt_width().max(1)).unwrap_or(1);
        let both =
            |core: &CoreType, mode| SHARINGS.map(|sharing| Pipeline::new(core, mode, sharing));
        let modes = |core: &CoreType| (1..=threads).map(|mode| both(core, mode)).collect();
        let cores = topology.cores().iter().enumerate().map(|(index, core)| {
            let core_type =
                machine.core_types.iter().position(|core_type| core_type.kind == core.kind);
            let core_type = core_type.unwrap_or_default();
            let place = CorePosition {
                core: index,
                first: topology.cores().iter().position(|c| c.kind == core.kind).unwrap_or(index),
                llc: topology.cores().iter().position(|c| c.llc == core.llc).unwrap_or(index),
            };
            let index_of = |wanted: NodeId| nodes.iter().position(|node| *node == wanted);
            let node = index_of(core.node).unwrap_or_default();
            let with_memory = &machine.memory.nodes;
            let first = with_memory.first().and_then(|node| index_of(*node)).unwrap_or(node);
            CorePlace {
                core_type,
                ghz: machine.hertz(core) / 1e9,
                node,
                home: if with_memory.contains(&core.node) { node } else { first },
                caches: machine.core_types.get(core_type).map_or_else(
                    || [Instance { lines: 1.0, shared: None }; REACHES],
                    |core_type| caches(core_type, place),
                ),
            }
        });
        let cores: Vec<CorePlace> = cores.collect();
        let all = cores.len() as f64 * f64::from(threads);
        let core_types =
            (0..machine.core_types.len()).map(|core_type| core_type_place(&cores, core_type, all));
        Self {
            core_types: core_types.collect(),
            pipelines: machine.core_types.iter().map(modes).collect(),
            memory: MemoryPlace {
                latency: machine.memory.latency_ns,
                remote: machine.memory.remote_latency,
                read: machine.memory.read_gbps,
                write: machine.memory.write_gbps,
                total: machine.memory.total_gbps,
                link: machine.memory.link_gbps,
                link_write: machine.memory.link_write_gbps,
                nodes: nodes.len() as f64,
            },
            cores,
            nodes,
        }
    }

    /// A core's pipeline in an SMT mode; modes beyond the widest count as that.
    #[must_use]
    pub fn pipeline(&self, core_type: usize, mode: u32, sharing: CoreSharing) -> Option<&Pipeline> {
        let modes = self.pipelines.get(core_type)?;
        let [alone, others] = modes.get((mode.max(1) as usize).min(modes.len()) - 1)?;
        Some(if sharing == CoreSharing::Alone { alone } else { others })
    }
}

/// What the cores of a type have in common.
fn core_type_place(cores: &[CorePlace], core_type: usize, threads: f64) -> CoreTypePlace {
    let mine: Vec<_> = cores.iter().filter(|core| core.core_type == core_type).collect();
    let clocks = mine.iter().map(|core| core.ghz);
    let sharers = |level: CacheLevel| {
        let of = |core: &CorePlace| core.caches[level as usize];
        let cache = mine.first().map_or(Instance { lines: 1.0, shared: None }, |core| of(core));
        let alike = cores.iter().filter(|core| of(core).shared == cache.shared).count();
        SharedBy {
            lines: cache.lines,
            cores: if cache.shared.is_some() { alike.max(1) } else { 1 },
            per_thread: cache.shared.is_none(),
        }
    };
    CoreTypePlace {
        ghz: (clocks.clone().fold(f64::INFINITY, f64::min), clocks.fold(0.0, f64::max)),
        threads,
        caches: CacheLevel::ALL.map(sharers),
    }
}

/// A core among others: its index, the first of its type, the first of its LLC domain.
#[derive(Debug, Clone, Copy)]
struct CorePosition {
    core: usize,
    first: usize,
    llc: usize,
}

/// The instances that a core uses, by level.
fn caches(core_type: &CoreType, place: CorePosition) -> [Instance; REACHES] {
    let instance = |lines: u64, scope| {
        let shared = match scope {
            Scope::Thread => None,
            Scope::Core => Some(place.core),
            // Neighbours of the same type.
            Scope::Cores(count) => {
                Some(place.core - (place.core - place.first) % count.max(1) as usize)
            }
            Scope::Llc => Some(place.llc),
        };
        Instance { lines: lines as f64, shared }
    };
    // Neighbouring pages of the profile lie in one page of the machine.
    let pages = |entries: u32| u64::from(entries) * (core_type.tlb.page / PROFILE_PAGE).max(1);
    let second = core_type.tlb.second.unwrap_or(core_type.tlb.data);
    let last = core_type.l3.unwrap_or(core_type.l2);
    CacheLevel::ALL.map(|level| match level {
        CacheLevel::L1d => instance(core_type.l1d.lines(), core_type.l1d.scope),
        CacheLevel::L1i => instance(core_type.l1i.lines(), core_type.l1i.scope),
        CacheLevel::L2 => instance(core_type.l2.lines(), core_type.l2.scope),
        CacheLevel::Last => instance(last.lines(), last.scope),
        CacheLevel::DataTlb => {
            instance(pages(core_type.tlb.data.entries), core_type.tlb.data.scope)
        }
        CacheLevel::CodeTlb => {
            instance(pages(core_type.tlb.instruction.entries), core_type.tlb.instruction.scope)
        }
        CacheLevel::Tlb2 => instance(pages(second.entries), second.scope),
        CacheLevel::Streams => instance(core_type.prefetch_streams.max(1).into(), Scope::Core),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_small_cores_share_no_cache_with_large_ones() {
        let physics = Physics::new(&Description::named("alder-lake").unwrap());
        let l2 = |core: usize| physics.cores[core].caches[CacheLevel::L2 as usize].shared;
        let last = |core: usize| physics.cores[core].caches[CacheLevel::Last as usize].shared;
        let small =
            physics.cores.iter().position(|core| core.core_type != physics.cores[0].core_type);
        let small = small.unwrap();
        for large in 0..small {
            assert_eq!(l2(large), Some(large));
        }
        for core in small..physics.cores.len() {
            assert_eq!(l2(core), Some(small + (core - small) / 4 * 4));
            assert_eq!(last(core), last(0));
        }
    }

    #[test]
    fn memory_of_a_node_without_lies_on_another() {
        let physics = Physics::new(&Description::named("power8-s812l").unwrap());
        assert!(physics.cores.iter().any(|core| core.node != core.home));
        assert!(physics.cores.iter().all(|core| core.home == 0));
    }

    #[test]
    fn threads_of_a_module_have_their_own_data_cache() {
        let physics = Physics::new(&Description::named("opteron-6282se").unwrap());
        let core = &physics.cores[0];
        assert_eq!(core.caches[CacheLevel::L1d as usize].shared, None);
        assert_eq!(core.caches[CacheLevel::L1i as usize].shared, Some(0));
        assert_eq!(
            physics.core_types[0].caches[CacheLevel::Last as usize].cores,
            physics.cores.len()
        );
    }
}
