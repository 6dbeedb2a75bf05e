//! Machines that hwloc describes: XML exports and its synthetic strings.
//!
//! # Problem
//! hwloc is the field's standard for machine structure; people have exports of
//! machines that they cannot run on today, and its reading of `/sys` is the
//! best check of ours.
//!
//! # Approach
//! The XML export is a plain tree, so it is read directly (roxmltree, no C
//! code). Linking libhwloc would bring its plugins' libraries into every build
//! and rule out static ones, for no more information. Strings of hwloc's own
//! synthetic form are read here, too: see [`synthetic`].
//!
//! | of hwloc | becomes |
//! |---|---|
//! | `PU` | a hardware thread |
//! | `Core` around it; none: the PU is a core of its own | the core |
//! | outermost cache of level 2 or higher around it that holds data; none: the die, else the package, else the machine | the LLC domain |
//! | lowest `NUMANode` whose cpuset has it | the node |
//! | `Package` around it; none: package 0 | the package |
//! | `cpukind` with `LinuxCapacity`, `FrequencyMaxMHz`, `CoreType` | capacity, ceiling, core type, by the rules of `speed.rs`, if each CPU is of a kind and no core of two |
//! | `distances2` named `NUMALatency` | distances |
//!
//! hwloc writes no memory size for a node without memory, so it is not known
//! here. The format is that of hwloc 2 and 3; source: hwloc's manual, chapter
//! "Importing and exporting topologies from/to XML files".
//!
//! # Properties
//! - This host and every machine of the golden corpus look the same through
//!   hwloc and through [`crate::sysfs`] (`hwloc_reads_what_we_read`).
//! - Kinds that hwloc 2.12 mistakes are not believed
//!   (`kinds_that_split_a_core_or_leave_a_cpu_out_are_not_believed`).
//! - Damaged exports are read or refused without panic
//!   (`damaged_exports_do_not_panic`).

#[cfg(fuzzing)]
pub mod fuzzing;
pub mod synthetic;
mod value;
mod xml;

use std::io;
use std::path::Path;

use crate::{Origin, Topology, TopologyError};

/// A description by hwloc that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HwlocError {
    /// The export could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The export.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The export is no XML.
    #[error("{from}: not XML: {source}")]
    Xml {
        /// The export or the synthetic string.
        from: String,
        /// What is wrong.
        source: roxmltree::Error,
    },
    /// The export holds something else than hwloc writes.
    #[error("{from}, line {line}: {reason}")]
    Malformed {
        /// The export or the synthetic string.
        from: String,
        /// Where in the XML.
        line: u32,
        /// What is wrong.
        reason: String,
    },
    /// The export describes no machine.
    #[error("{from} describes no machine: {source}")]
    Contradiction {
        /// The export or the synthetic string.
        from: String,
        /// What does not fit.
        source: TopologyError,
    },
    /// The synthetic string cannot be understood.
    #[error("hwloc's synthetic string '{text}', column {column}: {reason}")]
    Synthetic {
        /// The string.
        text: String,
        /// Where, in characters from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
}

/// Reads an export (`lstopo machine.xml`).
///
/// # Errors
/// When the file cannot be read or is not an export of hwloc 2 or later.
pub fn from_xml(path: &Path) -> Result<Topology, HwlocError> {
    let from = path.display().to_string();
    match symbiont_safe_open::read_to_string(path) {
        Ok(text) => xml::read(&text, &from, Origin::HwlocXml(from.clone())),
        Err(source) => Err(HwlocError::Read { path: from, source }),
    }
}

/// Reads a synthetic string of hwloc's form, such as `pack:2 [numa] l3:1 core:4 pu:2`; see [`synthetic`].
///
/// # Errors
/// When the string cannot be understood or describes no machine.
pub fn from_synthetic(text: &str) -> Result<Topology, HwlocError> {
    synthetic::read(text)
}

#[cfg(test)]
pub(crate) mod tests;
