//! What there is to gain from placing threads on a machine, in one line.
//!
//! # Approach
//! Threads compete for what they share: hardware threads of a core for its units and caches, cores of a domain for
//! its last-level cache, cores of a node for its memory; and cores of several types are not equally fast. Where
//! nothing of that is to be chosen, only serial phases are left. Which threads suit each other can be known only
//! where events can be counted.
//!
//! # Properties
//! - The line follows structure, counters and rights (`the_line_follows_the_machine`).

use symbiont_machine::{Ability, Signal, Support};
use symbiont_topology::Topology;

/// What there is to gain, and why.
pub fn prospects(topology: &Topology, support: &Support) -> String {
    if let Some(why) = support.affinity.why().filter(|_| !support.affinity.exists()) {
        return format!("nothing to gain here: threads cannot be placed: {why}");
    }
    let width = topology.smt_width();
    let many = |count: usize, what: &str| (count > 1).then(|| format!("{count} {what}"));
    let kinds: std::collections::BTreeSet<_> =
        topology.cores().iter().map(|core| core.kind).collect();
    // No thread runs on a node that has memory only.
    let nodes = topology.nodes().iter().filter(|node| !node.cpus.is_empty()).count();
    let domains = [
        many(topology.llcs().len(), "last-level caches"),
        many(nodes, "NUMA nodes"),
        many(kinds.len(), "types of cores"),
    ];
    let domains = domains.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let counts = support.signals.get(&Signal::Ipc).is_some_and(Ability::exists);
    let uncounted = "events cannot be counted, so which threads suit each other is not known";
    match (width > 1, counts, domains.is_empty()) {
        (true, true, true) => format!(
            "something to gain here: {width} hardware threads share a core, and which threads suit each other can \
             be measured"
        ),
        (true, true, false) => format!(
            "something to gain here: {width} hardware threads share a core, which threads suit each other can be \
             measured, and there are {domains} to choose from"
        ),
        (true, false, true) => format!(
            "a little to gain here: {width} hardware threads share a core, but {uncounted}; serial phases get \
             cores of their own"
        ),
        (true, false, false) => format!(
            "a little to gain here: {width} hardware threads share a core and there are {domains}, but {uncounted}"
        ),
        (false, _, false) => {
            format!("a little to gain here: no SMT, but there are {domains} to choose from")
        }
        (false, true, true) => {
            "little to gain here: no SMT, and all cores share one cache and one memory; serial \
             phases only"
                .to_owned()
        }
        (false, false, true) => {
            "little to gain here: no SMT, no counters, and all cores share one cache and one \
             memory; serial phases only"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(machine: &str, counts: bool) -> String {
        let none = || Ability::Absent("no counters".to_owned());
        let ability = |signal| (signal, if counts { Ability::Full } else { none() });
        let support = Support {
            signals: Signal::ALL.map(ability).into(),
            affinity: Ability::Full,
            boost: Ability::Full,
            idle_class: Ability::Full,
            scheduler: Support::no_scheduler(),
            enrolment: Ability::Full,
        };
        prospects(&Topology::synthetic(machine).unwrap(), &support)
    }

    #[test]
    fn the_line_follows_the_machine() {
        assert_eq!(
            line("core:2", false),
            "little to gain here: no SMT, no counters, and all cores share one cache and one memory; serial phases only"
        );
        assert!(line("core:4 smt:2", true).starts_with("something to gain here: 2 hardware"));
        assert!(
            line("core:4 smt:8", false).contains("8 hardware threads share a core, but events")
        );
        let two = line("package:2 core:4 smt:2", true);
        assert!(two.contains("2 last-level caches, 2 NUMA nodes to choose from"), "{two}");
        let memory = line("core:4 | node:1 core:0 memory:64G", false);
        assert_eq!(memory, line("core:4", false), "a node without CPUs is nothing to choose");
        let three = line("package:2 core:4 | node:1 core:0 memory:64G", true);
        assert!(three.contains("2 NUMA nodes"), "{three}");
        let hybrid = line("core:4 | core:4 kind:efficiency capacity:500", false);
        assert_eq!(
            hybrid,
            "a little to gain here: no SMT, but there are 2 types of cores to choose from"
        );
    }

    #[test]
    fn where_nothing_can_be_placed_there_is_nothing_to_gain() {
        let support = Support {
            affinity: Ability::Absent("no right to".to_owned()),
            signals: std::collections::BTreeMap::new(),
            boost: Ability::Full,
            idle_class: Ability::Full,
            scheduler: Support::no_scheduler(),
            enrolment: Ability::Full,
        };
        let line = prospects(&Topology::synthetic("core:4 smt:2").unwrap(), &support);
        assert_eq!(line, "nothing to gain here: threads cannot be placed: no right to");
    }
}
