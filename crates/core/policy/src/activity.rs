//! Cache activity vectors (Settle et al., "Architectural support for enhanced SMT job scheduling").
//!
//! # Problem
//! Jobs that share a core displace each other's cache lines. How many lines each uses does not determine how
//! many conflict: that depends on where in the cache they lie.
//!
//! # Approach
//! A cache is divided into *super-sets*, contiguous groups of sets. Of each job and each super-set, uses and misses
//! of a sample are counted; counts above a threshold make the bits of a [`Vector`]. Jobs whose vectors
//! overlap least run together ([`choose`]).
//!
//! # Terms and units
//! *Sample*: the period of the scheduler. *Resident*: on a hardware thread.
//!
//! # Properties
//! See [`vector`](Vector) and the scores: `overlap_and_agreement_are_those_of_single_bits`,
//! `the_papers_example`, `no_job_starves`.

/// Vectors of a job: one of uses and one of misses of each cache: L1 data, L1 instruction, L2.
pub const VECTORS: usize = 6;
/// What a super-set that is active in both of two jobs weighs, by vector, unless other weights are set: in the
/// L2, by uses and by misses.
pub const OVERLAP: [f64; VECTORS] = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0];

mod known;
mod policy;
mod score;
mod vector;

pub use known::{ActivityInterval, Course, KnownActivity, KnownActivityError};
pub use policy::Activity;
pub(crate) use policy::ENTRY;
pub use score::{Job, Weights, choose, longest_wait, rotate, score};
pub use vector::Vector;
