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
//! synthetic form are expanded by its `lstopo` program, the only one that knows
//! all of that form.
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
mod value;
mod xml;

use std::io;
use std::path::Path;
use std::process::Command;

use crate::{Origin, Topology, TopologyError};

/// The program of hwloc that needs no display.
const LSTOPO: &str = "lstopo-no-graphics";

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
    /// hwloc's program could not be run.
    #[error(
        "cannot run {LSTOPO}: {0}; it comes with hwloc (package hwloc-nox on Debian and Ubuntu, \
         hwloc elsewhere)"
    )]
    NoLstopo(io::Error),
    /// hwloc does not accept the synthetic string.
    #[error("hwloc does not accept '{text}': {reason}")]
    Refused {
        /// The string.
        text: String,
        /// What hwloc said.
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

/// Reads a synthetic string of hwloc's form, such as
/// `pack:2 [numa] l3:1 core:4 pu:2`, with the help of hwloc's `lstopo`.
///
/// # Errors
/// When `lstopo` is not installed or refuses the string.
pub fn from_synthetic(text: &str) -> Result<Topology, HwlocError> {
    let mut command = Command::new(LSTOPO);
    command.args(["--if", "synthetic", "--input", text]);
    let xml = export(&mut command)
        .map_err(HwlocError::NoLstopo)?
        .map_err(|reason| HwlocError::Refused { text: text.to_owned(), reason })?;
    xml::read(&xml, text, Origin::Synthetic(text.to_owned()))
}

/// What `lstopo` writes to its standard output, or what it complains of.
fn export(lstopo: &mut Command) -> io::Result<Result<String, String>> {
    let output = lstopo.args(["--of", "xml", "-"]).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Ok(if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr).lines().next().unwrap_or("no reason given").to_owned())
    })
}

#[cfg(test)]
pub(crate) mod tests;
