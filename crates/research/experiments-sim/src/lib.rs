//! Experiments on the simulated machine.
//!
//! # Problem
//! Programs of different length cannot be compared by running them until the
//! first, or the last, has finished: the load would change meanwhile, and
//! different parts of them would be compared.
//!
//! # Approach
//! Feliu et al., section 5. Each program first runs alone for a while
//! ([`Setup::alone`]); the instructions that it retires are its target. Then
//! all run together under a policy; a program that reaches its target is launched again,
//! so that the load stays, and the run goes on until all have reached it once.
//! The first completion counts. Starting together is a coincidence that decides
//! which programs share a core, so each repeat lets every program begin with a part that does
//! not count, of random length.
//!
//! Figures are STP, ANTT and fairness of each repeat ([`symbiont_report::metrics`]), given as
//! means over the repeats with 95 % intervals by Student's t.
//!
//! Every result says that it is simulated, on which description, whether a
//! cycle-level core has checked that, and from which profiles.
//!
//! # Properties
//! - Equal seeds give equal results, byte by byte; other seeds others
//!   (`equal_setups_give_equal_results`).
//! - Programs that share nothing have STP n and ANTT 1
//!   (`programs_that_share_nothing_are_not_slowed`).

pub mod batch;
mod cache;
pub mod cluster;
mod co_runs;
pub mod code;
mod fill;
pub mod hysched;
mod library;
pub mod measured_pairs;
pub mod membench;
pub mod mixes;
pub mod multithreading;
mod outcome;
pub mod phases;
mod run;
mod runner;
pub mod sanity;
mod shuffled;
pub mod steady;
#[cfg(test)]
mod tests;
mod timeline;
pub mod training;
#[cfg(test)]
mod turns;
mod workload;

pub use cache::{Cache, Trouble};
pub use fill::fill;
pub use library::{Kind, Library, LibraryEntry, LibraryError};
pub use outcome::{AppOutcome, Outcome, Provenance, held, pairs};
pub use run::alternating;
pub use run::{Decision, RepeatsDone, Setup, SimulateError, check, simulate};
pub use runner::{RunOutcome, Runner, SimController};
pub use shuffled::ShownMeasurements;
pub use shuffled::Shuffled;
pub use workload::{App, Form, Workload, WorkloadError};
