//! More CPUs than older kernels and libraries have in a set, and nodes that are parts of a package.

use super::*;
use crate::sys_tree;

/// The machine of a line, written as a `/sys` tree with some files changed, and read again.
fn written(line: &str, change: impl Fn(&str, String) -> String) -> Topology {
    let files = sys_tree(&Topology::synthetic(line).unwrap());
    let files = files.into_iter().map(|(path, content)| {
        let content = change(&path, content);
        (path, content)
    });
    read_sys_tree(scratch::tree(files).unwrap().path()).unwrap()
}

#[test]
fn cpus_above_1023_are_read_from_lists_and_from_bit_maps() {
    let line = "package:2 core:160 smt:4 numbering:spread";
    let expected = Topology::synthetic(line).unwrap();
    assert_eq!(expected.cpus().len(), 1280);
    let lists = written(line, |_, content| content);
    // A list that makes no sense leaves the bit map next to it.
    let maps = written(line, |path, content| {
        let is_list = path.ends_with("shared_cpu_list") || path.ends_with("cpulist");
        if is_list { "?".to_owned() } else { content }
    });
    for read in [lists, maps] {
        assert_eq!(read.cores(), expected.cores());
        assert_eq!(read.llcs(), expected.llcs());
        assert_eq!(read.nodes(), expected.nodes());
        assert_eq!(read.packages(), expected.packages());
        assert_eq!(read.cores()[319].cpus.to_string(), "319,639,959,1279");
        assert_eq!(read.core_of(PuId(1279)), read.core_of(PuId(319)));
    }
}

#[test]
fn sub_numa_clusters_share_the_cache_of_their_package() {
    let packages = ["0-15", "16-31"];
    let cores = |node: usize| packages[node / 4];
    let t = written("package:2 node:4 core:4", |path, content| {
        let number = |after: &str| -> Option<usize> {
            path.split_once(after)?.1.split('/').next()?.parse().ok()
        };
        match (number("system/cpu/cpu"), number("system/node/node")) {
            (Some(cpu), _) if path.ends_with("shared_cpu_list") => cores(cpu / 4).to_owned(),
            (_, Some(node)) if path.ends_with("distance") => (0..8)
                .map(|other| match (other == node, other / 4 == node / 4) {
                    (true, _) => "10 ",
                    (_, true) => "12 ",
                    _ => "21 ",
                })
                .collect(),
            _ => content,
        }
    });
    assert_eq!((t.packages().len(), t.nodes().len(), t.llcs().len()), (2, 8, 2));
    let llcs: Vec<String> = t.llcs().iter().map(|llc| llc.cpus.to_string()).collect();
    assert_eq!(llcs, packages);
    assert_eq!(t.nodes()[5].cpus, set("20-23"));
    let distances: Vec<u32> = t.nodes()[5].distances.values().copied().collect();
    assert_eq!(distances, [21, 21, 21, 21, 12, 10, 12, 12]);
}
