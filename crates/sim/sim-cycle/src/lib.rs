//! The simulated machine cycle by cycle: the cycle-level reference of its fast level.
//!
//! # Problem
//! The fast level of the simulated machine is a model; it is believed only as far as another
//! simulation of the same described machine agrees that shares no formula with it.
//! Some things it cannot show at all: which sets of a cache two threads fight for, or
//! how long misses clog a shared queue.
//!
//! # Approach
//! Streams of operations ([`op`]) run through cores that are simulated cycle by cycle
//! ([`core`]), with caches that hold real lines ([`levels`], [`cache`]) and a memory
//! that grants one line per slot of time ([`dram`]). Of the fast level's crate this one uses
//! descriptions, the terms of activities and the machine's seam, never its
//! physics (`nothing_here_names_the_physics`).
//!
//! | module | what |
//! |---|---|
//! | [`op`] | what is executed |
//! | [`chip`] | cores that share caches and memory |
//! | [`core`] | one core: fetch, dispatch, issue, retire |
//! | [`pool`], [`ports`], [`predictor`], [`wheel`] | what it is made of |
//! | [`levels`], [`cache`], [`prefetch`], [`dram`] | what is behind it |
//! | [`counts`] | what came out |
//! | [`jobs`] | more jobs than hardware threads, in turn |
//! | [`captured`] | a window of a captured trace as a stream |
//! | [`replay`] | a phase of a profile as a stream |
//! | [`check`] | two levels held against each other |
//! | [`mod@reference`] | all that behind the simulated machine's seam |
//!
//! # Terms and units
//! Cycles are of the core, other times nanoseconds, addresses bytes.

pub mod cache;
pub mod captured;
pub mod check;
pub mod chip;
pub mod core;
pub mod counts;
pub mod dram;
pub mod jobs;
pub mod levels;
pub mod op;
pub mod pool;
pub mod ports;
pub mod predictor;
pub mod prefetch;
pub mod reference;
pub mod replay;
#[cfg(test)]
mod synthetic;
pub mod wheel;

pub use crate::captured::Captured;
pub use crate::chip::{Chip, ChipError, CoreSlot};
pub use crate::core::Fetch;
pub use crate::counts::Counts;
pub use crate::jobs::{Context, Jobs, Reading};
pub use crate::op::{Branch, Op, Stream};
pub use crate::predictor::{Indexing, Tables};
pub use crate::reference::{CycleReference, Sample};

/// What a description does not say of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleOptions {
    /// Which threads fetch.
    pub fetch: Fetch,
    /// How predictors find their counters.
    pub indexing: Indexing,
    /// The threads that have a predictor's table.
    pub tables: Tables,
    /// Do prefetchers work?
    pub prefetching: bool,
    /// Does each job have private caches and translation buffers? A control without inter-thread conflicts.
    pub private_caches: bool,
}

impl Default for CycleOptions {
    /// Threads fetch in turn, a core has one gshare, prefetchers work.
    fn default() -> Self {
        Self {
            fetch: Fetch::default(),
            indexing: Indexing::default(),
            tables: Tables::default(),
            prefetching: true,
            private_caches: false,
        }
    }
}
