use proptest::prelude::*;
use symbiont_profile::OpClass;
use symbiont_topology::{CoreKind, NodeId};

use super::*;

fn xeon() -> String {
    let text = Description::builtin().iter().find(|(name, _)| *name == "xeon-e5-2620v4");
    text.unwrap().1.to_owned()
}

/// The error that a change to the Xeon's text brings.
fn refused(there: &str, instead: &str) -> String {
    let text = xeon();
    assert!(text.contains(there), "{there}");
    Description::parse("xeon.toml", &text.replacen(there, instead, 1)).unwrap_err().to_string()
}

#[test]
fn all_machines_can_be_read() {
    for (name, text) in Description::builtin() {
        let machine = Description::parse(&format!("{name}.toml"), text).unwrap();
        assert_eq!(machine.name, *name);
        assert!(machine.values.len() >= 50, "{name}: {}", machine.values.len());
        assert!(machine.assumed().count() * 2 < machine.values.len() || *name == "xsim", "{name}");
        for core in machine.topology.cores() {
            let kind = machine.core_type(core.kind).unwrap();
            assert_eq!(kind.l3.is_some(), text.contains(".l3]"), "{name}");
            assert!(machine.hertz(core) > 1e9 - 1.0);
        }
    }
}

#[test]
fn values_are_read_as_written() {
    let power8 = Description::named("power8-s812l").unwrap();
    assert_eq!(power8.topology.cores().len(), 10);
    assert_eq!(power8.topology.smt_width(), 8);
    assert_eq!(power8.memory.nodes, [NodeId(0)]);
    let core = power8.core_type(CoreKind::Performance).unwrap();
    assert_eq!(core.iq, Structure { entries: 64, smt: SmtRule::Halved });
    assert_eq!(core.l1d.lines(), 512);
    assert_eq!(core.ports.iter().filter(|port| port.does.contains(&OpClass::FpAdd)).count(), 2);
    assert_eq!(
        power8.values["memory.remote_latency"].source,
        Source::Published(
            "Feliu et al., Improving IBM POWER8 performance through symbiotic job scheduling, IEEE Transactions \
             on Parallel and Distributed Systems 28(10), 2017: section 5.1, local latency is about 20 % lower"
                .to_owned()
        )
    );
    assert!(matches!(power8.values["core.performance.ghz"].source, Source::Assumed(_)));
    let written = |key: &str| power8.values[key].value.as_str();
    assert_eq!(
        (written("core.performance.l1d.bytes"), written("core.performance.l1d.ways")),
        ("64K", "8")
    );
}

#[test]
fn a_slowed_core_of_the_same_type_has_the_clock_of_the_topology() {
    let morad = Description::named("morad-8-asymmetric").unwrap();
    let cores = morad.topology.cores();
    assert_eq!(morad.hertz(&cores[0]), 2.66e9);
    assert_eq!(morad.hertz(&cores[7]), 1.33e9);
}

#[test]
fn refusals_name_file_line_key_and_reason() {
    for (there, instead, error) in [
        (
            "rob = { entries = 192",
            "rob = { entries = 0",
            "xeon.toml:38: core.performance.rob.entries: expected a whole number from 1 to 65536, \
          found 0",
        ),
        (
            "rob = {",
            "robb = {",
            "xeon.toml:38: core.performance.robb: unknown key; known here: source, catalogue",
        ),
        (
            "lq = { entries = 72, smt = \"partitioned\" }\n",
            "",
            "xeon.toml:16: core.performance.lq: missing",
        ),
        (
            "smt = \"shared\" }",
            "smt = \"sharred\" }",
            "xeon.toml:39: core.performance.iq.smt: expected private, partitioned",
        ),
        (
            "latency_ns = { value = 90, source = \"assumed: typical of Broadwell-EP\" }",
            "latency_ns = { value = \"90\", source = \"ark\" }",
            "memory.latency_ns.value: expected a number from 1 to 10000, found string",
        ),
        (
            "source = \"assumed: typical of Broadwell-EP\"",
            "source = \"assumed\"",
            "memory.latency_ns.source: say why",
        ),
        (
            "source = \"assumed: typical of Broadwell-EP\"",
            "source = \"hearsay: p. 3\"",
            "'hearsay' is neither 'assumed: why' nor a work listed in [sources]",
        ),
        (
            "[memory]\nsource = \"ark: four channels of DDR4-2133\"",
            "[memory]",
            "memory.total_gbps: has no source; give one for it or for its section",
        ),
        (
            "[core.performance]\nsource = \"intel\"",
            "[core.performance]",
            "has no source; give one for it or for its section",
        ),
        (
            "same_registers = \"forwarded\"",
            "same_registers = \"kept\"",
            "core.performance.forwarding.same_registers: expected renamed or forwarded, found \"kept\"",
        ),
        (
            "refill = ",
            "predictor = 4096\nrefill = ",
            "core.performance.predictor: of a core with `tage`; it is of one that is compared with a gshare",
        ),
        ("core:8 smt:2", "core:8 smt:x", "structure.topology: synthetic machine"),
        ("core:8 smt:2", "core:8 smt:16", "cores of 16 threads; at most 8 are simulated"),
        ("line = 64", "line = 32", "profiles have lines of 64 and of 128 bytes only"),
        ("line = 64", "line = 128", "lines of all caches of a core are equally long here"),
        (" memory:32G", "", "no node of the topology has memory"),
        (
            "total_gbps = 68.3",
            "total_gbps = 68.3\nlink_gbps = 3",
            "memory.link_gbps: the topology has one node",
        ),
        (
            "bytes = \"256K\"",
            "bytes = \"262143\"",
            "core.performance.l2.bytes: the size is no multiple of ways × line = 512 bytes",
        ),
        ("\"store\",", "", "core.performance.ports: no port does 'store'"),
        ("\"store\",", "\"storre\",", "'storre' is no kind of micro-op"),
        (
            "[memory]\nsource",
            "[core.efficiency]\n[memory]\nsource",
            "core.efficiency: the topology has no core of this kind",
        ),
        (
            "catalogue = \"broadwell\"",
            "catalogue = \"generic\"",
            "core.performance.catalogue: no catalogue that a simulated machine can count by; known: ",
        ),
        ("name = ", "name = = ", "xeon.toml:1: document: no TOML"),
    ] {
        let found = refused(there, instead);
        assert!(found.contains(error), "{found}\n    instead of {error}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

#[test]
fn a_machine_can_be_cut_down_to_some_cores_and_threads() {
    let power8 = Description::named("power8-s812l").unwrap();
    let cut = power8.clone().restricted(Some(7), Some(4)).unwrap();
    assert_eq!(cut.topology.cpus().to_string(), "0-3,8-11,16-19,24-27,32-35,40-43,48-51");
    assert_eq!((cut.topology.cores().len(), cut.topology.smt_width()), (7, 4));
    assert_eq!(cut.memory, power8.memory);
    assert_eq!(power8.clone().restricted(None, None).unwrap(), power8);
    let error = power8.clone().restricted(Some(11), None).unwrap_err().to_string();
    assert_eq!(error, "power8-s812l has 10 cores of 8 hardware threads, not 11 cores");
    let error = power8.restricted(None, Some(0)).unwrap_err().to_string();
    assert_eq!(error, "power8-s812l has 10 cores of 8 hardware threads, not 0 hardware threads");
}

#[test]
fn a_machine_can_be_cut_down_to_a_core_type() {
    let hybrid = Description::named("alder-lake").unwrap();
    let small = hybrid.clone().of_type(CoreKind::Efficiency).unwrap();
    assert_eq!((small.topology.cores().len(), small.topology.smt_width()), (8, 1));
    assert_eq!(small.core_types.len(), 1);
    assert_eq!(small.core_types[0].catalogue, "alder-lake-e");
    let power8 = Description::named("power8-s812l").unwrap();
    assert_eq!(power8.clone().of_type(CoreKind::Performance).unwrap(), power8);
    let error = power8.of_type(CoreKind::Efficiency).unwrap_err().to_string();
    assert_eq!(error, "power8-s812l has no Efficiency cores");
}

#[test]
fn an_unknown_machine_is_answered_with_the_nearest_names() {
    let error = Description::named("power8").unwrap_err().to_string();
    assert!(
        error.starts_with("there is no machine 'power8' to simulate; the nearest: power8-s812l"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(
        at in 0usize..4000, remove in 0usize..60, insert in "[a-z0-9={}\\[\\]\". \n]{0,12}",
    ) {
        let mut text: Vec<char> = xeon().chars().collect();
        let at = at.min(text.len());
        let end = (at + remove).min(text.len());
        text.splice(at..end, insert.chars());
        let text: String = text.into_iter().collect();
        if let Err(error) = Description::parse("any", &text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1);
        }
    }
}

#[test]
fn cores_and_memory_are_kept_in_another_arrangement() {
    let xeon = Description::named("xeon-e5-2620v4").unwrap();
    let line = "llc:2 core:3 smt:2 cache:1M memory:1G mhz:9000 | node:1 core:0 memory:64G";
    let arranged = xeon.clone().arranged(&Topology::synthetic(line).unwrap()).unwrap();
    let shape = |machine: &Description| {
        let topology = &machine.topology;
        (topology.llcs().len(), topology.cores().len(), topology.cpus().len())
    };
    assert_eq!(shape(&arranged), (2, 6, 12));
    assert_eq!(arranged.core_types, xeon.core_types);
    // The clock is that of the description.
    assert_eq!(
        arranged.hertz(&arranged.topology.cores()[0]),
        xeon.hertz(&xeon.topology.cores()[0])
    );
    assert_eq!((arranged.memory.nodes.len(), arranged.topology.nodes().len()), (1, 1));
    assert!(arranged.title.ends_with(&format!(", arranged as '{line}'")), "{}", arranged.title);
    assert_eq!((arranged.checked, arranged.held), (None, None));

    let slow = Topology::synthetic("core:1 smt:2 | core:1 capacity:512").unwrap();
    let slow = xeon.clone().arranged(&slow).unwrap();
    let [fast, half] = [0, 1].map(|core| slow.hertz(&slow.topology.cores()[core]));
    assert!((fast / half - 2.0).abs() < 1e-6, "{fast} {half}");
}

#[test]
fn what_a_description_does_not_have_is_not_arranged() {
    let refused = |name: &str, line: &str| {
        let topology = Topology::synthetic(line).unwrap();
        Description::named(name).unwrap().arranged(&topology).unwrap_err().to_string()
    };
    assert_eq!(
        refused("xeon-e5-2620v4", "core:2 smt:4"),
        "xeon-e5-2620v4 describes cores of 2 hardware threads, and the topology has some of 4"
    );
    assert_eq!(
        refused("xeon-e5-2620v4", "core:2 | core:2 kind:efficiency capacity:500"),
        "xeon-e5-2620v4 describes no efficiency cores, and the topology has some"
    );
    let nodes = refused("xeon-e5-2620v4", "package:2 core:2");
    assert!(
        nodes.contains("one NUMA node and no links between nodes, and the topology has 2"),
        "{nodes}"
    );
    let four = Topology::synthetic("package:2 node:2 core:5 smt:8").unwrap();
    let four = Description::named("power8-s812l").unwrap().arranged(&four).unwrap();
    assert_eq!(four.memory.nodes.len(), 4, "all nodes have memory where none is known to");
}
