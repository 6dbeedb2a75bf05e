//! How threads are spread over NUMA nodes.
//!
//! An idle hardware thread takes one from a node that has two more than its own
//! (`sibling_imbalance` in kernel/sched/fair.c), whether there is room there or not; and a
//! thread goes back to the node of its memory only if that does not make nodes uneven
//! (`task_numa_find_cpu`). A few threads may be uneven by two (`adjust_numa_imbalance`).

use std::collections::BTreeSet;

use symbiont_topology::NodeId;

use super::CpuLocation;

/// Nodes that are uneven by so much, are not while few threads run (`NUMA_IMBALANCE_MIN`).
const SMALL: i64 = 2;

/// The nodes of a machine.
#[derive(Debug, Clone)]
pub(super) struct Nodes {
    /// For each hardware thread, its node, by index.
    of: Vec<usize>,
    cores: Vec<i64>,
    /// Few threads on a node are up to so many (`imb_numa_nr`): its LLC domains, or an
    /// eighth of its hardware threads if it has but one.
    few: i64,
}

impl Nodes {
    pub fn new(places: &[CpuLocation]) -> Self {
        let ids: BTreeSet<NodeId> = places.iter().map(|place| place.node).collect();
        let index = |place: &CpuLocation| ids.iter().position(|id| *id == place.node).unwrap_or(0);
        let count = |node: NodeId, key: fn(&CpuLocation) -> usize| -> i64 {
            let here = places.iter().filter(|place| place.node == node);
            here.map(key).collect::<BTreeSet<usize>>().len() as i64
        };
        let few = |&node: &NodeId| match count(node, |place| place.llc) {
            1 => places.iter().filter(|place| place.node == node).count() as i64 / 8,
            llcs => llcs,
        };
        Self {
            of: places.iter().map(index).collect(),
            cores: ids.iter().map(|&node| count(node, |place| place.core)).collect(),
            few: ids.iter().map(few).min().unwrap_or(1).max(1),
        }
    }

    pub fn len(&self) -> usize {
        self.cores.len()
    }

    /// The node of a hardware thread, by index.
    pub fn of(&self, at: usize) -> usize {
        self.of[at]
    }

    /// Should a node with `threads` on each give one of them to another?
    pub fn gives(&self, threads: &[i64], from: usize, to: usize) -> bool {
        let (fuller, emptier) = (threads[from], threads[to]);
        let (giver, destination) = (self.cores[from], self.cores[to]);
        let more = if giver == destination {
            fuller - emptier
        } else {
            // Threads for each core, in those of a node of the mean size.
            let all = giver + destination;
            (2 * (destination * fuller - giver * emptier) + all) / all
        };
        more > 1 && !self.small(more, emptier + 1)
    }

    /// May a thread go to the node of its memory?
    pub fn may_return(&self, threads: &[i64], from: usize, to: usize) -> bool {
        let (left, there) = (threads[from] - 1, threads[to] + 1);
        there <= left || self.small(there - left, there)
    }

    fn small(&self, imbalance: i64, threads: i64) -> bool {
        threads <= self.few && imbalance <= SMALL
    }
}
