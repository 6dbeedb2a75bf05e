//! What experiments on the real machine share: running programs within bounds,
//! keeping finished runs, facts about the machine.
//!
//! # Problem
//! A campaign is hundreds of runs of the product's own command line. It must
//! never hang, never leave anything running, and go on where it stopped.
//!
//! # Approach
//! [`run`] starts a program in a session of its own (so that it shares CPU
//! time, by autogroup, with no other), waits with a bound, and ends the whole
//! tree if the bound is passed or the campaign is cancelled. [`Journal`] keeps
//! one JSON line per finished run. [`Progress`] reports to a user interface, which
//! lives elsewhere, how far a campaign is. [`Managed`] is what the manager reported
//! of a run, [`Machine`] what the results depend on, a [`Check`] what they have
//! to show.
//!
//! # Terms and units
//! *Run*: one measurement. *Round*: every run of a campaign once, in random
//! order, so that slow changes of the machine hit all of them alike.
//!
//! # Properties
//! - A program that does not end is ended with all its descendants
//!   (`a_program_that_does_not_end_is_ended_with_its_children`).
//! - A journal with a torn last line, as a crash leaves it, reads as the runs
//!   before (`a_torn_last_line_is_dropped`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use symbiont_linux::slow::SlowError;
use symbiont_report::number::time;

mod check;
mod daemon;
mod facts;
mod journal;
mod lead;
mod managed;
mod process;
mod slow;
#[cfg(any(test, feature = "test-support"))]
pub mod stand_in;

pub use check::{Check, Goes, Verdict};
pub use facts::Machine;
pub use journal::Journal;
pub use managed::{Costs, Lateness, Managed, Moves};
pub use process::{Finished, run};

pub use daemon::{Daemon, TIMEOUT};
pub use journal::read_json;
pub use lead::Lead;
pub use managed::read_report;
pub use slow::{Slow, words as slow_cpus};

/// Notified how a campaign goes; a terminal, a log, or nothing (`()`).
pub trait Progress {
    /// The campaign begins: how many runs there are, how many of them were done before (none: runs are not
    /// kept), and how long the rest should take.
    fn begin(&mut self, runs: usize, done: Option<usize>, estimate: Duration);
    /// A run begins.
    fn running(&mut self, what: &str);
    /// A run is done and kept.
    fn done(&mut self);
    /// Something that the user should know.
    fn note(&mut self, text: &str);
    /// Should the campaign stop? Asked several times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {
    fn begin(&mut self, _: usize, _: Option<usize>, _: Duration) {}
    fn running(&mut self, _: &str) {}
    fn done(&mut self) {}
    fn note(&mut self, _: &str) {}
}

/// Makes a folder, and those that it is in, where they are not there yet.
///
/// # Errors
/// When it cannot be made, or what is there of it is no folder.
pub fn make_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| {
        // Of its ancestors, the first that is there is the obstacle.
        let there = folder.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir());
        match there {
            Some(path) => Error::NotAFolder { path: path.to_owned() },
            None => Error::Io { path: folder.to_owned(), source },
        }
    })
}

/// A folder for the files of one run, which is removed with all of them.
pub fn scratch(output: &Path) -> Result<tempfile::TempDir, Error> {
    tempfile::Builder::new().prefix("running-").tempdir_in(output).map_err(Error::io(output))
}

/// The two programs that experiments run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// `symbiont`.
    pub symbiont: PathBuf,
    /// `symbiont-synth`.
    pub synth: PathBuf,
}

impl Programs {
    /// Both in the folder of the running program.
    ///
    /// # Errors
    /// When that folder is unknown or one of them is not in it.
    pub fn next_to_this_one() -> Result<Self, Error> {
        let this = std::env::current_exe()
            .map_err(|source| Error::Io { path: "/proc/self/exe".into(), source })?;
        let folder = this.parent().unwrap_or(Path::new("/"));
        let find = |name: &str| {
            let path = folder.join(name);
            if path.is_file() { Ok(path) } else { Err(Error::NoProgram { path }) }
        };
        Ok(Self { symbiont: find("symbiont")?, synth: find("symbiont-synth")? })
    }
}

/// Why an experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is to be a folder is something else.
    #[error("{path} is not a folder")]
    NotAFolder {
        /// Which.
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
        /// Which.
        program: String,
        /// Why.
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
        /// Why.
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
        /// Which.
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
        /// Which.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A line of a file of finished runs is none.
    #[error(
        "{path}: line {line} is damaged ({why}): remove that line, and the run that it was of is measured anew"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A CPU cannot be slowed down, or is not any more.
    #[error(transparent)]
    Slow(#[from] SlowError),
    /// Run after run failed.
    #[error("a run ({run}) failed {attempts} times, the last time: {source}")]
    Hopeless {
        /// Which run.
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
        /// Which run, the last time.
        run: String,
        /// How long it had, the last time.
        lead: Duration,
    },
    /// Runs that cannot be evaluated.
    #[error("nothing to evaluate: {0}")]
    Evaluation(String),
    /// A simulated run could not be carried out.
    #[error(transparent)]
    Simulated(Box<dyn std::error::Error + Send + Sync>),
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
