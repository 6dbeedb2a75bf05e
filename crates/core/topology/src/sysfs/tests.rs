use proptest::prelude::*;

use super::*;
use crate::scratch;
use crate::synthetic::tests::lines;
use crate::{CoreKind, CpuSet, NodeId};

mod copies;
mod large_machines;
mod odd_machines;

/// A tree with these files below `devices`.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    scratch::tree(files.iter().map(|(path, content)| (format!("devices/{path}"), content))).unwrap()
}

fn read(files: &[(&str, &str)]) -> Result<Topology, SysfsError> {
    read_sys_tree(tree(files).path())
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn a_list_of_cpus_is_enough() {
    let t = read(&[("system/cpu/online", "0-2\n")]).unwrap();
    assert_eq!(t.cores().len(), 3);
    assert_eq!(t.llcs().len(), 1);
    assert_eq!(t.packages().len(), 1);
    assert_eq!(t.nodes().len(), 1);
    assert!(t.cores().iter().all(|c| c.capacity == 1024 && c.max_khz.is_none()));
}

#[test]
fn malformed_files_are_named() {
    let error = |path, content| {
        let mut files = vec![("system/cpu/online", "0-1"), ("system/node/node0/cpulist", "0-1")];
        files.retain(|(p, _)| *p != path);
        files.push((path, content));
        let root = tree(&files);
        let text = read_sys_tree(root.path()).unwrap_err().to_string();
        text.replace(&format!("{}/devices/", root.path().display()), "")
    };
    assert_eq!(
        error("system/cpu/online", "0-x"),
        "system/cpu/online holds '0-x': not a number at '0-x'"
    );
    assert_eq!(
        error("system/cpu/online", "0-1048575"),
        "system/cpu/online holds '0-1048575': CPU number too large at '0-1048575'"
    );
    assert_eq!(
        error("system/cpu/cpu1/topology/thread_siblings_list", "0"),
        "system/cpu/cpu1/topology/thread_siblings_list holds '0': cpu1 itself is missing"
    );
}

#[test]
fn a_tree_without_cpus_is_refused() {
    let error = read(&[("system/cpu/possible", "0")]).unwrap_err().to_string();
    assert!(error.contains("devices/system/cpu/online: No such file"), "{error}");
    let error = read(&[("system/cpu/online", "\n")]).unwrap_err().to_string();
    assert!(error.ends_with("describe no machine: the machine has no hardware thread"), "{error}");
}

#[test]
fn siblings_share_a_core_and_offline_ones_are_left_out() {
    let t = read(&[
        ("system/cpu/online", "0-2"),
        ("system/cpu/cpu0/topology/core_cpus_list", "0,2"),
        ("system/cpu/cpu1/topology/thread_siblings_list", "1,3"),
        ("system/cpu/cpu2/topology/core_cpus_list", "0,2"),
    ])
    .unwrap();
    let cores: Vec<_> = t.cores().iter().map(|c| c.cpus.to_string()).collect();
    assert_eq!(cores, ["0,2", "1"]);
}

#[test]
fn unknown_packages_are_one_package() {
    let t = read(&[
        ("system/cpu/online", "0-1"),
        ("system/cpu/cpu0/topology/physical_package_id", "-1"),
        ("system/cpu/cpu1/topology/physical_package_id", "-1"),
    ])
    .unwrap();
    assert_eq!(t.packages().len(), 1);
}

#[test]
fn the_highest_data_cache_is_the_last_level() {
    let t = read(&[
        ("system/cpu/online", "0-1"),
        ("system/cpu/cpu0/cache/index0/level", "1"),
        ("system/cpu/cpu0/cache/index0/type", "Data"),
        ("system/cpu/cpu0/cache/index0/shared_cpu_list", "0"),
        ("system/cpu/cpu0/cache/index2/level", "2"),
        ("system/cpu/cpu0/cache/index2/type", "Unified"),
        ("system/cpu/cpu0/cache/index2/size", "1024K"),
        ("system/cpu/cpu0/cache/index2/shared_cpu_list", "0"),
        ("system/cpu/cpu0/cache/index3/level", "3"),
        ("system/cpu/cpu0/cache/index3/type", "Instruction"),
        ("system/cpu/cpu0/cache/index3/shared_cpu_list", "0-1"),
    ])
    .unwrap();
    assert_eq!(t.llcs().len(), 2);
    assert_eq!((&t.llcs()[0].cpus, t.llcs()[0].bytes), (&set("0"), Some(1 << 20)));
    assert_eq!((&t.llcs()[1].cpus, t.llcs()[1].bytes), (&set("1"), None));
}

#[test]
fn without_caches_the_die_is_the_llc_domain() {
    let t = read(&[
        ("system/cpu/online", "0-3"),
        ("system/cpu/cpu2/topology/die_id", "1"),
        ("system/cpu/cpu3/topology/physical_package_id", "1"),
        ("system/cpu/cpu0/cache/index0/level", "1"),
        ("system/cpu/cpu0/cache/index0/type", "Data"),
        ("system/cpu/cpu0/cache/index0/shared_cpu_list", "0"),
    ])
    .unwrap();
    let llcs: Vec<_> = t.llcs().iter().map(|l| l.cpus.to_string()).collect();
    assert_eq!(llcs, ["0-1", "2", "3"]);
}

#[test]
fn a_core_lies_in_one_llc_domain_whatever_its_threads_say() {
    let t = read(&[
        ("system/cpu/online", "0-1"),
        ("system/cpu/cpu0/topology/core_cpus_list", "0-1"),
        ("system/cpu/cpu1/topology/core_cpus_list", "0-1"),
        ("system/cpu/cpu1/cache/index3/level", "3"),
        ("system/cpu/cpu1/cache/index3/type", "Unified"),
        ("system/cpu/cpu1/cache/index3/shared_cpu_list", "1"),
    ])
    .unwrap();
    assert_eq!((t.cores().len(), t.llcs().len()), (1, 1));
}

#[test]
fn capacities_are_scaled_to_the_fastest_online_core() {
    let t = read(&[
        ("system/cpu/online", "0-2"),
        ("system/cpu/cpu0/cpu_capacity", "200"),
        ("system/cpu/cpu1/cpu_capacity", "400"),
        ("system/cpu/cpu2/cpu_capacity", "800"),
    ])
    .unwrap();
    let speeds: Vec<_> = t.cores().iter().map(|c| (c.kind, c.capacity)).collect();
    let (big, little) = (CoreKind::Performance, CoreKind::Efficiency);
    assert_eq!(speeds, [(little, 256), (big, 512), (big, 1024)]);
}

#[test]
fn hybrids_without_capacity_get_an_estimate_from_the_frequency_ceiling() {
    let files = [
        ("system/cpu/online", "0-1"),
        ("cpu_core/cpus", "0"),
        ("cpu_atom/cpus", "1"),
        ("system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4000000"),
        ("system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "3000000"),
    ];
    let equal =
        [("system/cpu/cpu0/cpu_capacity", "1024"), ("system/cpu/cpu1/cpu_capacity", "1024")];
    let different =
        [("system/cpu/cpu0/cpu_capacity", "1024"), ("system/cpu/cpu1/cpu_capacity", "600")];
    for (more, expected) in [(&[][..], 768), (&equal, 768), (&different, 600)] {
        let t = read(&[&files, more].concat()).unwrap();
        assert_eq!((t.cores()[0].kind, t.cores()[0].capacity), (CoreKind::Performance, 1024));
        assert_eq!((t.cores()[1].kind, t.cores()[1].capacity), (CoreKind::Efficiency, expected));
    }
}

#[test]
fn nodes_with_memory_only_and_fake_nodes_are_read() {
    let t = read(&[
        ("system/cpu/online", "0-1"),
        ("system/node/node0/cpulist", "0-1"),
        ("system/node/node0/meminfo", "Node 0 MemTotal: 16 kB\n"),
        ("system/node/node0/distance", "10 17 20"),
        ("system/node/node1/cpulist", "0-1"),
        ("system/node/node8/cpulist", "\n"),
        ("system/node/node8/meminfo", "Node 8 MemTotal: 64 kB\n"),
    ])
    .unwrap();
    let nodes: Vec<_> = t.nodes().iter().map(|n| (n.id, n.cpus.len(), n.memory_bytes)).collect();
    let (first, fake, far) = (NodeId(0), NodeId(1), NodeId(8));
    assert_eq!(nodes, [(first, 2, Some(16384)), (fake, 0, None), (far, 0, Some(65536))]);
    assert_eq!(t.nodes()[0].distances, BTreeMap::from([(first, 10), (fake, 17), (far, 20)]));
}

proptest! {
    // Each case writes some hundred files.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read_back(line in lines()) {
        let machine = Topology::synthetic(&line).unwrap();
        let root = scratch::tree(sys_tree(&machine)).unwrap();
        let read = read_sys_tree(root.path()).unwrap();
        prop_assert_eq!(read.cores(), machine.cores());
        prop_assert_eq!(read.llcs(), machine.llcs());
        prop_assert_eq!(read.nodes(), machine.nodes());
        prop_assert_eq!(read.packages(), machine.packages());
    }

    #[test]
    fn a_damaged_file_is_read_or_named(
        line in lines(),
        at in any::<prop::sample::Index>(),
        damage in prop_oneof![".{0,20}", "[0-9,KM-]{0,12}"],
    ) {
        let mut files = sys_tree(&Topology::synthetic(&line).unwrap());
        let (path, content) = at.get_mut(&mut files);
        *content = damage;
        let path = path.clone();
        let root = scratch::tree(files).unwrap();
        match read_sys_tree(root.path()) {
            Ok(_) | Err(SysfsError::Contradiction { .. }) => {}
            Err(error) => prop_assert!(error.to_string().contains(&path), "{}", error),
        }
    }
}
