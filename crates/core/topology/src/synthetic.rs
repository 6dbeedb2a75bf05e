//! Machines from one readable line, for tests and the simulated machine.
//!
//! # Problem
//! A test, an experiment or a bug report must be able to name any machine
//! without having one, so that a person sees at a glance what it is.
//!
//! # Approach
//! A line holds `key:value` items. The levels `package`, `node`, `llc`,
//! `core` and `smt` nest in this order, each counted per one of the level
//! above; a level that is left out counts 1.
//!
//! | machine | line |
//! |---|---|
//! | POWER8, 10 cores SMT8, L3 private to each core, memory on one of two nodes | <code>node:1 llc:5 smt:8 cache:8M memory:32G \| node:1 llc:5 smt:8 cache:8M memory:0</code> |
//! | two-socket SMT2 Xeon, numbered as Linux does on x86 | `package:2 core:10 smt:2 cache:25M numbering:spread` |
//! | Bulldozer, 2 packages of 2 dies of 4 modules | `package:2 node:2 core:4 smt:2 cache:6M` |
//! | hybrid: 8 P-cores and 16 E-cores on one L3 | <code>core:8 smt:2 cache:36M \| core:16 kind:efficiency capacity:600</code> |
//! | big.LITTLE with an L2 for each cluster | <code>core:4 kind:efficiency capacity:446 cache:512K \| llc:1 core:4 cache:2M</code> |
//! | one fast core and seven slow ones | <code>core:1 \| core:7 capacity:512</code> |
//! | memory without CPUs | <code>core:4 memory:16G \| node:1 core:0 memory:64G</code> |
//!
//! *Parts.* `|` starts a part whose highest named level branches off from the parent of the
//! same level of the part before: `| core:16` adds cores to each LLC domain of that part,
//! `| llc:1 core:4` adds an LLC domain to each of its nodes, `| package:1 …` adds a package.
//! `| node:1 core:0` adds a node without CPUs. Properties of cores, levels and machine:
//! see [`Synthetic`].
//!
//! # Properties
//! - The canonical form describes the same machine and is its own canonical
//!   form (`the_canonical_form_describes_the_same_machine`).
//! - No text makes the parser panic (`any_text_is_read_or_refused_without_panic`).
//! - Errors say what and where (`errors_say_what_and_where`).

mod build;
mod parse;
mod print;

use crate::cpuset::MAX_CPU;
use crate::{CoreKind, CpuSet, Topology, TopologyError};

/// Most hardware threads of a machine: as many as a CPU list can name.
pub(crate) const MAX_PUS: u64 = MAX_CPU as u64 + 1;

/// Most NUMA nodes of a machine, as in Linux.
pub(crate) const MAX_NODES: u64 = 1 << 10;

/// A synthetic machine: the parsed form of a line. It prints in canonical form
/// (fixed order of keys, nothing that is a default).
///
/// *Properties of cores*: `kind:performance` (default) or `kind:efficiency`,
/// which needs a `capacity` below 1024; `capacity:1` to `1024` (default;
/// some core must have it); `mhz`, the frequency ceiling.
///
/// *Properties of levels*: `cache`, the size of each last-level cache, in a
/// part that starts LLC domains; `memory`, the size for each node, in a part
/// that starts nodes. Sizes are written with K, M, G or T (powers of 1024).
/// Not given means not known. All nodes are at distance 10 from themselves and
/// 20 from others, as Linux assumes without firmware tables.
///
/// *Properties of the machine*, in the first part: `numbering:adjacent`
/// (default) gives the threads of a core consecutive CPU numbers, as on POWER,
/// Arm, Bulldozer and Intel hybrids; `numbering:spread` numbers the first
/// threads of all cores, then all second threads, as on most x86 servers.
/// `offline:4-7` takes CPUs away after numbering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthetic {
    packages: Vec<PackageGroup>,
    numbering: Numbering,
    offline: CpuSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PackageGroup {
    count: u32,
    nodes: Vec<NodeGroup>,
}

/// Without LLC groups, the nodes have memory only.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeGroup {
    count: u32,
    memory_bytes: Option<u64>,
    llcs: Vec<LlcGroup>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LlcGroup {
    count: u32,
    bytes: Option<u64>,
    cores: Vec<CoreGroup>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CoreGroup {
    count: u32,
    smt: u32,
    kind: CoreKind,
    capacity: u32,
    mhz: Option<u32>,
}

/// Which CPU numbers the threads of a core have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Numbering {
    /// Consecutive ones.
    #[default]
    Adjacent,
    /// First threads of all cores first, then second threads.
    Spread,
}

/// A line that describes no machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntheticError {
    /// The line cannot be understood.
    #[error("synthetic machine '{text}', column {column}: {reason}")]
    Syntax {
        /// The line.
        text: String,
        /// Where, in characters from 1.
        column: usize,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// The line is understood, but there is no such machine.
    #[error("synthetic machine '{text}': {reason}")]
    Machine {
        /// The line.
        text: String,
        /// What is wrong with it.
        reason: TopologyError,
    },
}

impl Topology {
    /// A machine from a synthetic description; see [`crate::synthetic`].
    ///
    /// ```
    /// use symbiont_topology::Topology;
    ///
    /// let hybrid = Topology::synthetic("core:8 smt:2 | core:16 kind:efficiency capacity:600")?;
    /// assert_eq!(hybrid.cores().len(), 24);
    /// assert_eq!(hybrid.cpus().to_string(), "0-31");
    /// # Ok::<(), symbiont_topology::SyntheticError>(())
    /// ```
    ///
    /// # Errors
    /// When the line cannot be understood, or describes no machine.
    pub fn synthetic(text: &str) -> Result<Self, SyntheticError> {
        text.parse::<Synthetic>()?
            .build(text)
            .map_err(|reason| SyntheticError::Machine { text: text.to_owned(), reason })
    }
}

#[cfg(test)]
pub(crate) mod tests;
