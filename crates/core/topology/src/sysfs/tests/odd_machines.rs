//! Machines of which some files are odd, missing or too many.

use std::collections::BTreeMap;

use super::{read, set, tree};
use crate::{CoreKind, NodeId, Topology, read_tree_noting};

pub(super) type Files = Vec<(String, String)>;

/// Number, CPUs, and distances by number.
pub(super) type Node = (u32, String, Vec<(u32, u32)>);

pub(super) fn files(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, content)| (format!("system/{path}"), (*content).to_owned())).collect()
}

/// Cores with these sibling lists.
pub(super) fn with_cores(mut all: Files, cores: &[&str]) -> Files {
    for core in cores {
        for pu in set(core).iter() {
            let path = format!("system/cpu/{pu}/topology/core_cpus_list");
            all.push((path, format!("{core}\n")));
        }
    }
    all
}

/// The machine, and what was left out, with paths below `devices`.
pub(super) fn noting(all: &[(String, String)]) -> (Topology, Vec<String>) {
    let all: Vec<(&str, &str)> = all.iter().map(|(p, c)| (p.as_str(), c.as_str())).collect();
    let root = tree(&all);
    let (topology, left_out) = read_tree_noting(root.path()).unwrap();
    let below = format!("{}/devices/", root.path().display());
    (topology, left_out.iter().map(|what| what.to_string().replace(&below, "")).collect())
}

pub(super) fn cores(t: &Topology) -> Vec<String> {
    t.cores().iter().map(|core| core.cpus.to_string()).collect()
}

pub(super) fn nodes(t: &Topology) -> Vec<Node> {
    let distances = |all: &BTreeMap<NodeId, u32>| all.iter().map(|(to, d)| (to.0, *d)).collect();
    t.nodes().iter().map(|n| (n.id.0, n.cpus.to_string(), distances(&n.distances))).collect()
}

#[test]
fn cpu_0_may_be_offline() {
    let all = files(&[
        ("cpu/online", "1-3"),
        ("cpu/offline", "0"),
        ("cpu/cpu0/online", "0"),
        ("node/node0/cpulist", "1-3"),
    ]);
    let (t, left_out) = noting(&with_cores(all, &["1", "2-3"]));
    assert_eq!(cores(&t), ["1", "2-3"]);
    assert_eq!(nodes(&t), [(0, "1-3".into(), vec![])]);
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn numbers_of_cpus_and_nodes_may_have_holes() {
    let all = files(&[
        ("cpu/online", "0-1,109-127"),
        ("node/online", "0,8"),
        ("node/possible", "0-255"),
        ("node/node0/cpulist", "0-1"),
        ("node/node0/distance", "10 40"),
        ("node/node8/cpulist", "109-127"),
        ("node/node8/distance", "40 10"),
        ("cpu/cpu109/topology/physical_package_id", "8"),
    ]);
    let (t, left_out) = noting(&with_cores(all, &["0-1", "109-111", "112-115", "116-119"]));
    assert_eq!(cores(&t)[..4], ["0-1", "109-111", "112-115", "116-119"]);
    // What says nothing of its core is a core; what one sibling says of the package stands for all.
    assert_eq!((t.cores().len(), t.cpus().len()), (12, 21));
    assert_eq!(t.core_of(crate::PuId(111)).unwrap().package.0, 8);
    let expected = [(0, "0-1", [(0, 10), (8, 40)]), (8, "109-127", [(0, 40), (8, 10)])];
    assert_eq!(nodes(&t), expected.map(|(n, cpus, to)| (n, cpus.to_owned(), to.to_vec())));
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn smt_may_be_off_at_run_time() {
    let all = files(&[("cpu/online", "0,2,4,6"), ("cpu/smt/control", "off")]);
    let (t, _) = noting(&with_cores(all, &["0", "2", "4", "6"]));
    assert_eq!((cores(&t), t.smt_width()), (["0", "2", "4", "6"].map(str::to_owned).to_vec(), 1));
}

#[test]
fn only_the_fast_cores_of_a_hybrid_may_have_smt() {
    let hybrid = |online, core_list: &str, cores: &[&str]| {
        let mut all = with_cores(files(&[("cpu/online", online)]), cores);
        all.push(("cpu_core/cpus".into(), core_list.into()));
        all.push(("cpu_atom/cpus".into(), "4-5".into()));
        for pu in 0..6 {
            let khz = if pu < 4 { "5000000" } else { "4000000" };
            let path = format!("system/cpu/cpu{pu}/cpufreq/cpuinfo_max_freq");
            all.push((path, khz.into()));
        }
        noting(&all).0
    };
    let (fast, small) = ((CoreKind::Performance, 1024), (CoreKind::Efficiency, 819));
    for (online, list, sets) in
        [("0-5", "0-3", ["0-1", "2-3", "4", "5"]), ("0,2,4-5", "0,2", ["0", "2", "4", "5"])]
    {
        let t = hybrid(online, list, &sets);
        assert_eq!(cores(&t), sets);
        let speeds: Vec<_> = t.cores().iter().map(|core| (core.kind, core.capacity)).collect();
        assert_eq!(speeds, [fast, fast, small, small]);
    }
}

#[test]
fn favoured_cores_are_no_type() {
    let mut all = files(&[("cpu/online", "0-7")]);
    for pu in 0..8 {
        let khz = if pu == 2 || pu == 5 { "5800000" } else { "5500000" };
        all.push((format!("system/cpu/cpu{pu}/cpufreq/cpuinfo_max_freq"), khz.into()));
    }
    let alike = |t: &Topology| {
        t.cores().iter().all(|c| (c.kind, c.capacity) == (CoreKind::Performance, 1024))
    };
    assert!(alike(&noting(&all).0));
    let first: Vec<u32> = noting(&all).0.cores_by_speed().iter().map(|core| core.id.0).collect();
    assert_eq!(first[..3], [2, 5, 0]);
    // Nor where types are listed beyond them.
    all.push(("cpu_core/cpus".into(), "0-7".into()));
    assert!(alike(&noting(&all).0));
}

#[test]
fn gb10_has_two_types() {
    let small = [718u32, 722, 726, 731, 718];
    let large = [997u32, 1003, 1010, 1024, 1017];
    let mut all = files(&[("cpu/online", "0-19")]);
    let pairs = small.iter().chain(&large).chain(&small).chain(&large);
    for (pu, capacity) in pairs.enumerate() {
        let path = |name| format!("system/cpu/cpu{pu}/{name}");
        let part = if *capacity > 800 { "d85" } else { "d87" };
        all.push((path("cpu_capacity"), capacity.to_string()));
        all.push((path("regs/identification/midr_el1"), format!("0x00000000410f{part}1\n")));
    }
    let with_designs = noting(&all).0;
    all.retain(|(path, _)| !path.contains("midr"));
    for t in [with_designs, noting(&all).0] {
        let is_small = |pu: u32| pu % 10 < 5;
        for core in t.cores() {
            let expected = match core.cpus.first().is_some_and(|pu| is_small(pu.0)) {
                true => CoreKind::Efficiency,
                false => CoreKind::Performance,
            };
            assert_eq!(core.kind, expected, "{}", core.cpus);
        }
    }
}

#[test]
fn designs_of_all_cpus_count() {
    let mut all = files(&[
        ("cpu/online", "0-3"),
        ("cpu/cpu0/cpu_capacity", "600"),
        ("cpu/cpu1/cpu_capacity", "1024"),
        ("cpu/cpu2/cpu_capacity", "1024"),
        ("cpu/cpu3/cpu_capacity", "300"),
    ]);
    // The same core with two ceilings, and a smaller one.
    for (pu, midr) in ["0x414fd0b1", "0x414fd0b1", "0x413fd0b0", "0x412fd050"].iter().enumerate() {
        let path = format!("system/cpu/cpu{pu}/regs/identification/midr_el1");
        all.push((path, (*midr).into()));
    }
    let kinds: Vec<_> = noting(&all).0.cores().iter().map(|core| core.kind).collect();
    let (fast, small) = (CoreKind::Performance, CoreKind::Efficiency);
    assert_eq!(kinds, [fast, fast, fast, small]);
}

#[test]
fn low_power_cores_are_the_slowest_type() {
    let mut all = files(&[("cpu/online", "0-3")]);
    for (pu, khz) in [(0, "5400000"), (1, "5400000"), (2, "4500000"), (3, "2500000")] {
        all.push((format!("system/cpu/cpu{pu}/cpufreq/cpuinfo_max_freq"), khz.into()));
    }
    for (pmu, cpus) in [("core", "0-1"), ("atom", "2"), ("lowpower", "3")] {
        all.push((format!("cpu_{pmu}/cpus"), cpus.into()));
    }
    let speeds = |all: &[(String, String)]| -> Vec<_> {
        noting(all).0.cores().iter().map(|core| (core.kind, core.capacity)).collect()
    };
    let (fast, small) = (CoreKind::Performance, CoreKind::Efficiency);
    assert_eq!(speeds(&all), [(fast, 1024), (fast, 1024), (small, 853), (small, 474)]);
    // A kernel that lists no low-power cores yet: what is not among the fast ones is not fast.
    all.retain(|(path, _)| !path.contains("lowpower"));
    assert_eq!(speeds(&all)[3].0, small);
}

#[test]
fn a_node_may_have_memory_only() {
    let (t, left_out) = noting(&files(&[
        ("cpu/online", "0-1"),
        ("node/online", "0,2"),
        ("node/has_cpu", "0"),
        ("node/node0/cpulist", "0-1"),
        ("node/node0/distance", "10 20"),
        ("node/node2/cpulist", "\n"),
        ("node/node2/meminfo", "Node 2 MemTotal: 64 kB\n"),
        ("node/node2/distance", "20 10"),
    ]));
    let expected =
        [(0, "0-1".to_owned(), vec![(0, 10), (2, 20)]), (2, String::new(), vec![(0, 20), (2, 10)])];
    assert_eq!(nodes(&t), expected);
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn distances_belong_to_nodes_by_number_however_many_there_are() {
    let read = |online: &str, possible: &str, distance: &str| {
        let mut all = files(&[
            ("cpu/online", "0-1"),
            ("node/node0/cpulist", "0"),
            ("node/node2/cpulist", "1"),
            ("node/node0/distance", distance),
        ]);
        for (name, list) in [("online", online), ("possible", possible)] {
            if !list.is_empty() {
                all.push((format!("system/node/{name}"), list.into()));
            }
        }
        let (t, left_out) = noting(&all);
        (nodes(&t)[0].2.clone(), left_out)
    };
    let both = vec![(0, 10), (2, 21)];
    // A node that is gone from the tree (its CPUs were offline), or that came meanwhile.
    assert_eq!(read("0-2", "0-3", "10 15 21"), (both.clone(), vec![]));
    assert_eq!(read("0", "0-2", "10 15 21"), (both.clone(), vec![]));
    assert_eq!(read("0", "", "10 21"), (both.clone(), vec![]));
    assert_eq!(read("", "", "10 21"), (both, vec![]));
    for distance in ["10", "10 20 30 40", ""] {
        let (distances, left_out) = read("0,2", "0-2", distance);
        assert_eq!((distances.len(), left_out.len()), (0, 1), "{distance}");
        let count = distance.split_whitespace().count();
        let counted = crate::counted(count, "distance");
        let expected =
            format!("system/node/node0/distance holds '{distance}': {counted} for 2 nodes");
        assert_eq!(left_out, [expected]);
    }
}

/// A CPU that came online while the files were copied; siblings that two nodes list.
#[test]
fn a_core_lies_in_one_node_whatever_the_nodes_list() {
    let nodes_of = |first: &str, second: &str| {
        let all = files(&[
            ("cpu/online", "0-3"),
            ("node/node0/cpulist", first),
            ("node/node1/cpulist", second),
        ]);
        let t = noting(&with_cores(all, &["0-1", "2-3"])).0;
        t.cores().iter().map(|core| core.node.0).collect::<Vec<_>>()
    };
    assert_eq!(nodes_of("0-1", "2"), [0, 1]);
    assert_eq!(nodes_of("0-1", "3"), [0, 1]);
    assert_eq!(nodes_of("0-2", "3"), [0, 0]);
    assert_eq!(nodes_of("0", ""), [0, 0]);
}

#[test]
fn a_nul_byte_at_the_end_is_white_space() {
    let (t, left_out) = noting(&files(&[
        ("cpu/online", "0-3\n\0"),
        ("cpu/cpu0/topology/core_cpus_list", "0-1\0"),
        ("cpu/cpu1/topology/core_cpus_list", "0-1\n\0"),
        ("node/node0/cpulist", "0-3\n\0"),
    ]));
    assert_eq!(cores(&t), ["0-1", "2", "3"]);
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn what_says_nothing_of_placement_is_left_out() {
    let left_out = |path: &str, content: &str| {
        let mut all = files(&[
            ("cpu/online", "0-3"),
            ("cpu/cpu0/cache/index2/level", "2"),
            ("cpu/cpu0/cache/index2/type", "Unified"),
            ("cpu/cpu0/cache/index2/shared_cpu_list", "0-1"),
            ("node/node0/cpulist", "0-3"),
        ]);
        all.retain(|(p, _)| *p != format!("system/{path}"));
        all.push((format!("system/{path}"), content.into()));
        let (t, left_out) = noting(&with_cores(all, &["0-1", "2-3"]));
        assert_eq!((cores(&t), t.nodes().len()), (vec!["0-1".to_owned(), "2-3".into()], 1));
        assert_eq!(left_out.len(), 1, "{path}: {left_out:?}");
        assert!(left_out[0].starts_with(&format!("system/{path} holds ")), "{left_out:?}");
    };
    left_out("cpu/cpu0/topology/physical_package_id", "zero");
    left_out("cpu/cpu1/topology/physical_package_id", "\u{fffd}");
    left_out("cpu/cpu0/topology/die_id", "x");
    left_out("cpu/cpu1/cpu_capacity", "0");
    left_out("cpu/cpu1/cpufreq/cpuinfo_max_freq", "<unknown>");
    left_out("cpu/cpu1/regs/identification/midr_el1", "41");
    left_out("cpu/cpu0/cache/index2/level", "two");
    left_out("cpu/cpu0/cache/index2/size", "big");
    left_out("cpu/cpu0/cache/index2/shared_cpu_list", "2-3");
    left_out("node/node0/cpulist", "all");
    left_out("node/node0/meminfo", "nothing");
    left_out("node/possible", "all");
}

#[test]
fn files_of_one_kind_are_named_once() {
    let mut all = files(&[("cpu/online", "0-3")]);
    for pu in 0..4 {
        all.push((format!("system/cpu/cpu{pu}/cpu_capacity"), "-".into()));
    }
    let (_, left_out) = noting(&all);
    assert_eq!(
        left_out,
        ["system/cpu/cpu0/cpu_capacity holds '-': expected a number \
             (and 3 more of devices/system/cpu/cpu*/cpu_capacity)"]
    );
}

#[test]
fn which_cpus_share_a_core_must_be_understood() {
    for (path, content) in [
        ("system/cpu/cpu1/topology/core_cpus_list", "0-x"),
        ("system/cpu/cpu1/topology/thread_siblings_list", "0"),
        ("system/cpu/online", "all"),
    ] {
        let all = [("system/cpu/online", "0-1"), (path, content)];
        assert!(read(&all).is_err(), "{path}");
    }
}
