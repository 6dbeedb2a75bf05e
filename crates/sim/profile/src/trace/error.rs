//! What can be wrong with a trace.

use std::io;

/// Why a trace cannot be read or written. `name` is the path.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, read or written.
    #[error("{name}: cannot {what} the trace: {source}")]
    Io {
        /// The file.
        name: String,
        /// What was tried: read or write.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file is empty.
    #[error("{name}: the trace is empty")]
    Empty {
        /// The file.
        name: String,
    },
    /// The file is no trace.
    #[error("{name}: this is not an instruction trace; `symbiont profile --trace` makes them")]
    NotATrace {
        /// The file.
        name: String,
    },
    /// The file is of a version that this program does not know.
    #[error(
        "{name}: the trace has format version {version}, this program reads version {known}; \
         make it anew with `symbiont profile --trace`"
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
    #[error("{name}: the trace is damaged: {why}; make it anew with `symbiont profile --trace`")]
    Damaged {
        /// The file.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The file has no such window.
    #[error("{name}: there is no window {index}; the trace has {windows}")]
    NoWindow {
        /// The file.
        name: String,
        /// The window that was asked for, from 0.
        index: usize,
        /// How many it has.
        windows: usize,
    },
    /// What was to be written contradicts itself.
    #[error("{name}: the trace cannot be written: {why}")]
    Unusable {
        /// The file.
        name: String,
        /// What is wrong.
        why: String,
    },
}

/// What is wrong with a part of a file, whose name is known farther out.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    Damaged(String),
}

impl Fault {
    pub(super) fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged(why.into())
    }

    /// With the name of the file.
    pub(super) fn of(self, name: &str) -> TraceError {
        let name = name.to_owned();
        match self {
            Self::Io(source) => TraceError::Io { name, what: "read", source },
            Self::Damaged(why) => TraceError::Damaged { name, why },
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::damaged("it ends too early");
        }
        Self::Io(error)
    }
}

impl From<postcard::Error> for Fault {
    fn from(error: postcard::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}
