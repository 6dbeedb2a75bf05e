//! Synthetic profiles for the tests of other crates.
//!
//! Each is made by "executing" an endless loop of micro-operations and, after a warm-up, observing it exactly, as
//! a capture observes a program. Equal arguments give equal profiles.

mod programs;

pub use programs::{
    branchy, cache_resident, floating_point, kept_in_memory, no_operations, phased,
    pointer_chasing, streaming, synthetic,
};
