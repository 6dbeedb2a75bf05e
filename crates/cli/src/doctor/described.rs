//! `symbiont doctor --topology`: what a described machine is, and what policies would choose there.

use std::collections::BTreeSet;

use serde::Serialize;
use symbiont_machine::{Ability, Signal, Support};
use symbiont_policy::{Settings, policies};
use symbiont_topology::{Core, CoreKind, CpuSet, Origin, Topology};

use super::text::{hanging, wrapped};
use crate::described::Described;
use crate::prospects::prospects;

/// What nothing is known of.
const NOT_KNOWN: &str = "counting, watching, placing and priorities depend on that machine's kernel and processor: \
     run symbiont doctor there. That of this machine is not reported with --topology";

/// Findings about a machine that only its description is of.
#[derive(Debug, Serialize)]
pub struct DescribedFindings {
    /// What there would be to gain, in a line.
    in_short: String,
    topology: Topology,
    core_types: Vec<CoreType>,
    /// Files that were not understood.
    left_out: Vec<String>,
    /// What policies would choose if all that they need could be counted and enforced.
    choices: Vec<Choice>,
    not_known: &'static str,
}

#[derive(Debug, Serialize)]
struct CoreType {
    kind: CoreKind,
    cores: usize,
    /// Hardware threads that its fullest core has.
    smt: usize,
    /// Least and largest, 1024 = the machine's fastest core.
    capacity: (u32, u32),
    cpus: CpuSet,
}

#[derive(Debug, Serialize)]
struct Choice {
    policy: &'static str,
    choice: String,
}

impl DescribedFindings {
    pub fn of(machine: Described) -> Self {
        let Described { topology, left_out } = machine;
        let support = Support {
            signals: Signal::ALL.map(|signal| (signal, Ability::Full)).into(),
            affinity: Ability::Full,
            boost: Ability::Full,
            idle_class: Ability::Full,
            scheduler: Support::no_scheduler(),
            enrolment: Ability::Full,
        };
        let choice = |entry: &symbiont_policy::Entry| {
            let mut made = (entry.make)(&Settings::default());
            made.offer(&support, &topology);
            Some(Choice { policy: entry.name, choice: made.choice()? })
        };
        let choices = policies().iter().filter_map(choice).collect();
        let core_types = core_types(&topology);
        let in_short = prospects(&topology, &support);
        Self { in_short, topology, core_types, left_out, choices, not_known: NOT_KNOWN }
    }

    pub fn text(&self) -> String {
        // Serial phases are seen without events.
        let condition =
            if self.topology.smt_width() > 1 { ", if events can be counted there" } else { "" };
        let short = format!("{}{condition}", self.in_short);
        let mut text = hanging("In short:", &short, 10) + "\n";
        text += &match self.topology.origin() {
            Origin::Host => "Machine\n".to_owned(),
            Origin::SysTree(path) => format!("Machine (copy of /sys in {path})\n"),
            Origin::HwlocXml(path) => format!("Machine (export of hwloc, {path})\n"),
            Origin::Synthetic(line) => format!("Machine (described as '{line}')\n"),
        };
        self.topology.to_string().lines().for_each(|line| text.push_str(&format!("  {line}\n")));
        for (at, kind) in self.core_types.iter().enumerate() {
            let label = if at == 0 { "  core types" } else { "" };
            text.push_str(&hanging(label, &kind.text(), 18));
        }
        for (at, distances) in distances(&self.topology).iter().enumerate() {
            let label = if at == 0 { "  distances" } else { "" };
            text.push_str(&hanging(label, distances, 18));
        }
        for left_out in &self.left_out {
            text.push_str(&hanging("  left out", left_out, 18));
        }
        text.push_str("\nPolicies, if all that they need can be counted and enforced there\n");
        for Choice { policy, choice } in &self.choices {
            text.push_str(&hanging(&format!("  {policy}"), choice, 18));
        }
        text.push_str(&format!("\nNot known\n{}\n", wrapped(self.not_known, 2)));
        text
    }
}

impl CoreType {
    fn text(&self) -> String {
        let Self { kind, cores, smt, capacity: (least, largest), cpus } = self;
        let capacity = match least == largest {
            true => least.to_string(),
            false => format!("{least} to {largest}"),
        };
        format!("{}: {cores} of SMT{smt}, capacity {capacity}, cpu {cpus}", kind.name())
    }
}

/// The fast type first.
fn core_types(topology: &Topology) -> Vec<CoreType> {
    let kinds: BTreeSet<CoreKind> = topology.cores().iter().map(|core| core.kind).collect();
    let of = |kind| {
        let cores: Vec<&Core> = topology.cores().iter().filter(|core| core.kind == kind).collect();
        let capacities = || cores.iter().map(|core| core.capacity);
        CoreType {
            kind,
            cores: cores.len(),
            smt: cores.iter().map(|core| core.cpus.len()).max().unwrap_or(1),
            capacity: (capacities().min().unwrap_or(0), capacities().max().unwrap_or(0)),
            cpus: cores.iter().fold(CpuSet::new(), |all, core| all.union(&core.cpus)),
        }
    };
    kinds.into_iter().map(of).collect()
}

/// A line for each node that lists them, where there are several nodes.
fn distances(topology: &Topology) -> Vec<String> {
    let several = topology.nodes().len() > 1;
    let nodes = topology.nodes().iter().filter(|node| several && !node.distances.is_empty());
    let line = |node: &symbiont_topology::NumaNode| {
        let to = node.distances.iter().map(|(to, distance)| format!("{distance} to {to}"));
        format!("{}: {}", node.id, to.collect::<Vec<_>>().join(", "))
    };
    nodes.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(line: &str, left_out: &[&str]) -> DescribedFindings {
        let topology = Topology::synthetic(line).unwrap();
        let left_out = left_out.iter().map(|&text| text.to_owned()).collect();
        DescribedFindings::of(Described { topology, left_out })
    }

    #[test]
    fn all_that_a_topology_holds_is_said() {
        let hybrid = "core:8 smt:2 cache:36M | core:16 kind:efficiency capacity:600";
        let text = findings(hybrid, &["node0/distance holds '10'"]).text();
        for wanted in [
            "described as 'core:8 smt:2",
            "1 package, 1 NUMA node, 1 LLC domain (36 MiB), 24 cores, SMT2, 32 hardware threads",
            "core types      performance: 8 of SMT2, capacity 1024, cpu 0-15",
            "                  efficiency: 16 of SMT1, capacity 600, cpu 16-31",
            "left out        node0/distance holds '10'",
            "  auto            ",
            "Not known",
        ] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
        assert!(!text.contains("distances "), "{text}");
        let two = findings("package:2 core:2", &[]).text();
        assert!(two.contains("distances       node0: 10 to node0, 20 to node1"), "{two}");
        assert!(!two.contains("left out"), "{two}");
    }

    #[test]
    fn policies_choose_by_the_described_machine() {
        let auto = |line: &str| {
            let choices = findings(line, &[]).choices;
            choices.into_iter().find(|choice| choice.policy == "auto").unwrap().choice
        };
        assert!(auto("core:4").contains("no groups"), "{}", auto("core:4"));
        assert_ne!(auto("core:4"), auto("core:4 smt:2"));
        assert_ne!(auto("core:4 smt:2"), auto("package:2 core:4 smt:2"));
    }
}
