//! Descriptions of simulated machines.
//!
//! # Problem
//! A simulated machine is believed only as far as its parameters can be checked. So each must name its source,
//! and a slip in one of them must be found when the file is read, not in a strange result.
//!
//! # Approach
//! One TOML text per machine (`machines/*.toml`; `machines/README.md` describes the form). A value is covered
//! by the `source` of its section or brings its own; `assumed: why` marks unpublished values. Values are plain
//! here, and [`Description::values`] lists where each comes from.
//!
//! # Terms and units
//! Widths are micro-ops per cycle, latencies cycles of the core unless the name says otherwise, sizes bytes,
//! bandwidths 10⁹ bytes per second. *Refill*: cycles from the resolution of a mispredicted branch to the
//! dispatch of the first micro-op of the right path. *SMT rule*: how the n active threads of a core share a
//! structure ([`SmtRule`]).
//!
//! # Properties
//! - Every machine of this crate can be read, and each value has a source (`all_machines_can_be_read`).
//! - A missing, unknown or nonsensical key is refused with file, line, key and reason
//!   (`refusals_name_file_line_key_and_reason`); any text is read or refused without panic
//!   (`any_text_is_read_or_refused_without_panic`).
//! - In another arrangement a machine keeps its cores and memory, and what it says nothing of is refused
//!   (`cores_and_memory_are_kept_in_another_arrangement`, `what_a_description_does_not_have_is_not_arranged`).

mod arrange;
mod builtin;
mod core;
mod document;
mod error;
mod read;
mod restrict;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(crate) use self::builtin::CATALOGUES;
pub use self::core::{
    Cache, CoreType, Forwarding, Latencies, Port, Scope, SmtRule, Structure, Tlb, TlbEntries,
};
pub use error::{Arrangement, DescriptionError, Restriction, UnknownMachine};
use symbiont_topology::{Core, CoreKind, NodeId, Topology};

/// Most threads of a core.
pub const MOST_THREADS: usize = 8;

/// A described machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Short name, as in the file's name.
    pub name: String,
    /// The machine's full name.
    pub title: String,
    /// Caveats.
    pub note: String,
    /// How the cycle level checked the fast level on this machine; none:
    /// unchecked.
    pub checked: Option<String>,
    /// Which measurements of the real machine the simulated one was compared with, when, and how far it was
    /// off; none: nothing.
    pub held: Option<String>,
    /// Its structure.
    pub topology: Topology,
    /// Its core types, at most one for each [`CoreKind`].
    pub core_types: Vec<CoreType>,
    /// Memory and the links to it.
    pub memory: Memory,
    /// What mode switches, context switches and migrations cost.
    pub costs: Costs,
    /// Each value with where it comes from, by its key in the file.
    pub values: BTreeMap<String, SourcedValue>,
}

/// A value of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedValue {
    /// Its text in the file.
    pub value: String,
    /// Where it comes from.
    pub source: Source,
}

/// Memory, the same for each node that has any.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// From the load's issue to its data, memory of the own node, unloaded, ns.
    pub latency_ns: f64,
    /// Read bandwidth of a node's memory, 10⁹ bytes/s.
    pub read_gbps: f64,
    /// Write bandwidth of a node's memory, 10⁹ bytes/s.
    pub write_gbps: f64,
    /// Bandwidth of both together, 10⁹ bytes/s.
    pub total_gbps: f64,
    /// Latency of remote memory over that of local memory, ≥ 1.
    pub remote_latency: f64,
    /// Read bandwidth of a link between two nodes, 10⁹ bytes/s.
    pub link_gbps: f64,
    /// Write bandwidth of a link, 10⁹ bytes/s.
    pub link_write_gbps: f64,
    /// The nodes that have memory.
    pub nodes: Vec<NodeId>,
}

/// What mode switches, context switches and migrations cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// A mode switch: the core drains and repartitions when its number of active threads
    /// changes, µs.
    pub mode_switch_us: f64,
    /// One thread takes the place of another on a hardware thread, µs.
    pub context_switch_us: f64,
    /// The OS moves a thread to another hardware thread (cold caches come on
    /// top), µs.
    pub migration_us: f64,
}

impl Costs {
    /// Nothing costs anything.
    pub const NONE: Self = Self { mode_switch_us: 0.0, context_switch_us: 0.0, migration_us: 0.0 };
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Published there.
    Published(String),
    /// Assumed; the text says why.
    Assumed(String),
}

impl Description {
    /// Reads a description; `file` stands for it in errors.
    ///
    /// # Errors
    /// The first thing that is wrong with the text, with its line and key.
    pub fn parse(file: &str, text: &str) -> Result<Self, DescriptionError> {
        read::description(file, text)
    }

    /// The descriptions that this crate carries: name and text.
    #[must_use]
    pub fn builtin() -> &'static [(&'static str, &'static str)] {
        builtin::TEXTS
    }

    /// Reads the carried description of this name.
    ///
    /// # Errors
    /// When there is none, with the nearest names.
    pub fn named(name: &str) -> Result<Self, UnknownMachine> {
        match builtin::TEXTS.iter().find(|(known, _)| *known == name) {
            Some((file, text)) => Ok(Self::parse(&format!("{file}.toml"), text)?),
            None => Err(UnknownMachine::near(name, builtin::TEXTS.iter().map(|(name, _)| *name))),
        }
    }

    /// The type of a core. Reading made sure that each kind has one.
    #[must_use]
    pub fn core_type(&self, kind: CoreKind) -> Option<&CoreType> {
        self.core_types.iter().find(|core| core.kind == kind)
    }

    /// The clock of a core in Hz: the topology's `mhz` where given (a slowed
    /// core of the same type), else its core type's.
    #[must_use]
    pub fn hertz(&self, core: &Core) -> f64 {
        let of_type = || self.core_type(core.kind).map_or(1e9, |core| core.ghz * 1e9);
        core.max_khz.map_or_else(of_type, |khz| khz as f64 * 1e3)
    }

    /// Keys of unpublished values.
    pub fn assumed(&self) -> impl Iterator<Item = &str> {
        let assumed = |given: &SourcedValue| matches!(given.source, Source::Assumed(_));
        self.values.iter().filter(move |(_, given)| assumed(given)).map(|(key, _)| key.as_str())
    }
}
