//! Reads a `/sys` tree: the running host's, or a copy of another machine's.
//!
//! # Problem
//! Linux describes a machine's structure in some hundred small files. Which of
//! them exist depends on the architecture, the kernel, the firmware and the
//! hypervisor, and a few say odd things (package -1, a core without caches).
//!
//! # Approach
//! What stands for `/sys` is a parameter: a directory, or what an archive holds. What is missing has a default, but
//! there must be a CPU. Only which CPUs are online and which share a core must be understood: other files that make no sense
//! count as missing and are named ([`LeftOut`]). Copies may have bit maps without lists (hwloc and lscpu read those).
//!
//! | file, below `devices/system/` | content | when missing |
//! |---|---|---|
//! | `cpu/online`, else `cpu/cpuN` without those of which `online` is 0 | the hardware threads | an error |
//! | `cpu/cpuN/topology/{core_cpus,thread_siblings}_list`, else without `_list` | the core | a core of its own |
//! | `cpu/cpuN/topology/physical_package_id` | the package (-1: not known) | package 0 |
//! | `cpu/cpuN/cache/index*/{level,type,size,shared_cpu_list}`, else `shared_cpu_map` | the LLC domain: the highest unified or data cache, level 2 or higher | the die is the domain |
//! | `cpu/cpuN/topology/die_id` | the die, used only without cache | the package is the die |
//! | `cpu/cpuN/cpu_capacity` | capacity, scaled to 1024 for the fastest | see below |
//! | `cpu/cpuN/cpufreq/cpuinfo_max_freq` | frequency ceiling in kHz | not known |
//! | `node/nodeN/cpulist`, else `cpumap` | CPUs of a NUMA node | all CPUs in the lowest node, node 0 if there is none |
//! | `node/nodeN/meminfo` | its memory | not known |
//! | `node/nodeN/distance`, `node/{online,possible}` | distances, see `node.rs` | not known |
//! | `../cpu_{core,atom,lowpower}/cpus` | core types (Intel hybrids) | see below |
//! | `cpu/cpuN/regs/identification/midr_el1` | designs (Arm), of which types are made | see below |
//!
//! Core types and capacities: see `speed.rs`. Modules and contradictions: see `cpu.rs`.
//!
//! Sources: the kernel's Documentation/ABI/stable/sysfs-devices-system-cpu,
//! stable/sysfs-devices-node, testing/sysfs-devices-system-cpu, admin-guide/cputopology.rst.
//!
//! # Properties
//! - Any value text is read or refused without panic (`any_text_is_read_or_refused_without_panic`).
//! - A file that makes no sense is named, and refuses the machine only if it decides placement
//!   (`malformed_files_are_named`, `what_says_nothing_of_placement_is_left_out`, `a_damaged_file_is_read_or_named`).
//! - What [`sys_tree`] writes is read back as the same machine (`what_is_written_is_read_back`).
//! - Copies that have other files are read, too (`bit_maps_count_where_there_are_no_lists`,
//!   `cpus_with_a_folder_are_online_where_no_list_says_which_are`).
//! - hwloc reads the same structure (`hwloc_reads_what_we_read`, `hwloc_reads_random_machines_as_we_do`).

mod cpu;
pub(crate) mod files;
mod left_out;
mod node;
mod value;
mod write;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Origin, PuId, Topology, TopologyError};
use files::{Folder, Sys, Tree};
pub use left_out::LeftOut;
pub use write::sys_tree;

/// A `/sys` tree that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SysfsError {
    /// A file or directory could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file holds something else than the kernel writes there.
    #[error("{} holds '{text}': {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it holds (its beginning).
        text: String,
        /// What is wrong with that.
        reason: String,
    },
    /// The files contradict each other.
    #[error("the files in {} describe no machine: {source}", root.display())]
    Contradiction {
        /// The root of the tree.
        root: PathBuf,
        /// What does not fit.
        source: TopologyError,
    },
}

/// Reads a machine from a copy of its `/sys` tree; `root` holds what `/sys`
/// holds (`root/devices/system/cpu/online` and so on).
///
/// # Errors
/// When it has no CPU, or a file that decides placement makes no sense.
pub fn read_sys_tree(root: &Path) -> Result<Topology, SysfsError> {
    read_tree_noting(root).map(|(topology, _)| topology)
}

/// The same, and what was left out.
///
/// # Errors
/// As [`read_sys_tree`].
pub fn read_tree_noting(root: &Path) -> Result<(Topology, Vec<LeftOut>), SysfsError> {
    read_tree(&Folder(root), Origin::SysTree(root.display().to_string()))
}

pub(crate) fn read_tree(
    tree: &dyn Tree,
    origin: Origin,
) -> Result<(Topology, Vec<LeftOut>), SysfsError> {
    let sys = Sys::new(tree);
    let online = sys.online()?;
    let (nodes, fallback) = node::read(&sys);
    let node_of: BTreeMap<PuId, _> =
        nodes.iter().rev().flat_map(|n| n.cpus.iter().map(|pu| (pu, n.id))).collect();
    let mut threads = cpu::read(&sys, &online)?;
    let mut node_of_core = BTreeMap::new();
    for thread in &threads {
        if let Some(&node) = node_of.get(&thread.pu) {
            let lowest = node_of_core.entry(thread.core).or_insert(node);
            *lowest = node.min(*lowest);
        }
    }
    for thread in &mut threads {
        thread.node = node_of_core.get(&thread.core).copied().unwrap_or(fallback);
    }
    let topology = Topology::new(origin, threads, nodes)
        .map_err(|source| SysfsError::Contradiction { root: tree.root().to_owned(), source })?;
    Ok((topology, sys.left_out()))
}

#[cfg(test)]
mod tests;
