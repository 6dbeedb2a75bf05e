//! The levels at which busy hardware threads balance: those of one core, the cores of one
//! LLC domain, the LLC domains of one node, the nodes.
//!
//! What distinguishes levels is Linux's own (`sd_init` in kernel/sched/topology.c). It has
//! one more level for each further distance between nodes; here all nodes are one level.

use super::{CpuLocation, Map};

/// One level. A *domain* is a set of hardware threads that is balanced, its *groups* are the
/// domains of the level below.
#[derive(Debug, Clone)]
pub(super) struct SchedDomains {
    /// So much more than another, in percent, an overloaded group must have to give.
    pub imbalance_pct: u64,
    /// So many failures until a thread leaves the node of its memory.
    pub tries: u32,
    groups: Vec<Vec<usize>>,
    /// For each hardware thread, its group.
    group_of: Vec<usize>,
    /// For each group, the groups of its domain, itself included.
    siblings: Vec<Vec<usize>>,
    /// For each hardware thread, how many are in its domain.
    weights: Vec<u64>,
}

impl SchedDomains {
    fn new(
        groups: Vec<Vec<usize>>,
        domains: &[Vec<usize>],
        imbalance_pct: u64,
        tries: u32,
    ) -> Self {
        let count = domains.iter().map(Vec::len).sum();
        let (mut group_of, mut weights) = (vec![0; count], vec![0; count]);
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|&at| group_of[at] = number);
        }
        let mut siblings = vec![Vec::new(); groups.len()];
        for domain in domains {
            domain.iter().for_each(|&at| weights[at] = domain.len() as u64);
            let mut within: Vec<usize> = domain.iter().map(|&at| group_of[at]).collect();
            within.sort_unstable();
            within.dedup();
            within.iter().for_each(|&group| siblings[group].clone_from(&within));
        }
        Self { imbalance_pct, tries, groups, group_of, siblings, weights }
    }

    /// Hardware threads of the domain of one of them; none where that is all one group,
    /// so that nothing is to balance.
    pub fn weight(&self, at: usize) -> Option<u64> {
        (self.siblings[self.group_of[at]].len() > 1).then(|| self.weights[at])
    }

    /// The group of a hardware thread.
    pub fn group(&self, at: usize) -> &[usize] {
        &self.groups[self.group_of[at]]
    }

    /// The other groups of its domain, in order from its own on.
    pub fn others(&self, at: usize) -> impl Iterator<Item = &[usize]> {
        let own = self.group_of[at];
        let all = &self.siblings[own];
        let place = all.iter().position(|group| *group == own).unwrap_or(0);
        let from = move |step: usize| all[(place + step) % all.len()];
        (1..all.len()).map(move |step| self.groups[from(step)].as_slice())
    }
}

/// All levels, the lowest first.
pub(super) fn sched_domains(map: &Map) -> Vec<SchedDomains> {
    let alone: Vec<Vec<usize>> = (0..map.len()).map(|at| vec![at]).collect();
    let of_core = alike(map, |place| (place.node, place.llc, place.core));
    let of_llc = alike(map, |place| (place.node, place.llc));
    let of_node = alike(map, |place| place.node);
    let all = alike(map, |_| ());
    vec![
        SchedDomains::new(alone, &of_core, 110, 0),
        SchedDomains::new(of_core, &of_llc, 117, 1),
        SchedDomains::new(of_llc, &of_node, 117, 1),
        SchedDomains::new(of_node, &all, 117, 2),
    ]
}

/// Sets of hardware threads of the same key, in the order of the first of each.
fn alike<K: PartialEq>(map: &Map, key: impl Fn(CpuLocation) -> K) -> Vec<Vec<usize>> {
    let mut sets: Vec<(K, Vec<usize>)> = Vec::new();
    for (at, &place) in map.iter() {
        let key = key(place);
        match sets.iter_mut().find(|(of, _)| *of == key) {
            Some((_, set)) => set.push(at),
            None => sets.push((key, vec![at])),
        }
    }
    sets.into_iter().map(|(_, set)| set).collect()
}
