//! What experiments on the real machine share: running programs within bounds, measuring the same cells in every
//! round, facts about the machine.
//!
//! # Problem
//! A campaign is hundreds of runs of the product's own command line. It must
//! never hang, never leave anything running, and go on where it stopped.
//!
//! # Approach
//! [`run`] starts a program in a session of its own (so that it shares CPU
//! time, by autogroup, with no other), waits with a bound, and ends the whole
//! tree if the bound is passed or the campaign is cancelled. A [`Measure`] says what the cells
//! of an experiment are and how one is measured; a [`Site`] is the folder and the machine where
//! that is done, by the one loop of all experiments ([`symbiont_campaign`]). [`ManagerFigures`] is what the
//! manager reported of a run, [`Machine`] what the results depend on, a [`Check`] what they have to show.
//!
//! # Terms and units
//! *Run*: one measurement. *Cell*: what differs between the runs of a round. *Round*: every cell once, in
//! random order, so that slow changes of the machine hit all of them alike.
//!
//! # Properties
//! - A program that does not end is ended with all its descendants
//!   (`a_program_that_does_not_end_is_ended_with_its_children`).
//! - Nothing is measured next to a daemon that does not serve (`nothing_is_measured_without_a_daemon`).

use std::path::{Path, PathBuf};

use symbiont_campaign::Error;

mod check;
mod daemon;
mod facts;
mod lead;
mod managed;
mod process;
mod rate;
mod site;
mod slow;

pub use check::{Check, Direction, Verdict};
pub use daemon::{Daemon, TIMEOUT};
pub use facts::Machine;
pub use lead::Lead;
pub use managed::{Costs, Lateness, ManagerFigures, Moves, read_report};
pub use process::run;
pub use site::{ATTEMPTS, Measure, MeasuredRun, RunFolder, Site};
pub use slow::{SlowedCpus, words as slow_cpus};

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
