//! What can go wrong with Slurm's commands, and with the service's own files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why Slurm gave no answer, or refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlurmError {
    /// The command cannot be run.
    #[error("cannot run {command}: {why}; Slurm's commands have to be in PATH")]
    NotRun {
        /// The command.
        command: String,
        /// The kernel's reason.
        why: String,
    },
    /// The command took too long.
    #[error("{command} did not answer within {} s", limit.as_secs())]
    Silent {
        /// The command.
        command: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// Symbiont ends, so the command was not waited for.
    #[error("{command} was not waited for, since symbiont ends")]
    Ended {
        /// The command.
        command: String,
    },
    /// The command failed, or its answer was not understood.
    #[error("{command}: {why}")]
    Refused {
        /// The command.
        command: String,
        /// Its last line, or what was not understood.
        why: String,
    },
}

impl SlurmError {
    /// Does Slurm as a whole not answer, as opposed to refusing something for one job?
    pub fn is_of_all(&self) -> bool {
        match self {
            Self::NotRun { .. } | Self::Silent { .. } | Self::Ended { .. } => true,
            Self::Refused { why, .. } => {
                let why = why.to_ascii_lowercase();
                ["contact", "timed out", "zero bytes"].iter().any(|word| why.contains(word))
            }
        }
    }

    /// May the next attempt succeed, as when Slurm was just looking at the job itself?
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Refused { why, .. } if why.contains("temporarily unavailable"))
    }

    /// What a command answered cannot be used.
    pub(crate) fn refused(command: &str) -> impl Fn(String) -> Self {
        let command = command.to_owned();
        move |why| Self::Refused { command: command.clone(), why }
    }
}

/// Why one of the service's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The kernel refuses.
    #[error("cannot {doing} {}: {why}", path.display())]
    Io {
        /// What was tried, as "note decisions in".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The journal of assignments is not one.
    #[error("{} does not hold the jobs that were released; remove it: {why}", path.display())]
    NoJournal {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: serde_json::Error,
    },
    /// The store is locked by another releaser.
    #[error(
        "another symbiont slurm uses the store {}; with --store it takes one of its own",
        store.display()
    )]
    InUse {
        /// The store.
        store: PathBuf,
    },
}

impl FileError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |why| Self::Io { doing, path: path.to_owned(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passing_refusal_says_nothing_of_the_job() {
        let refused = |why: &str| SlurmError::refused("scontrol")(why.to_owned());
        let passing = refused("Resource temporarily unavailable for job 400");
        assert!(passing.is_passing() && !passing.is_of_all());
        let of_job = refused("Job resizing not supported for job arrays");
        assert!(!of_job.is_passing() && !of_job.is_of_all());
        for why in [
            "Unable to contact slurm controller (connect failure)",
            "Socket timed out on send/recv operation",
            "Zero Bytes were transmitted or received",
        ] {
            assert!(refused(why).is_of_all());
        }
    }
}
