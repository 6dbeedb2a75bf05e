//! Nodes among which jobs are chosen together.
//!
//! Partitions that share nodes are looked at together, so that a node that is kept for a job of one of them is not
//! filled by jobs of another. Nodes whose units of CPUs differ in size (cores of one or two threads) are looked at
//! one kind after the other, since the choice counts in these units.
//!
//! ```text
//! groups := one for each partition in which a job waits
//! for each node: join all groups of which it has a partition
//! pools of a group := its nodes, by the CPUs of their units
//! ```

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::slurm::{Layout, NodeState, QueuedJob};

/// Nodes of partitions that share nodes, with units of CPUs of one size.
pub struct Pool {
    /// Identifies it from look to look.
    pub name: String,
    /// CPUs of a unit.
    pub unit: usize,
    /// The nodes.
    pub nodes: Vec<NodeState>,
}

/// The partitions of some jobs, those that share nodes together.
pub fn groups(jobs: &[&QueuedJob], layout: &Layout) -> Vec<BTreeSet<String>> {
    let names: BTreeSet<&str> = jobs.iter().map(|job| job.partition.as_str()).collect();
    let mut groups: Vec<BTreeSet<String>> =
        names.iter().map(|name| BTreeSet::from([(*name).to_owned()])).collect();
    for node in &layout.nodes {
        let (with, mut without): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| node.partitions.iter().any(|name| group.contains(name)));
        let with: BTreeSet<String> = with.into_iter().flatten().collect();
        without.extend((!with.is_empty()).then_some(with));
        groups = without;
    }
    groups
}

/// The name of a group of partitions.
pub fn name_of(group: &BTreeSet<String>) -> String {
    group.iter().cloned().collect::<Vec<_>>().join(",")
}

/// The pools of a group of partitions, the smallest units first.
pub fn pools(group: &BTreeSet<String>, layout: &Layout) -> Vec<Pool> {
    let is_in = |node: &&NodeState| node.partitions.iter().any(|name| group.contains(name));
    let mut by_unit: BTreeMap<usize, Vec<NodeState>> = BTreeMap::new();
    for node in layout.nodes.iter().filter(is_in) {
        by_unit.entry(layout.selection.unit(node)).or_default().push(node.clone());
    }
    let name = name_of(group);
    let pool = |(unit, nodes)| Pool { name: format!("{name} {unit}"), unit, nodes };
    by_unit.into_iter().map(pool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{node, waits};

    #[test]
    fn partitions_that_share_nodes_are_one_group_and_units_make_pools() {
        let of = |name: &str, partitions: &[&str], cpus_of_core| NodeState {
            partitions: partitions.iter().map(|name| (*name).to_owned()).collect(),
            cpus_of_core,
            ..node(name, 4, 4)
        };
        let layout = Layout {
            nodes: vec![of("a", &["p", "q"], 1), of("b", &["q"], 2), of("c", &["r"], 1)],
            ..Layout::default()
        };
        let job = |id, partition: &str| QueuedJob { partition: partition.into(), ..waits(id, 0.0) };
        let jobs = [job(1, "p"), job(2, "q"), job(3, "r")];
        let jobs: Vec<&QueuedJob> = jobs.iter().collect();
        let names = |groups: &[BTreeSet<String>]| -> BTreeSet<String> {
            groups.iter().map(name_of).collect()
        };
        let all = groups(&jobs, &layout);
        assert_eq!(names(&all), ["p,q", "r"].map(str::to_owned).into());
        // Without a job of q, p stands alone.
        assert_eq!(names(&groups(&jobs[..1], &layout)), ["p".to_owned()].into());
        let both = all.iter().find(|group| group.len() == 2).unwrap();
        let pools = pools(both, &layout);
        let pools: Vec<_> = pools.iter().map(|pool| (pool.name.as_str(), pool.unit)).collect();
        assert_eq!(pools, [("p,q 1", 1), ("p,q 2", 2)]);
    }
}
