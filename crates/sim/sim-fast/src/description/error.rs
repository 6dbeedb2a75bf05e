//! What can be wrong with a description, and where.

use symbiont_topology::{CoreKind, TopologyError};

/// A description that cannot be read: file, line, key and reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {key}: {reason}")]
pub struct DescriptionError {
    /// The description's name, as given to
    /// [`parse`](super::Description::parse).
    pub file: String,
    /// Line of the text, from 1.
    pub line: usize,
    /// Path of the key, for example `core.performance.rob.entries`; `document`
    /// where the text is no TOML at all.
    pub key: String,
    /// What is wrong, and what is expected.
    pub reason: String,
}

/// More cores or hardware threads than there are, or none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Restriction {
    /// There are not so many.
    #[error("{machine} has {cores} cores of {smt} hardware threads, not {asked}")]
    Count {
        /// The machine.
        machine: String,
        /// Its cores.
        cores: usize,
        /// Hardware threads of the widest.
        smt: usize,
        /// What was asked for.
        asked: String,
    },
    /// There is no core of that type.
    #[error("{machine} has no {core_type:?} cores")]
    CoreType {
        /// The machine.
        machine: String,
        /// What was asked for.
        core_type: CoreKind,
    },
    /// What is left is no machine.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// An arrangement for which the description does not have all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Arrangement {
    /// No core of that type is described.
    #[error("{machine} describes no {} cores, and the topology has some", core_type.name())]
    CoreType {
        /// The machine.
        machine: String,
        /// The type.
        core_type: CoreKind,
    },
    /// Cores have more hardware threads than the described ones.
    #[error(
        "{machine} describes cores of {smt} hardware threads, and the topology has some of {asked}"
    )]
    Smt {
        /// The machine.
        machine: String,
        /// Hardware threads of its widest core of that type.
        smt: usize,
        /// Those of a core of the topology.
        asked: usize,
    },
    /// There are several nodes, and the machine has one.
    #[error(
        "{machine} describes one NUMA node and no links between nodes, and the topology has {nodes}; \
         machines with several: see symbiont machines"
    )]
    Links {
        /// The machine.
        machine: String,
        /// Nodes with CPUs.
        nodes: usize,
    },
    /// What comes of it is no machine.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// A name that no carried description has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownMachine {
    /// No such name.
    #[error(
        "there is no machine '{name}' to simulate; the nearest: {} (`symbiont machines` lists all; the names of \
         `symbiont doctor --machine` are those of event catalogues)",
        near.join(", ")
    )]
    Name {
        /// The name asked for.
        name: String,
        /// Names like it, the likest first.
        near: Vec<String>,
    },
    /// The carried description is malformed, which the tests rule out.
    #[error(transparent)]
    Malformed(#[from] DescriptionError),
}

impl UnknownMachine {
    pub(super) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::Name { name: name.to_owned(), near: crate::names::nearest(name, known) }
    }
}
