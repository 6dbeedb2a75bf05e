use proptest::prelude::*;

use super::*;
use crate::hwloc::tests::{as_hwloc_reads, lstopo};
use crate::synthetic::tests::lines;

/// Strings of hwloc with levels in its usual order; what hwloc would assume is given.
fn strings() -> impl Strategy<Value = String> {
    let level = |name: &'static str, attributes: &'static str| {
        prop_oneof![
            Just(String::new()),
            (1u32..4).prop_map(move |n| format!("{name}:{n}{attributes} "))
        ]
    };
    let numa = prop_oneof![
        Just((String::new(), "numa:2(memory=1GiB) ".to_owned())),
        Just((String::new(), "NUMANode:1(memory=4GiB) ".to_owned())),
        Just(("[numa(memory=1GiB)] ".to_owned(), String::new())),
        Just(("[numa(memory=1GiB)] [numa(memory=2GiB)] ".to_owned(), String::new())),
    ];
    let pu = prop_oneof![
        (1u32..4).prop_map(|n| format!("pu:{n}")),
        Just("PU:2(indexes=core)".to_owned()),
        Just("pu:2(indexes=pack:core)".to_owned()),
    ];
    (
        (level("group", ""), level("Pack", ""), level("die", ""), numa),
        (level("l3", "(size=4MiB)"), level("L2Cache", "(size=512KiB)"), level("l1i", "")),
        ((1u32..4), pu),
    )
        .prop_map(|((group, package, die, (attached, numa)), (l3, l2, l1i), (cores, pu))| {
            format!("{group}{package}{attached}{die}{numa}{l3}{l2}{l1i}core:{cores} {pu}")
        })
        .prop_filter("hwloc numbers by packages where there are some", |text| {
            !text.contains("=pack") || text.contains("Pack")
        })
}

fn machine(text: &str) -> Topology {
    read(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    let error = read(text).unwrap_err().to_string();
    error.replace(&format!("hwloc's synthetic string '{text}', "), "")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn hwloc_reads_random_strings_as_we_do(text in strings()) {
        let Some(mut lstopo) = lstopo() else { return Ok(()) };
        let hwloc = as_hwloc_reads(lstopo.args(["--if", "synthetic", "--input", &text]));
        let ours = machine(&text);
        prop_assert_eq!(ours.cores(), hwloc.cores());
        prop_assert_eq!(ours.llcs(), hwloc.llcs());
        prop_assert_eq!(ours.nodes(), hwloc.nodes());
        prop_assert_eq!(ours.packages(), hwloc.packages());
    }
}

proptest! {
    #[test]
    fn the_two_forms_are_distinguished(string in strings(), line in lines()) {
        prop_assert!(is_hwloc_form(&string), "{}", string);
        prop_assert!(!is_hwloc_form(&line), "{}", line);
        prop_assert!(read(&string).is_ok());
        prop_assert!(Topology::synthetic(&string).is_err() && read(&line).is_err());
    }

    #[test]
    fn any_string_is_read_or_refused_without_panic(
        text in prop_oneof![
            ".{0,60}",
            "((pack|numa|l3|l9|core|pu|node|die|group1|é|2)(:[0-9]{1,12})?\
              (\\((size|memory|indexes)=([0-9,*:]{0,9}|core:numa|1GiB)\\))?( ?\\[numa)?[\\]]? ?){0,6}pu:[0-9]{1,3}",
        ],
    ) {
        let _ = is_hwloc_form(&text);
        let _ = read(&text);
    }
}

/// Without types, with nodes at several levels, with numbers of their own.
#[test]
fn hwloc_reads_odd_strings_as_we_do() {
    for text in [
        "3",
        "2 2 2",
        "2 1 2 2 2",
        "2 1 2 1 2 1 2 2",
        "[numa] 2 3 2",
        "pack:2 [numa] core:2 [numa] pu:2",
        "[node] pack:2 [numa] [numa(indexes=4,3,2,1,0)] core:1 pu:2",
        "NUMANode:2(indexes=5,3) socket:1 core:2 pu:1",
        "pack:2(indexes=1,0) core:2 pu:2(indexes=7,6,5,4,3,2,1,0)",
        "group:2 l3d:1 group:2 l2u:1 co:1 pu:4(indexes=2*8)",
        "l2:1 l3:1 core:2 pu:1",
    ] {
        let Some(mut lstopo) = lstopo() else { return };
        let hwloc = as_hwloc_reads(lstopo.args(["--if", "synthetic", "--input", text]));
        let ours = machine(text);
        assert_eq!(ours.cores(), hwloc.cores(), "{text}");
        let nodes =
            |t: &Topology| t.nodes().iter().map(|n| (n.id, n.cpus.clone())).collect::<Vec<_>>();
        assert_eq!(nodes(&ours), nodes(&hwloc), "{text}");
        assert_eq!(ours.packages(), hwloc.packages(), "{text}");
    }
}

#[test]
fn strings_of_hwloc_are_read() {
    let shape = |text: &str| {
        let t = machine(text);
        let counts = (t.packages().len(), t.nodes().len(), t.llcs().len(), t.cores().len());
        (counts, t.smt_width(), t.cpus().len())
    };
    assert_eq!(shape("pack:2 numa:1 l3:1 core:8 pu:2"), ((2, 2, 2, 16), 2, 32));
    assert_eq!(shape("Package:2 L3:4 Core:2 PU:1"), ((2, 1, 8, 16), 1, 16));
    assert_eq!(shape("NUMANode:2 socket:1 core:2 pu:1"), ((2, 2, 2, 4), 1, 4));
    assert_eq!(shape("pack:1 [numa] l3:1 core:4 pu:2"), ((1, 1, 1, 4), 2, 8));
    assert_eq!(shape("2 2 2"), ((2, 4, 2, 8), 1, 8));
    assert_eq!(shape("2 1 2 2 2"), ((2, 2, 4, 8), 2, 16));
    assert_eq!(shape("pu:3"), ((1, 1, 1, 3), 1, 3));
    // As lstopo 2.9 writes a machine.
    let exported = "Package:1 [NUMANode(memory=33554432000)] L3Cache:1(size=33554432) L2Cache:8(size=1048576) \
         L1dCache:1(size=32768) L1iCache:1(size=32768) Core:1 PU:2(indexes=2*8:1*2)";
    let t = machine(exported);
    assert_eq!(t.llcs()[0].bytes, Some(32 << 20));
    assert_eq!(t.nodes()[0].memory_bytes, Some(33_554_432_000));
    assert_eq!(t.cores()[0].cpus.to_string(), "0,8");
}

#[test]
fn a_core_of_several_domains_is_refused() {
    let error = read("core:2 l2:2 pu:2").unwrap_err().to_string();
    assert!(error.contains("describes no machine"), "{error}");
}

#[test]
fn what_is_not_given_is_not_known() {
    let t = machine("pack:2 numa:1 l3:1 core:8 pu:2");
    assert_eq!((t.llcs()[0].bytes, t.nodes()[0].memory_bytes), (None, None));
    assert!(t.nodes()[0].distances.is_empty());
}

#[test]
fn objects_are_numbered_as_asked() {
    let cores = |text: &str| -> Vec<String> {
        machine(text).cores().iter().map(|core| core.cpus.to_string()).collect()
    };
    assert_eq!(cores("core:2 pu:2"), ["0-1", "2-3"]);
    assert_eq!(cores("core:2 pu:2(indexes=0,2,1,3)"), ["0,2", "1,3"]);
    assert_eq!(cores("core:2 pu:2(indexes=2*2:1*2)"), ["0,2", "1,3"]);
    assert_eq!(cores("core:2 pu:2(indexes=core)"), ["0,2", "1,3"]);
    assert_eq!(cores("pack:1 core:2 pu:2(indexes=pack:core)"), ["0,2", "1,3"]);
    let nodes = machine("numa:2(indexes=1,0) pu:1");
    assert_eq!(nodes.nodes()[0].cpus.to_string(), "1");
}

#[test]
fn errors_in_strings_say_what_and_where() {
    let ends = "a string of hwloc ends with its PUs: pu:N";
    assert_eq!(error(""), format!("column 1: {ends}"));
    assert_eq!(error("pack:2 Core:4"), format!("column 14: {ends}"));
    assert_eq!(error("pack:none pu:1"), "column 6: 'none' is not a number from 1 to 4294967295");
    assert_eq!(error("pack:0 pu:1"), "column 6: '0' is not a number from 1 to 4294967295");
    assert_eq!(
        error("smt:2 pu:1"),
        "column 1: 'smt' is no level; levels are package, die, numa, l1 to l5, core, pu, group"
    );
    assert_eq!(error("pack:2 3 pu:1"), "column 8: either all levels have a type, or none has");
    assert_eq!(error("core:2 core:2 pu:1"), "column 8: there are two levels of cores");
    assert_eq!(error("[numa] numa:2 pu:1"), "column 8: NUMA nodes are either a level or attached");
    assert_eq!(error("[core] pu:1"), "column 1: only [numa] is attached");
    assert_eq!(error("[numa pu:1"), "column 6: expected ']', found ' '");
    assert_eq!(
        error("l3:1(size=8X) pu:1"),
        "column 11: '8X' is not a size like 33554432, 32MiB or 16GB"
    );
    assert_eq!(
        error("l3:1(ways=8) pu:1"),
        "column 6: 'ways' is no attribute here; there are size and indexes"
    );
    assert_eq!(error("pu:2(indexes=0,0)"), "column 14: '0,0' names a number twice");
    assert_eq!(error("pu:2(indexes=0)"), "column 14: 1 indexes for 2 objects");
    assert_eq!(
        error("pu:4(indexes=3*2:1*2)"),
        "column 14: '3*2:1*2' does not number 4 objects from 0"
    );
    assert_eq!(
        error("core:4000000 pu:4000000000"),
        "column 1: the machine is too large; at most 16384 hardware threads and 1024 NUMA nodes"
    );
}
