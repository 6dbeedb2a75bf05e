//! What can go wrong with an experiment, as a value.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use symbiont_report::number::time;
use symbiont_report::stats::StatsError;

/// Why an experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// What is to be a folder is something else.
    #[error("{path} is not a folder")]
    NotAFolder {
        /// What is there instead.
        path: PathBuf,
    },
    /// A program of ours is not where it should be.
    #[error("{path} is missing: build the whole workspace (`cargo build --release`)")]
    NoProgram {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}{}", hint(.program, .source))]
    Start {
        /// Its name.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{program}` ended with {status}{}", said(.stderr))]
    Failed {
        /// Its command line.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said on standard error.
        stderr: String,
    },
    /// A policy cannot run on this machine.
    #[error("no comparison with '{contender}': {why}")]
    CannotCompare {
        /// The policy with its options.
        contender: String,
        /// What it needs that is not there.
        why: String,
    },
    /// A program did not end and was ended.
    #[error("`{program}` did not end within {limit} and was killed with all it had started", limit = time(*.limit))]
    TimedOut {
        /// Its command line.
        program: String,
        /// How long it was given.
        limit: Duration,
    },
    /// A program's output is not what it is without us.
    #[error("{program} wrote something else than it does unmanaged")]
    WrongOutput {
        /// Its name.
        program: String,
    },
    /// The programs of a run that was to be managed were not.
    #[error("the programs ran unmanaged: {0}")]
    Unmanaged(String),
    /// The user stopped the campaign.
    #[error("stopped; the same command goes on from here")]
    Cancelled,
    /// The user stopped what takes too little time for parts of it to be kept.
    #[error("stopped; the same command starts over")]
    Stopped,
    /// A file holds something else than what should be in it.
    #[error("{path}: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and in which line.
        source: serde_json::Error,
    },
    /// A line of a file of finished runs cannot be read.
    #[error(
        "{path}: line {line} is damaged ({why}): remove that line, and the run that it was of is measured anew"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Run after run failed.
    #[error("a run ({run}) failed {attempts} times, the last time: {source}")]
    Hopeless {
        /// The run.
        run: String,
        /// How often it was tried.
        attempts: u32,
        /// What went wrong the last time.
        source: Box<Error>,
    },
    /// Runs began too late, although they were given ever more time.
    #[error(
        "this machine is too busy to measure on: `{run}` was to begin {lead} after its start, and \
         was not ready by then",
        lead = time(*.lead)
    )]
    Busy {
        /// The run that was late last.
        run: String,
        /// How long it had, the last time.
        lead: Duration,
    },
    /// Runs that cannot be evaluated.
    #[error("nothing to evaluate: {0}")]
    Evaluation(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A run could not be carried out.
    #[error(transparent)]
    Run(Box<dyn std::error::Error + Send + Sync>),
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] symbiont_report::ReportError),
}

impl Error {
    /// For `map_err` on what was done to a path.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// For `map_err` on what was read from a path.
    pub fn json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Json { path, source }
    }

    /// For `map_err` where runs cannot be evaluated; of a text as well.
    pub fn evaluation(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Evaluation(why.into())
    }

    /// For `map_err` on what a run came to.
    pub fn run(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Run(why.into())
    }
}

impl From<StatsError> for Error {
    fn from(error: StatsError) -> Self {
        Self::evaluation(error)
    }
}

/// What a program wrote, if it did.
fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn hint(program: &str, source: &io::Error) -> &'static str {
    if program == "setsid" && source.kind() == io::ErrorKind::NotFound {
        "; it is part of util-linux, please install that"
    } else {
        ""
    }
}
