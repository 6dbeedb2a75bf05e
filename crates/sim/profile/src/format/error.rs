//! What can be wrong with a profile.

use std::io;

/// Why a profile cannot be read or written. `name` is the path, or the program
/// where there is no path.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be opened, read or written.
    #[error("{name}: cannot {what} the profile: {source}")]
    Io {
        /// The file.
        name: String,
        /// What was tried: read or write.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file is empty.
    #[error("{name}: the profile is empty")]
    Empty {
        /// The file.
        name: String,
    },
    /// The file is no profile.
    #[error("{name}: this is not a program profile; `symbiont profile` makes them")]
    NotAProfile {
        /// The file.
        name: String,
    },
    /// The file is of a version that this program does not know.
    #[error(
        "{name}: the profile has format version {version}, this program reads version {known}; \
         make it anew with `symbiont profile`"
    )]
    Version {
        /// The file.
        name: String,
        /// Its version.
        version: u32,
        /// The version that is known here.
        known: u32,
    },
    /// The file is damaged: it is not as it was written.
    #[error("{name}: the profile is damaged: {why}; make it anew with `symbiont profile`")]
    Damaged {
        /// The file.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The profile contradicts itself, so it is not written.
    #[error("the profile of {name} cannot be written: {why}")]
    Unusable {
        /// The program.
        name: String,
        /// What is wrong.
        why: String,
    },
}
