//! Errors of recordings.

use std::io;

/// Why a recording cannot be written or read. `name` is the path, or what
/// else the caller named the recording.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, created, read or written.
    #[error("{name}: cannot {what} the recording: {source}")]
    Io {
        /// The recording.
        name: String,
        /// What was tried: open, create, read or write.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{name}: the recording is empty")]
    Empty {
        /// The recording.
        name: String,
    },
    /// It is something else.
    #[error("{name}: this is not a recording that Symbiont made: {why}")]
    NotARecording {
        /// The file.
        name: String,
        /// The reason.
        why: String,
    },
    /// It is of a version that this program does not know.
    #[error(
        "{name}: the recording has format version {version}, this program reads versions \
         1 to {known}; read it with the Symbiont that made it, or a newer one"
    )]
    Version {
        /// The recording.
        name: String,
        /// Its version.
        version: u32,
        /// The newest version that is known here.
        known: u32,
    },
    /// A line cannot be understood.
    #[error("{name}, line {line}: damaged: {why}")]
    Damaged {
        /// The recording.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A value cannot be put in words of the format.
    #[error("{name}: cannot encode: {source}")]
    Encode {
        /// The recording.
        name: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// All of the recording was replayed.
    #[error("{name}: the recording ends after {quanta} quanta")]
    Ended {
        /// The recording.
        name: String,
        /// Quanta replayed.
        quanta: usize,
    },
}
