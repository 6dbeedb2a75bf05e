//! The cycle level of the simulated machine: the reference of its fast level.
//!
//! # Problem
//! The fast level of the simulated machine is a model. It is believed only as far as it agrees with
//! another simulation of the same described machine that shares no formula with it. Some effects it
//! cannot show at all: which sets of a cache two threads contend for, or for how long misses clog a
//! shared queue.
//!
//! # Approach
//! Streams of micro-operations ([`op`]) run through cores that are simulated cycle by cycle ([`core`]),
//! with caches that hold real lines ([`levels`], [`cache`]) and a memory that grants one line per time
//! slot ([`dram`]). Of the fast level's crate this one uses the descriptions, the activity counts and the
//! interface to the machine, never the physics (`nothing_here_names_the_physics`).
//!
//! | module | what |
//! |---|---|
//! | [`op`] | what is executed |
//! | [`chip`] | cores that share caches and memory |
//! | [`core`] | one core: fetch, dispatch, issue, retire |
//! | [`pool`], [`ports`], [`predictor`], [`wheel`] | its parts |
//! | [`levels`], [`cache`], [`prefetch`], [`dram`] | the memory hierarchy |
//! | [`counts`] | counts of a thread |
//! | [`jobs`] | more jobs than hardware threads, in turn |
//! | [`captured`] | a window of a captured trace as a stream |
//! | [`replay`] | a phase of a profile as a stream |
//! | [`check`] | the fast level compared with this one |
//! | [`mod@reference`] | the cycle level as the physics of the simulated machine |
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
pub mod wheel;
#[cfg(test)]
mod worlds {
    pub(crate) mod traces;
}

pub use crate::captured::CapturedWindow;
pub use crate::chip::{Chip, ChipError, CoreSlot};
pub use crate::counts::Counts;
pub use crate::jobs::{Context, Jobs, SuperSetIndexing};
pub use crate::op::{Branch, Op, Stream};
pub use crate::reference::{CycleReference, Sample};

/// Controls: what of a described machine is switched off or made private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleOptions {
    /// Are the prefetchers on?
    pub prefetching: bool,
    /// Does each job have private caches and translation buffers? A control without inter-thread conflicts.
    pub private_caches: bool,
}

impl Default for CycleOptions {
    /// Prefetchers are on, caches are shared.
    fn default() -> Self {
        Self { prefetching: true, private_caches: false }
    }
}
