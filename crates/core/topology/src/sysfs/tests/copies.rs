//! What copies of other machines' `/sys` differ by, each as small as it can be: `scripts/topology-corpus.sh` reads the
//! copies themselves.

use super::odd_machines::{Files, cores, files, nodes, noting, with_cores};
use super::read;
use crate::Topology;

/// The files of a last-level cache of each CPU: by a list or a bit map.
fn with_cache(mut all: Files, pu: u32, size: &str, (name, shared): (&str, &str)) -> Files {
    for (name, content) in [("level", "3"), ("type", "Unified"), ("size", size), (name, shared)] {
        all.push((format!("system/cpu/cpu{pu}/cache/index3/{name}"), content.into()));
    }
    all
}

fn llcs(t: &Topology) -> Vec<(String, u64)> {
    t.llcs().iter().map(|l| (l.cpus.to_string(), l.bytes.unwrap_or(0) >> 20)).collect()
}

#[test]
fn bit_maps_count_where_there_are_no_lists() {
    let mut all = files(&[
        ("cpu/online", "0-3"),
        ("cpu/cpu0/topology/core_cpus", "00000000,00000005"),
        ("cpu/cpu1/topology/thread_siblings", "a"),
        ("cpu/cpu2/topology/thread_siblings", "00000005"),
        ("cpu/cpu3/topology/core_cpus", "0000000a"),
        ("node/node0/cpumap", "00000005"),
        ("node/node1/cpumap", "00000000,0000000a"),
    ]);
    for pu in 0..4 {
        let shared = if pu % 2 == 0 { "00000005" } else { "0000000a" };
        all = with_cache(all, pu, "8192K", ("shared_cpu_map", shared));
    }
    let (t, left_out) = noting(&all);
    assert_eq!(cores(&t), ["0,2", "1,3"]);
    assert_eq!(nodes(&t), [(0, "0,2".into(), vec![]), (1, "1,3".into(), vec![])]);
    assert_eq!(llcs(&t), [("0,2".into(), 8), ("1,3".into(), 8)]);
    assert!(left_out.is_empty(), "{left_out:?}");

    // A list that is there counts.
    all.push(("system/cpu/cpu0/topology/core_cpus_list".into(), "0".into()));
    all.push(("system/cpu/cpu2/topology/thread_siblings_list".into(), "2".into()));
    all.push(("system/node/node1/cpulist".into(), "1".into()));
    let t = noting(&all).0;
    assert_eq!(cores(&t), ["0", "1,3", "2"]);
    assert_eq!(nodes(&t)[1].1, "1,3", "the core lies where the list has one of its threads");
}

#[test]
fn a_bit_map_of_siblings_must_be_understood_and_name_the_cpu() {
    for content in ["", "0-1", "0x3", "00000001"] {
        let all = [("system/cpu/online", "0-1"), ("system/cpu/cpu1/topology/core_cpus", content)];
        let error = read(&all).unwrap_err().to_string();
        assert!(error.contains("cpu1/topology/core_cpus holds '"), "{error}");
    }
}

/// Itanium: the file is there, and no CPU in it.
#[test]
fn a_cache_that_no_cpu_shares_is_left_out() {
    let all = with_cache(files(&[("cpu/online", "0-1")]), 0, "9M", ("shared_cpu_map", "00000000"));
    let (t, left_out) = noting(&all);
    assert_eq!(llcs(&t), [("0-1".into(), 0)]);
    let expected = "system/cpu/cpu0/cache/index3/shared_cpu_map holds '': cpu0 itself is missing";
    assert_eq!(left_out, [expected]);
}

/// Kernels before 2.6.26, and copies that were made by hand.
#[test]
fn cpus_with_a_folder_are_online_where_no_list_says_which_are() {
    let all = files(&[
        ("cpu/cpu0/topology/thread_siblings", "00000003"),
        ("cpu/cpu1/topology/thread_siblings", "00000003"),
        ("cpu/cpu1/online", "1"),
        ("cpu/cpu2/online", "0"),
        ("cpu/cpu10/crash_notes", ""),
        ("cpu/cpu4000000000/online", "1"),
        ("cpu/cpufreq/boost", "1"),
        ("cpu/cpuidle/current_driver", "none"),
    ]);
    let (t, left_out) = noting(&all);
    assert_eq!(cores(&t), ["0-1", "10"]);
    assert!(left_out.is_empty(), "{left_out:?}");
    let error = read(&[("system/cpu/cpu2/online", "0")]).unwrap_err().to_string();
    assert!(error.contains("devices/system/cpu/online: No such file"), "{error}");
}

/// A processor of two dies, one of which has more cache stacked on it.
#[test]
fn dies_may_have_last_level_caches_of_different_sizes() {
    let mut all = files(&[("cpu/online", "0-31")]);
    for pu in 0..32 {
        let (size, shared) =
            if pu % 16 < 8 { ("98304K", "0-7,16-23") } else { ("32768K", "8-15,24-31") };
        all = with_cache(all, pu, size, ("shared_cpu_list", shared));
        all = with_cores(all, &[&format!("{},{}", pu % 16, pu % 16 + 16)]);
    }
    let t = noting(&all).0;
    assert_eq!(llcs(&t), [("0-7,16-23".into(), 96), ("8-15,24-31".into(), 32)]);
    assert_eq!((t.cores().len(), t.smt_width(), t.packages().len()), (16, 2, 1));
}

#[test]
fn more_than_1024_cpus_are_read() {
    let mut all = files(&[
        ("cpu/online", "0-1535"),
        ("node/node0/cpulist", "0-383,768-1151"),
        ("node/node1/cpulist", "384-767,1152-1535"),
    ]);
    for core in 0..768 {
        all = with_cores(all, &[&format!("{core},{}", core + 768)]);
    }
    for pu in 0..1536 {
        let package = u32::from(pu % 768 >= 384).to_string();
        all.push((format!("system/cpu/cpu{pu}/topology/physical_package_id"), package));
    }
    let (t, left_out) = noting(&all);
    assert_eq!((t.cpus().len(), t.cores().len(), t.smt_width()), (1536, 768, 2));
    let packages: Vec<_> = t.packages().iter().map(|p| p.cpus.to_string()).collect();
    assert_eq!(packages, ["0-383,768-1151", "384-767,1152-1535"]);
    assert_eq!(nodes(&t)[1].1, "384-767,1152-1535");
    assert!(left_out.is_empty(), "{left_out:?}");
}

/// Two packages of two clusters each: the cache is the package's, or the cluster's, by how the kernel names it.
#[test]
fn sub_numa_clusters_may_share_a_last_level_cache() {
    let machine = |by_package: bool| {
        let mut all = files(&[("cpu/online", "0-7"), ("node/online", "0-3")]);
        for node in 0..4 {
            let cpus = format!("{}-{}", node * 2, node * 2 + 1);
            let distance = ["10 12 21 21", "12 10 21 21", "21 21 10 12", "21 21 12 10"][node];
            all.push((format!("system/node/node{node}/cpulist"), cpus));
            all.push((format!("system/node/node{node}/distance"), distance.into()));
        }
        for pu in 0..8 {
            let first = if by_package { pu / 4 * 4 } else { pu / 2 * 2 };
            let shared = format!("{first}-{}", first + if by_package { 3 } else { 1 });
            all = with_cache(all, pu, "32M", ("shared_cpu_list", &shared));
            let package = (pu / 4).to_string();
            all.push((format!("system/cpu/cpu{pu}/topology/physical_package_id"), package));
        }
        noting(&all).0
    };
    let (by_package, by_cluster) = (machine(true), machine(false));
    assert_eq!(llcs(&by_package), [("0-3".into(), 32), ("4-7".into(), 32)]);
    assert_eq!(by_cluster.llcs().len(), 4);
    for t in [by_package, by_cluster] {
        assert_eq!((t.nodes().len(), t.packages().len()), (4, 2));
        assert_eq!(nodes(&t)[2], (2, "4-5".into(), vec![(0, 21), (1, 21), (2, 10), (3, 12)]));
    }
}

/// Node 1 has CPUs, all offline; node 2 was taken from the tree, but distances to it are still listed.
#[test]
fn a_node_whose_cpus_are_offline_has_none() {
    let (t, left_out) = noting(&files(&[
        ("cpu/online", "0-1"),
        ("cpu/offline", "2-5"),
        ("node/online", "0-2"),
        ("node/node0/cpulist", "0-1"),
        ("node/node0/distance", "10 21 31"),
        ("node/node1/cpulist", "2-3"),
        ("node/node1/distance", "21 10 31"),
    ]));
    let expected =
        [(0, "0-1".to_owned(), vec![(0, 10), (1, 21)]), (1, String::new(), vec![(0, 21), (1, 10)])];
    assert_eq!(nodes(&t), expected);
    assert!(left_out.is_empty(), "{left_out:?}");
}
