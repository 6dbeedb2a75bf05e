//! The machine as a read-only tree: packages, NUMA nodes, LLC domains, cores
//! and hardware threads.
//!
//! # Problem
//! Everything that Symbiont decides is about which threads share a core, a
//! last-level cache or a memory node. All other rooms need one description of
//! that structure, for the host as well as for machines that are only
//! described (a recorded `/sys` tree, an hwloc export, a synthetic string).
//!
//! # Approach
//! A [`Topology`] is built once from a flat list of [`HardwareThread`]s and
//! never changes. Where it came from travels with it ([`Origin`]); only
//! [`HostTopology`], which nothing but the reader of the running host can
//! make, is accepted by code that acts on real threads. Each source is a
//! module that makes the flat list:
//!
//! | source | made by |
//! |---|---|
//! | the running host | [`HostTopology::read`] |
//! | a copy of a `/sys` tree | [`read_sys_tree`]; [`sysfs`] tells what is read and what stands in for missing files |
//! | one readable line | [`Topology::synthetic`]; its form is told in [`synthetic`] |
//! | an hwloc export or an hwloc synthetic string | module `hwloc`, with the cargo feature `hwloc` |
//!
//! A topology prints as people read it ([`Topology::summary`], `Display`) and
//! is written and read back by serde; a written one that is no tree is refused.
//!
//! # Terms and units
//! *Hardware thread* (PU): what the OS schedules on, named by the OS's CPU
//! number. *Core*: hardware threads that share execution units. *LLC domain*:
//! cores that share a last-level cache. *Capacity*: speed of a core relative to
//! the fastest of the machine, 1024 = fastest (the kernel's `cpu_capacity`).
//! Frequencies are in kHz, sizes in bytes.
//!
//! # Properties
//! - Cores partition the online hardware threads; each core lies in exactly
//!   one package, node and LLC domain (`levels_partition_the_machine`).
//! - Building does not depend on the order of the list
//!   (`order_of_the_list_does_not_matter`).
//! - Another machine's topology cannot be passed where the host's is asked for
//!   (the failing examples of [`HostTopology`]).
//! - What is written is read back, and damage is refused
//!   (`what_is_written_is_read_back_and_damage_is_refused`).
//! - A machine written as a `/sys` tree reads back the same
//!   (`what_is_written_is_read_back`).
//! - A corpus of machines is read as expected, by us and by hwloc
//!   (`every_machine_is_read_as_expected`, `hwloc_reads_what_we_read`).
//!
//! # Adding a machine to the corpus
//! On that machine run `scripts/gather-topology.sh 'what it is' > NAME.sys`,
//! put the file in `crates/topology/tests/golden`, run this crate's tests with
//! `UPDATE_GOLDEN=1`, and check `NAME.expected`, which that wrote.

mod cpuset;
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

pub use cpuset::{CpuSet, ParseCpuSetError};
pub use host::HostTopology;
pub use synthetic::{Synthetic, SyntheticError};
pub use sysfs::{SysfsError, read_sys_tree, sys_tree};
pub use tree::{
    Core, CoreId, CoreKind, HardwareThread, Llc, LlcId, NodeId, NumaNode, Origin, Package,
    PackageId, PuId, Topology, TopologyError,
};
