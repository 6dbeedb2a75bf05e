//! The machine as a read-only tree: packages, NUMA nodes, LLC domains, cores and hardware threads.
//!
//! # Problem
//! Symbiont decides which threads share a core, a last-level cache or a memory node. All rooms
//! need one description of that structure, for the host and for machines that are only described.
//!
//! # Approach
//! A [`Topology`] is built once from a flat list of [`HardwareThread`]s and never changes. It
//! contains its [`Origin`]; code that acts on real threads accepts only a [`HostTopology`], which
//! only the reader of the running host can make. Each source is a module that makes the list:
//!
//! | source | made by |
//! |---|---|
//! | the running host | [`HostTopology::read`] |
//! | a copy of a `/sys` tree | [`read_sys_tree`]; [`sysfs`] lists what is read and what stands in for missing files |
//! | an archive of such a copy | module `archive`, with the cargo feature `archive` |
//! | one readable line | [`Topology::synthetic`]; [`synthetic`] defines its form |
//! | an hwloc export or an hwloc synthetic string | module `hwloc`, with the cargo feature `hwloc` |
//!
//! A topology prints for people ([`Topology::summary`], `Display`); serde writes it and reads it back.
//!
//! # Terms and units
//! *Hardware thread* (PU): what the OS schedules on, named by its CPU number. *Core*: hardware
//! threads that share execution units. *LLC domain*: cores that share a last-level cache.
//! *Capacity*: speed of a core relative to the fastest of the machine, 1024 = fastest (the kernel's
//! `cpu_capacity`). Frequencies are in kHz, sizes in bytes.
//!
//! # Properties
//! - Cores partition the online hardware threads; each core lies in exactly
//!   one package, node and LLC domain (`levels_partition_the_machine`).
//! - Building does not depend on the order of the list (`order_of_the_list_does_not_matter`).
//! - Another machine's topology cannot be passed where the host's is asked for
//!   (the failing examples of [`HostTopology`]).
//! - What is written is read back, and damage is refused
//!   (`what_is_written_is_read_back_and_damage_is_refused`).
//! - A machine written as a `/sys` tree reads back the same
//!   (`what_is_written_is_read_back`).
//! - A corpus of machines is read as expected, by us and by hwloc
//!   (`every_machine_is_read_as_expected`, `hwloc_reads_what_we_read`).

#[cfg(any(test, feature = "archive"))]
pub mod archive;
mod cpuset;
mod draw;
#[cfg(test)]
mod golden;
mod host;
#[cfg(any(test, feature = "hwloc"))]
pub mod hwloc;
mod query;
mod render;
#[cfg(test)]
mod scratch;
mod speed;
pub mod synthetic;
pub mod sysfs;
mod tree;
mod words;

pub use cpuset::{CpuSet, ParseCpuSetError};
pub use host::HostTopology;
pub use speed::SpeedGroups;
pub use synthetic::{Synthetic, SyntheticError};
pub use sysfs::{LeftOut, SysfsError, read_sys_tree, read_tree_noting, sys_tree};
pub use tree::{
    Core, CoreId, CoreKind, HardwareThread, Llc, LlcId, NodeId, NumaNode, Origin, Package,
    PackageId, PuId, Topology, TopologyError,
};
pub use words::counted;
