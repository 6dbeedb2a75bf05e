//! How a machine of this host is made, and why it cannot be.

use std::io;
use std::path::PathBuf;

use serde::Deserialize;

use super::CountOptions;
use crate::actuate::ActuatorError;
use crate::observe::{WatchError, WatchOptions};

/// How to make a machine of this host.
#[derive(Debug, Clone)]
pub struct MachineOptions {
    /// Where journals are kept.
    pub state_dir: PathBuf,
    /// How to watch.
    pub watch: WatchOptions,
    /// How to count events, where that is needed.
    pub counting: CountOptions,
    /// How threads that no mask holds are kept on their targets.
    pub keeping: Keeping,
}

/// How threads that no mask holds are kept on their targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeping {
    /// They are nudged there, and again when the kernel has moved them away.
    #[default]
    Nudges,
    /// By Symbiont's own `sched_ext` scheduler, to which only placed threads are given.
    SchedExt,
    /// The same, with all usual threads of the machine.
    SchedExtFull,
}

/// Why this host cannot be watched or steered at all.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// Threads cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// No journal can be kept, so that after a crash changes could not be undone.
    #[error(transparent)]
    Actuate(#[from] ActuatorError),
    /// The loop cannot sleep.
    #[error("cannot wait for the end of a quantum: {0}")]
    Wait(#[source] io::Error),
}
