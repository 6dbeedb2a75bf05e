//! The machine's hardware threads, by index.

use symbiont_topology::{NodeId, PuId, Topology};

use super::Generation;
use super::nodes::Nodes;

/// One hardware thread and what it belongs to, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuLocation {
    pub pu: PuId,
    pub core: usize,
    pub llc: usize,
    pub node: NodeId,
    pub capacity: u32,
}

/// All hardware threads, in the order of their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    places: Vec<CpuLocation>,
    cores: Vec<Vec<usize>>,
    nodes: Nodes,
}

impl Map {
    /// The older scheduler takes all hardware threads for alike.
    pub(crate) fn new(topology: &Topology, generation: Generation) -> Self {
        let mut places: Vec<CpuLocation> = Vec::new();
        let most = topology.cores().iter().map(|core| core.capacity).max().unwrap_or(1).max(1);
        for core in topology.cores() {
            let capacity = match generation {
                Generation::Today => core.capacity.max(1),
                Generation::Older => most,
            };
            let of_core = |pu| CpuLocation {
                pu,
                core: core.id.0 as usize,
                llc: core.llc.0 as usize,
                node: core.node,
                capacity,
            };
            places.extend(core.cpus.iter().map(of_core));
        }
        places.sort_by_key(|place| place.pu);
        let mut cores = vec![Vec::new(); topology.cores().len()];
        for (at, place) in places.iter().enumerate() {
            if let Some(core) = cores.get_mut(place.core) {
                core.push(at);
            }
        }
        Self { nodes: Nodes::new(&places), places, cores }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The hardware thread of an index below [`Map::len`].
    pub(crate) fn place(&self, at: usize) -> CpuLocation {
        self.places[at]
    }

    /// Indices of the hardware threads of a core.
    pub(crate) fn core(&self, core: usize) -> &[usize] {
        self.cores.get(core).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn cores(&self) -> usize {
        self.cores.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &CpuLocation)> {
        self.places.iter().enumerate()
    }

    /// Levels that two hardware threads are apart: 0 the same core, 1 the same
    /// LLC domain, 2 the same node, 3 further.
    pub(crate) fn distance(&self, a: usize, b: usize) -> u32 {
        let (a, b) = (self.place(a), self.place(b));
        if a.core == b.core {
            0
        } else if a.llc == b.llc {
            1
        } else if a.node == b.node {
            2
        } else {
            3
        }
    }
}

/// How many threads are in each queue and on each node, and how many queues of each
/// core have any.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    lengths: Vec<u32>,
    busy: Vec<u32>,
    on_nodes: Vec<i64>,
}

impl Queues {
    pub(crate) fn new(map: &Map, at: impl Iterator<Item = usize>) -> Self {
        let mut queues = Self {
            lengths: vec![0; map.len()],
            busy: vec![0; map.cores()],
            on_nodes: vec![0; map.nodes.len()],
        };
        at.for_each(|at| queues.add(map, at));
        queues
    }

    pub(crate) fn add(&mut self, map: &Map, at: usize) {
        if self.lengths[at] == 0 {
            self.busy[map.place(at).core] += 1;
        }
        self.lengths[at] += 1;
        self.on_nodes[map.nodes.of(at)] += 1;
    }

    pub(crate) fn remove(&mut self, map: &Map, at: usize) {
        self.on_nodes[map.nodes.of(at)] -= i64::from(self.lengths[at] > 0);
        self.lengths[at] = self.lengths[at].saturating_sub(1);
        if self.lengths[at] == 0 {
            let busy = &mut self.busy[map.place(at).core];
            *busy = busy.saturating_sub(1);
        }
    }

    /// Threads in a queue.
    pub(crate) fn len(&self, at: usize) -> u32 {
        self.lengths[at]
    }

    /// Queues of the core of `at` that are not empty, that of `at` left out.
    pub(crate) fn siblings(&self, map: &Map, at: usize) -> u32 {
        self.busy[map.place(at).core] - u32::from(self.lengths[at] > 0)
    }

    /// Should any node give a thread to another?
    pub(crate) fn uneven_nodes(&self, map: &Map) -> bool {
        let nodes = 0..map.nodes.len();
        let gives = |from, to| from != to && map.nodes.gives(&self.on_nodes, from, to);
        nodes.clone().any(|from| nodes.clone().any(|to| gives(from, to)))
    }

    /// Would a thread that goes from one to the other even out their nodes?
    pub(crate) fn evens_nodes(&self, map: &Map, from: usize, to: usize) -> bool {
        let (from, to) = (map.nodes.of(from), map.nodes.of(to));
        from != to && map.nodes.gives(&self.on_nodes, from, to)
    }

    /// May a thread go from one to the other to be at its memory?
    pub(crate) fn may_return(&self, map: &Map, from: usize, to: usize) -> bool {
        map.nodes.may_return(&self.on_nodes, map.nodes.of(from), map.nodes.of(to))
    }
}
