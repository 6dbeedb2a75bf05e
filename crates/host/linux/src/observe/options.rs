//! Ways to watch: what is asked for, what is done, and why it may fail.

use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use symbiont_machine::ProgramId;

/// How births are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// The kernel reports each of them at once.
    Connector {
        /// Size of the socket's buffer in bytes, as the kernel counts it.
        buffer: usize,
        /// Does the reader run at real-time priority? If not, the reason.
        realtime: Result<(), String>,
    },
    /// /proc is listed at each read.
    Scan {
        /// Why there are no reports.
        why: String,
    },
}

/// Which methods may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// Reports where they prove to come, else scanning.
    #[default]
    Best,
    /// Scanning, in any case.
    Scan,
}

/// How to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// Where /proc is mounted. Another than the running kernel's is for tests
    /// and goes with [`Choice::Scan`].
    pub proc: PathBuf,
    /// Which methods may be used.
    pub choice: Choice,
    /// Size of the buffer for reports, in bytes. The kernel charges about 830 of them for each report.
    pub buffer: usize,
    /// How long to wait for the report that proves the connector.
    pub timeout: Duration,
    /// Most threads whose files are kept open; the others' are opened at each
    /// read. None: 2,048, but no more than take a quarter of the limit of open files.
    pub kept_open: Option<usize>,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            choice: Choice::Best,
            buffer: 8 << 20,
            timeout: Duration::from_secs(1),
            kept_open: None,
        }
    }
}

/// Why threads cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The directory of processes cannot be listed.
    #[error("cannot list processes in {path}: {source}; is /proc mounted there?")]
    Proc {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: Errno,
    },
    /// A process to be enrolled is not there.
    #[error(
        "there is no process {process} to enrol: it has ended, or belongs to a pid namespace that is not seen from here"
    )]
    NoSuchProcess {
        /// Its number.
        process: u32,
    },
    /// A process to be enrolled belongs to another program already.
    #[error("process {process} is managed already, or is being released: try again in a moment")]
    Enrolled {
        /// Its number.
        process: u32,
        /// Where it is enrolled.
        program: ProgramId,
    },
    /// The reader's thread cannot be started.
    #[error("cannot start the thread that reads process events: {0}")]
    Reader(#[source] std::io::Error),
}
