//! Recordings of a run: a format, a recorder, and a machine that replays them.
//!
//! # Problem
//! Measurements and decisions of one machine shall be read later and
//! elsewhere, by people and by newer versions of this program.
//!
//! # Approach
//! A recording is text, one JSON value per line. The first line is the
//! [`Header`]: the name and version of the format, the machine, the policy and
//! the programs. Each further line is one quantum ([`Quantum`]): the sample,
//! the placement with its reasons, and the moves with their outcomes. Threads
//! and assignments that are as in the line before are left out, so threads
//! that sleep cost nothing. [`Recorder`] writes each line as a whole, so that a recorder that is killed
//! loses at most the line it was at; a reader leaves out such a half line
//! at the end and reports it.
//!
//! [`Replay`] is a machine whose samples are the recorded ones. It carries out
//! nothing. Its counts were taken under the recorded placement, so it cannot
//! show what another placement would have done.
//!
//! # Terms and units
//! *Version*: a whole number that grows when a reader of the version before
//! would misread a recording. Version 2 knows signals that are counted; a
//! recording of a machine that counts nothing is still written as version 1. A
//! reader ignores fields that it does not know. Lines are counted from 1.
//!
//! # Properties
//! - What is recorded is read back equal (`recordings_round_trip`).
//! - No file makes a reader panic; a damaged line is reported by its number
//!   (`a_damaged_line_is_reported_by_its_number`,
//!   `damage_anywhere_is_an_error_or_harmless`).
//! - The format of a version does not change (`version_1_is_written_as_ever`,
//!   `version_2_is_written_as_ever`).

mod counts;
mod error;
mod format;
mod reader;
mod recorder;
mod replay;

pub use error::TraceError;
pub use format::{Header, Quantum, VERSION};
pub use reader::Reader;
pub use recorder::Recorder;
pub use replay::Replay;

#[cfg(test)]
mod tests;
