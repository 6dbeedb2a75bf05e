use proptest::prelude::*;

use super::*;
use crate::NodeId;

/// Machines of one line each that tests elsewhere use too.
pub(crate) const POWER8: &str =
    "node:1 llc:5 smt:8 cache:8M memory:32G | node:1 llc:5 smt:8 cache:8M memory:0";
pub(crate) const HYBRID: &str = "core:8 smt:2 cache:36M | core:16 kind:efficiency capacity:600";

/// Lines that describe machines, with all keys, up to a few dozen threads.
pub(crate) fn lines() -> impl Strategy<Value = String> {
    let opt = |key: &'static str, values: std::ops::Range<u32>, unit: &'static str| {
        prop::option::of(values).prop_map(move |value| match value {
            Some(n) => format!(" {key}:{n}{unit}"),
            None => String::new(),
        })
    };
    let speed = prop_oneof![
        Just(String::new()),
        (1u32..1024).prop_map(|c| format!(" kind:efficiency capacity:{c}")),
        (1u32..1024).prop_map(|c| format!(" capacity:{c}")),
    ];
    let cores = (1u32..4, opt("smt", 1..5, ""), opt("mhz", 1..5000, ""));
    let first = (
        (opt("package", 1..3, ""), opt("node", 1..3, ""), opt("llc", 1..3, "")),
        (cores.clone(), opt("cache", 1..99, "K"), opt("memory", 0..99, "G")),
        prop_oneof![Just(""), Just(" numbering:spread"), Just(" offline:0,2-3")],
    )
        .prop_map(|((p, n, l), ((core, smt, mhz), cache, memory), rest)| {
            // Two cores at least, so that not all can be offline.
            format!("core:{}{p}{n}{l}{smt}{mhz}{cache}{memory}{rest}", core + 4)
        });
    let more = (0usize..5, cores, speed, opt("cache", 1..99, "M"), opt("memory", 0..99, "M"));
    let part = more.prop_map(|(level, (core, smt, mhz), speed, cache, memory)| match level {
        0 => format!("package:1 core:{core}{smt}{mhz}{speed}{cache}{memory}"),
        1 => format!("node:2 core:{core}{smt}{mhz}{speed}{cache}{memory}"),
        2 => format!("llc:2 core:{core}{smt}{mhz}{speed}{cache}"),
        3 => format!("core:{core}{smt}{mhz}{speed}"),
        _ => format!("node:1 core:0{memory} | node:1 core:{core}"),
    });
    (first, prop::collection::vec(part, 0..3))
        .prop_map(|(first, parts)| [vec![first], parts].concat().join(" | "))
}

proptest! {
    #[test]
    fn the_canonical_form_describes_the_same_machine(line in lines()) {
        let machine: Synthetic = line.parse().unwrap();
        let canonical = machine.to_string();
        prop_assert_eq!(&canonical.parse::<Synthetic>().unwrap(), &machine, "{}", canonical);
        prop_assert_eq!(canonical.parse::<Synthetic>().unwrap().to_string(), canonical);
        prop_assert!(Topology::synthetic(&line).is_ok());
    }

    #[test]
    fn any_text_is_read_or_refused_without_panic(
        text in prop_oneof![
            ".{0,60}",
            "((package|node|llc|core|smt|kind|capacity|mhz|cache|memory|numbering|offline)\
              :([0-9]{1,12}|[0-9]{1,3}[KMGT]|spread|efficiency|é)( | \\| )?){0,6}",
        ],
    ) {
        let _ = Topology::synthetic(&text);
    }
}

#[test]
fn known_machines_are_one_line_each() {
    let shape = |line: &str| {
        let t = Topology::synthetic(line).unwrap();
        let counts = (t.packages().len(), t.nodes().len(), t.llcs().len(), t.cores().len());
        (counts, t.smt_width(), t.cpus().len())
    };
    assert_eq!(shape(POWER8), ((1, 2, 10, 10), 8, 80));
    assert_eq!(shape(HYBRID), ((1, 1, 1, 24), 2, 32));
    assert_eq!(shape("package:2 core:10 smt:2"), ((2, 2, 2, 20), 2, 40));
    assert_eq!(shape("package:2 node:2 core:4 smt:2"), ((2, 4, 4, 16), 2, 32));
    assert_eq!(shape("core:1 | core:7 capacity:512"), ((1, 1, 1, 8), 1, 8));
    assert_eq!(shape("core:4 | llc:2 core:4 | core:1"), ((1, 1, 3, 14), 1, 14));
    assert_eq!(shape("package:2 core:4 | core:2"), ((2, 2, 2, 12), 1, 12));
}

#[test]
fn memory_may_lie_in_nodes_of_its_own() {
    let t = Topology::synthetic("core:4 memory:16G | node:1 core:0 memory:64G").unwrap();
    let nodes: Vec<_> = t.nodes().iter().map(|n| (n.cpus.len(), n.memory_bytes)).collect();
    assert_eq!(nodes, [(4, Some(16 << 30)), (0, Some(64 << 30))]);
    assert_eq!(t.nodes()[0].distances[&NodeId(1)], 20);
    assert_eq!(t.nodes()[1].distances[&NodeId(1)], 10);
}

#[test]
fn siblings_are_numbered_as_asked() {
    let cores = |line: &str| -> Vec<String> {
        Topology::synthetic(line).unwrap().cores().iter().map(|c| c.cpus.to_string()).collect()
    };
    assert_eq!(cores("core:2 smt:2"), ["0-1", "2-3"]);
    assert_eq!(cores("package:2 smt:2 numbering:spread"), ["0,2", "1,3"]);
    assert_eq!(cores("smt:2 numbering:spread | smt:1 capacity:9 | smt:3"), ["0,3", "1", "2,4-5"]);
    assert_eq!(cores("core:3 smt:2 offline:1,4-5"), ["0", "2-3"]);
}

#[test]
fn the_canonical_form_leaves_defaults_out() {
    let canonical = |line: &str| line.parse::<Synthetic>().unwrap().to_string();
    assert_eq!(canonical("smt:1 package:1  kind:performance capacity:1024"), "core:1");
    assert_eq!(canonical("cache:36864K smt:2 core:8|capacity:600 core:16 kind:efficiency"), HYBRID);
    assert_eq!(
        canonical("memory:0 offline:1 node:2 core:2 numbering:spread | llc:1 cache:1T"),
        "node:2 core:2 memory:0 numbering:spread offline:1 | llc:1 core:1 cache:1T"
    );
}

#[test]
fn errors_say_what_and_where() {
    let error = |line: &str| {
        let text = Topology::synthetic(line).unwrap_err().to_string();
        text.strip_prefix(&format!("synthetic machine '{line}'")).unwrap().to_owned()
    };
    assert_eq!(
        error("core:4 cores:2"),
        ", column 8: 'cores' is not a key; the keys are package, node, llc, core, smt, kind, \
         capacity, mhz, cache, memory, numbering, offline"
    );
    assert_eq!(error("é core:4"), ", column 1: 'é' is not of the form key:value");
    assert_eq!(error("core:x"), ", column 6: 'x' is not a number from 1 to 4294967295");
    assert_eq!(error(""), ", column 1: nothing is described here; try 'core:4 smt:2'");
    assert_eq!(error("core:4 | "), ", column 9: nothing is described here; try 'core:4 smt:2'");
    assert_eq!(error("core:4 core:4"), ", column 8: 'core' is given twice in one part");
    assert_eq!(
        error("core:4 | core:4 kind:slow"),
        ", column 22: 'slow' is neither 'performance' nor 'efficiency'"
    );
    assert_eq!(
        error("core:4 | core:4 kind:efficiency"),
        ", column 10: 'kind:efficiency' needs a capacity from 1 to 1023"
    );
    assert_eq!(error("cache:8"), ", column 7: '8' is not a size like 512K, 8M or 32G");
    assert_eq!(
        error("core:4 | core:4 cache:8M"),
        ", column 23: 'cache' belongs to a part that starts an LLC domain"
    );
    assert_eq!(
        error("core:4 | node:1 core:0 | core:2"),
        ", column 26: the part before has no cores to join; name a 'node'"
    );
    assert_eq!(
        error("core:4 | core:2 offline:1"),
        ", column 25: 'offline' belongs to the first part"
    );
    assert_eq!(error("core:4 offline:2-7"), ", column 16: there is no cpu4 to take offline");
    assert_eq!(
        error("core:4000000000 smt:4000000000"),
        ", column 1: the machine is too large; at most 16384 hardware threads and 1024 NUMA nodes"
    );
    // Sets of so many domains would fill memory from a short line.
    assert_eq!(
        error("llc:65536 core:1"),
        ", column 1: the machine is too large; at most 16384 hardware threads and 1024 NUMA nodes"
    );
    assert_eq!(error("core:4 offline:0-3"), ": the machine has no hardware thread");
    assert_eq!(
        error("core:4 capacity:512"),
        ": no core has capacity 1024, which stands for the fastest"
    );
}
