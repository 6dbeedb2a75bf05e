//! Strings of hwloc's synthetic form: `pack:2 [numa] l3:1(size=32MiB) core:8 pu:2`.
//!
//! # Problem
//! People have machines in this form, from `lstopo --of synthetic` and from papers. It must not be taken for
//! [`crate::synthetic`], whose levels have the same names in part.
//!
//! # Approach
//! Levels from the outermost to the PU, each counted per one of the level above, as hwloc 2 and 3 read them
//! (`hwloc/topology-synthetic.c`). The machine is the one that [`super::from_xml`] reads of hwloc's export of the
//! string, but what is not given is not known: hwloc assumes sizes of caches and memory.
//!
//! | item | meaning |
//! |---|---|
//! | `package`, `socket`; `die`; `numanode`, `node`; `core`; `pu`, any case, cut to two letters or more | the levels |
//! | `l2:1`, `L3Cache:2`, `l1d:1`, `l1i:1` | caches; those of level 2 or higher may be LLC domains |
//! | `group:2`, `tile:2`, `module:2` | levels that become nothing here |
//! | `2 4 2` | levels without types, which get them as in hwloc |
//! | `[numa]` | a node at each of the level before |
//! | `(size=32MiB)`, `(memory=16GiB)` | a cache's size, a node's memory; TB, GB, MB and kB are powers of 1000 |
//! | `(indexes=0,2,1,3)`, `(indexes=2*4:1*2)`, `(indexes=pack:core)` | numbers of packages, nodes and PUs |
//!
//! Every string ends with `pu` or a bare number, and the line of [`crate::synthetic`] has neither
//! ([`is_hwloc_form`]), so that one is never taken for the other.
//!
//! # Properties
//! - hwloc reads the same machines (`hwloc_reads_random_strings_as_we_do`).
//! - A line is never taken for a string, nor a string for a line (`the_two_forms_are_distinguished`).
//! - Errors say what and where (`errors_in_strings_say_what_and_where`); any text is read or refused without
//!   panic (`any_string_is_read_or_refused_without_panic`).

mod build;
mod indexes;
mod levels;
mod parse;
#[cfg(test)]
mod tests;

pub use parse::is_hwloc_form;

use super::HwlocError;
use crate::{Origin, Topology};

/// What a level is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Machine,
    Group,
    Package,
    Die,
    Node,
    Cache { level: u32, holds_data: bool },
    Core,
    Pu,
}

/// Objects of one kind, counted per one of the level above.
#[derive(Debug)]
struct Layer<'a> {
    /// None: to be found.
    kind: Option<Kind>,
    count: u32,
    /// Where it is written.
    byte: usize,
    attributes: Attributes<'a>,
    /// Memory of the nodes that are attached to each object.
    attached: Vec<Option<u64>>,
}

/// What is said in parentheses.
#[derive(Debug, Default)]
struct Attributes<'a> {
    /// Of a cache, or memory.
    bytes: Option<u64>,
    /// Text, and where it is written.
    indexes: Option<(usize, &'a str)>,
}

/// What is wrong, and where it begins.
struct Fault {
    byte: usize,
    reason: String,
}

impl Fault {
    fn new(byte: usize, reason: impl Into<String>) -> Self {
        Self { byte, reason: reason.into() }
    }
}

type Parsed<T> = Result<T, Fault>;

pub(super) fn read(text: &str) -> Result<Topology, HwlocError> {
    let described = parse::parse(text).and_then(build::machine);
    let (threads, nodes) = described.map_err(|fault| HwlocError::Synthetic {
        text: text.to_owned(),
        column: text.char_indices().take_while(|(byte, _)| *byte < fault.byte).count() + 1,
        reason: fault.reason,
    })?;
    Topology::new(Origin::Synthetic(text.to_owned()), threads, nodes)
        .map_err(|source| HwlocError::Contradiction { from: text.to_owned(), source })
}
