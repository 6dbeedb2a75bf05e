//! Writes a topology as the kernel would write it.

use std::fmt::Display;

use crate::speed::{FASTEST, kinds};
use crate::{Core, CoreKind, CpuSet, NumaNode, PuId, Topology};

/// The files of a `/sys` tree that describe this machine: each a path below the
/// root and what it holds. [`super::read_sys_tree`] reads the same machine
/// from them. CPU numbers that the machine leaves out are offline CPUs.
///
/// CPU sets are written as lists and as bit maps, since other readers (hwloc)
/// search for the maps.
#[must_use]
pub fn sys_tree(topology: &Topology) -> Vec<(String, String)> {
    let online = topology.cpus();
    let last = online.iter().last().map_or(0, |pu| pu.0);
    let possible: CpuSet = (0..=last).map(PuId).collect();
    let offline = possible.difference(&online);

    let mut files = Files(Vec::new());
    for (name, set) in [
        ("online", &online),
        ("offline", &offline),
        ("possible", &possible),
        ("present", &possible),
    ] {
        files.add(format!("devices/system/cpu/{name}"), set);
    }
    for pu in offline.iter() {
        files.add(format!("devices/system/cpu/{pu}/online"), 0);
    }
    let capacities_differ = topology.cores().iter().any(|core| core.capacity < FASTEST);
    for core in topology.cores() {
        for pu in core.cpus.iter() {
            files.cpu(topology, core, pu);
            if capacities_differ {
                files.add(format!("devices/system/cpu/{pu}/cpu_capacity"), core.capacity);
            }
        }
    }
    let ids: CpuSet = topology.nodes().iter().map(|node| PuId(node.id.0)).collect();
    files.add("devices/system/node/online".to_owned(), ids);
    for node in topology.nodes() {
        files.node(node);
    }
    let capacities: Vec<u32> = topology.cores().iter().map(|core| core.capacity).collect();
    if topology.cores().iter().map(|core| core.kind).ne(kinds(&capacities, &[])) {
        for (name, kind) in
            [("cpu_core", CoreKind::Performance), ("cpu_atom", CoreKind::Efficiency)]
        {
            let of_kind = topology.cores().iter().filter(|core| core.kind == kind);
            let cpus = of_kind.fold(CpuSet::new(), |all, core| all.union(&core.cpus));
            files.add(format!("devices/{name}/cpus"), cpus);
        }
    }
    files.0
}

struct Files(Vec<(String, String)>);

impl Files {
    fn add(&mut self, path: String, value: impl Display) {
        self.0.push((path, format!("{value}\n")));
    }

    fn set(&mut self, list: String, map: String, set: &CpuSet) {
        self.add(list, set);
        self.add(map, bit_map(set));
    }

    fn cpu(&mut self, topology: &Topology, core: &Core, pu: PuId) {
        let file = |name: &str| format!("devices/system/cpu/{pu}/{name}");
        self.add(file("topology/physical_package_id"), core.package.0);
        self.add(file("topology/core_id"), core.id.0);
        self.set(file("topology/core_cpus_list"), file("topology/core_cpus"), &core.cpus);
        if let Some(package) = topology.packages().iter().find(|p| p.id == core.package) {
            let (list, map) = ("topology/package_cpus_list", "topology/package_cpus");
            self.set(file(list), file(map), &package.cpus);
        }
        if let Some(llc) = topology.llc(core.llc) {
            self.add(file("cache/index3/level"), 3);
            self.add(file("cache/index3/type"), "Unified");
            let (list, map) = ("cache/index3/shared_cpu_list", "cache/index3/shared_cpu_map");
            self.set(file(list), file(map), &llc.cpus);
            if let Some(bytes) = llc.bytes {
                self.add(file("cache/index3/size"), format_args!("{}K", bytes >> 10));
            }
        }
        if let Some(khz) = core.max_khz {
            self.add(file("cpufreq/cpuinfo_max_freq"), khz);
        }
    }

    fn node(&mut self, node: &NumaNode) {
        let file = |name: &str| format!("devices/system/node/{}/{name}", node.id);
        self.set(file("cpulist"), file("cpumap"), &node.cpus);
        if let Some(bytes) = node.memory_bytes {
            let total = format!("Node {} MemTotal: {:>15} kB", node.id.0, bytes >> 10);
            self.add(file("meminfo"), total);
        }
        if !node.distances.is_empty() {
            let distances: Vec<String> = node.distances.values().map(u32::to_string).collect();
            self.add(file("distance"), distances.join(" "));
        }
    }
}

/// A set as the kernel's bit map: words of 32 bits in hexadecimal, highest
/// first, separated by commas.
fn bit_map(set: &CpuSet) -> String {
    let words = set.iter().last().map_or(1, |last| last.0 / 32 + 1);
    let word = |w: u32| {
        (0..32).filter(|bit| set.contains(PuId(w * 32 + bit))).fold(0u32, |all, b| all | 1 << b)
    };
    (0..words).rev().map(|w| format!("{:08x}", word(w))).collect::<Vec<_>>().join(",")
}
