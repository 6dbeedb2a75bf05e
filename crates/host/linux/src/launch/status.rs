//! How jobs ended, and how to end in the same way.

use std::fmt;
use std::io;
use std::time::Duration;

use rustix::process::DumpableBehavior;

use super::ExecError;
use super::raw::{self, SignalSet};

/// How a job ended.
#[derive(Debug)]
pub enum Status {
    /// By itself, with this exit code (0 to 255).
    Exited(i32),
    /// By a signal.
    Killed {
        /// The signal's number.
        signal: i32,
        /// Did it leave a core dump?
        dumped: bool,
    },
    /// It never ran: its program could not be run.
    NotRun(ExecError),
    /// It never ran: its directory could not be entered.
    NotEntered(io::Error),
}

impl Status {
    /// Did it end by itself, with exit code 0?
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// The exit code by which a shell reports the same.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Exited(code) => *code,
            Self::Killed { signal, .. } => 128 + signal,
            Self::NotRun(error) => error.exit_code(),
            Self::NotEntered(_) => 126,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(0) => f.write_str("ended well"),
            Self::Exited(code) => write!(f, "ended with exit code {code}"),
            Self::Killed { signal, dumped: false } => write!(f, "killed by signal {signal}"),
            Self::Killed { signal, dumped: true } => {
                write!(f, "killed by signal {signal} (core dumped)")
            }
            Self::NotRun(error) => error.fmt(f),
            Self::NotEntered(error) => write!(f, "cannot enter its directory: {error}"),
        }
    }
}

/// A job's name, how it ended, and how long it took.
#[derive(Debug)]
pub struct JobStatus {
    /// What people call it.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// From its release to its end as the supervisor saw it.
    pub wall: Duration,
}

/// Ends this process as the first job that failed, in the jobs' order, ended:
/// with its exit code, or by its signal (so that the shell sees it; without a
/// core dump, as the job left its own). With code 0 if none failed.
pub fn finish(statuses: &[JobStatus]) -> ! {
    let failed = statuses.iter().map(|job| &job.status).find(|status| !status.is_success());
    if let Some(Status::Killed { signal, .. }) = failed {
        // Where any of this fails, the exit code below reports the same.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
        raw::set_ignored(*signal, false);
        raw::send(rustix::process::getpid(), *signal);
        let _ = SignalSet::of([*signal]).unblock();
    }
    std::process::exit(failed.map_or(0, Status::exit_code));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_give_the_code_of_a_shell() {
        let missing = ExecError {
            program: "foo".to_owned(),
            source: io::Error::from_raw_os_error(libc::ENOENT),
        };
        for (status, code, words) in [
            (Status::Exited(0), 0, "ended well"),
            (Status::Exited(3), 3, "ended with exit code 3"),
            (Status::Killed { signal: 9, dumped: false }, 137, "killed by signal 9"),
            (Status::Killed { signal: 11, dumped: true }, 139, "(core dumped)"),
            (Status::NotRun(missing), 127, "cannot run 'foo': not found"),
            (
                Status::NotEntered(io::Error::from_raw_os_error(libc::EACCES)),
                126,
                "cannot enter its directory",
            ),
        ] {
            assert_eq!(status.exit_code(), code);
            assert_eq!(status.is_success(), code == 0);
            assert!(status.to_string().contains(words), "{status}");
        }
    }
}
