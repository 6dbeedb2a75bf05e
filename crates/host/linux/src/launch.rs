//! Starts programs in such a way that neither they nor the shell around them notice anything.
//!
//! # Problem
//! A managed program must have the process, session, terminal, signals, limits and exit status that it has when
//! it is run alone. A parent that forks and waits breaks job control and hides how the program died. Yet some
//! process has to watch the program while it runs, and to restore settings at its end.
//!
//! # Approach
//! That process is the *manager*. It is forked twice, so that it is no child of the program or the shell, and
//! lives in a session of its own: no terminal, no descriptor of the caller's, `/` as its directory. It gets the
//! pidfds of the *roots*, enrols them while they are held back, and says [`Manager::ready`].
//! - [`exec_in_place`]: one program, and nothing to print afterwards. The calling process itself becomes the
//!   program.
//! - [`supervise()`]: several programs, or a report afterwards. The calling process stays as the *supervisor*: it
//!   passes on signals, stops and continues with its programs, and [`finish`] ends it as they ended.
//!
//! Both fork, so both must be called before the process has a second thread. If the manager fails, the program
//! runs unmanaged, and the caller is given the reason. `LIMITATIONS.md` lists the limits.
//!
//! # Terms and units
//! *Root*: the first process of an enrolled command. *Gate*: holds a root back until it is enrolled. *Own
//! signal*: sent to the supervisor by a process, as opposed to those that the terminal sends to a group.
//!
//! # Properties
//! In `tests/launch`, each in an interactive shell on a pseudo-terminal, compared with a run alone:
//! - The program's process, parent, group, session, descriptors, signal mask, ignored signals, limits,
//!   environment and umask are those of a run alone (`identity_*`).
//! - Stopping, continuing, ^C inside a list and death by a signal look the same to the shell (`terminal_*`).
//! - Exit codes are passed on; 127 and 126 say why a program could not run (`exit_*`).
//! - A pipeline ends with the program although the manager lives longer (`pipeline_*`).
//! - A manager that fails, dies or hangs costs the management, never the program (`manager_*`).
//! - A signal to the supervisor reaches the program once; the program outlives it (`supervisor_*`).
//! - Several jobs run as described; the first failure in their order is the exit status (`jobs_*`).

mod children;
mod command;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod handshake;
mod in_place;
mod inherited;
mod job;
mod limits;
mod manager;
mod notice;
mod raw;
mod relay;
mod signals;
mod status;
mod supervise;
mod timeouts;
mod urgency;

use std::io;

pub use command::{Command, CommandError, ExecError};
pub use in_place::exec_in_place;
pub use inherited::{by_fork, is_ignored, let_writes_fail};
pub use job::{Job, Session, VariableError, Variables};
pub use manager::{Abandoned, Manager, Root, Wake};
pub use notice::Notice;
pub use status::{JobStatus, Status, finish};
pub use supervise::{Supervised, supervise};
pub use timeouts::Timeouts;
pub use urgency::{MANAGER_NICE, be_normal, be_urgent};

/// Why a program runs, or ran, unmanaged.
#[derive(Debug, thiserror::Error)]
pub enum Unmanaged {
    /// Forking is sound in a process with one thread only.
    #[error(
        "it was started from a process with {0} threads; a manager needs one with a single thread"
    )]
    Threads(usize),
    /// A call that prepares the manager failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The manager itself said why.
    #[error("{0}")]
    Failed(String),
    /// The manager ended, or was killed, without a word.
    #[error("the manager ended unexpectedly")]
    Died,
    /// The manager said nothing for too long.
    #[error("the manager did not answer in time")]
    Silent,
    /// The manager sent a message that makes no sense here.
    #[error("the manager gave an answer that makes no sense")]
    Nonsense,
}

impl Unmanaged {
    /// Wraps a failed call; for `map_err`.
    fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}

/// Why [`supervise()`] started nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There was no job to run.
    #[error("there is no job to run")]
    NoJobs,
    /// A job's redirection or directory cannot be opened.
    #[error("job '{job}': cannot open {path} as its {role}: {source}")]
    Open {
        /// The job's name.
        job: String,
        /// What it was to be: stdin, stdout, stderr or directory.
        role: &'static str,
        /// The path as given.
        path: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Forking is sound in a process with one thread only.
    #[error("jobs must be started from a process with a single thread; this one has {0}")]
    Threads(usize),
    /// A call that starts the jobs failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl LaunchError {
    /// Wraps a failed call; for `map_err`.
    fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}
