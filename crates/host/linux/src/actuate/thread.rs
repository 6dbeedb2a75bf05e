//! A thread as the kernel shows it: its identity and its settings.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use symbiont_machine::ThreadId;
use symbiont_topology::{CpuSet, PuId};

/// A thread as the kernel knows it: numbers and birth. Unlike a [`ThreadId`]
/// it survives an exec. Two threads that used the same numbers within one
/// clock tick (10 ms as a rule) cannot be distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadKey {
    /// Process (thread group) number.
    pub process: u32,
    /// Thread number.
    pub thread: u32,
    /// When it was born, in clock ticks since boot.
    pub born: u64,
}

impl ThreadKey {
    /// All keys of a process, for ordered maps.
    pub(super) fn all_of(process: u32) -> RangeInclusive<Self> {
        let first = Self { process, thread: 0, born: 0 };
        first..=Self { process, thread: u32::MAX, born: u64::MAX }
    }
}

impl From<&ThreadId> for ThreadKey {
    fn from(id: &ThreadId) -> Self {
        Self { process: id.process, thread: id.thread, born: id.born }
    }
}

impl fmt::Display for ThreadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, thread, born } = *self;
        ThreadId { process, thread, born, generation: 0 }.fmt(f)
    }
}

/// The policy's number (include/uapi/linux/sched.h), which libc does not have.
const SCHED_EXT: i32 = 7;

/// How the scheduler treats a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// `SCHED_OTHER`, the usual one.
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`: runs when no other thread is ready.
    Idle,
    /// `SCHED_EXT`: a loaded `sched_ext` scheduler decides, and the kernel's own while there is none.
    Ext,
    /// Real time or deadline; never touched.
    Special,
}

impl Class {
    pub fn of_policy(policy: i32) -> Self {
        match policy & !libc::SCHED_RESET_ON_FORK {
            libc::SCHED_OTHER => Self::Other,
            libc::SCHED_BATCH => Self::Batch,
            libc::SCHED_IDLE => Self::Idle,
            SCHED_EXT => Self::Ext,
            _ => Self::Special,
        }
    }

    pub fn policy(self) -> Option<i32> {
        match self {
            Self::Other => Some(libc::SCHED_OTHER),
            Self::Batch => Some(libc::SCHED_BATCH),
            Self::Idle => Some(libc::SCHED_IDLE),
            Self::Ext => Some(SCHED_EXT),
            Self::Special => None,
        }
    }
}

/// An error with one thread.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// It has exited, or its number now means another thread.
    #[error("{0} has exited")]
    Gone(ThreadKey),
    /// A system call failed.
    #[error("cannot {what} of thread {thread}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// Thread number.
        thread: u32,
        /// What the kernel answered.
        source: io::Error,
    },
}

impl ThreadError {
    /// Did the kernel refuse for lack of rights?
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Kernel { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// What `/proc/PID/task/TID/stat` contains about identity, descent and priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub key: ThreadKey,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    pub nice: i8,
    pub class: Class,
    /// It has ended, but keeps its number and its line in /proc until its parent has waited for it.
    pub zombie: bool,
    /// Where it runs or waits to run; none: it sleeps.
    pub on: Option<PuId>,
}

/// What a thread has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    pub parent: u32,
    pub mask: CpuSet,
    pub nice: i8,
    pub class: Class,
    pub reset_on_fork: bool,
    /// Where it runs or waits to run; none: it sleeps.
    pub on: Option<PuId>,
}
