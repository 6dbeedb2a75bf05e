//! Processes that live but are no longer enrolled.
//!
//! A scan looks for the descendants of enrolled processes, and would find these again. They are remembered by
//! number and birth until they end, so that memory is bounded by those that live.

use std::collections::{BTreeMap, BTreeSet};

use super::seen::Seen;

/// Which processes, and when they were born; none if that is not known.
#[derive(Debug, Default)]
pub(super) struct Released(BTreeMap<u32, Option<u64>>);

impl Released {
    pub fn add(&mut self, process: u32, born: Option<u64>) {
        self.0.insert(process, born);
    }

    /// The number is free, or another process has it.
    pub fn forget(&mut self, process: u32) {
        self.0.remove(&process);
    }

    /// Is it one of them?
    pub fn has(&self, seen: &Seen) -> bool {
        self.0.get(&seen.process).is_some_and(|born| born.is_none_or(|born| born == seen.born))
    }

    /// Forgets those whose number a complete list does not have.
    pub fn retain(&mut self, listed: &BTreeSet<u32>) {
        self.0.retain(|process, _| listed.contains(process));
    }
}
