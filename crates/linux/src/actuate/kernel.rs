//! The system calls and `/proc` files that tell and change a thread's mask,
//! nice value and scheduling class. Nothing here remembers or decides.
//!
//! Masks hold at most 1,024 CPUs (the fixed set of rustix); on a kernel with
//! more possible CPUs the calls answer EINVAL and affinity is refused.

#![allow(unsafe_code, reason = "sched_getscheduler and sched_setscheduler have no safe wrapper")]

use std::fmt;
use std::fs;
use std::io;
use std::ops::RangeInclusive;

use procfs::FromRead;
use procfs::process::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, setpriority_process};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use symbiont_machine::ThreadId;
use symbiont_topology::{CpuSet, PuId};

/// A thread as the kernel knows it: numbers and birth. Unlike a [`ThreadId`]
/// it survives an exec. Two threads that used the same numbers within one
/// clock tick (10 ms as a rule) cannot be told apart.
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

/// How the scheduler treats a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// `SCHED_OTHER`, the usual one.
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`: runs when nobody else wants to.
    Idle,
    /// Real time, deadline or a class of the user's own; never touched.
    Special,
}

impl Class {
    fn of_policy(policy: i32) -> Self {
        match policy & !libc::SCHED_RESET_ON_FORK {
            libc::SCHED_OTHER => Self::Other,
            libc::SCHED_BATCH => Self::Batch,
            libc::SCHED_IDLE => Self::Idle,
            _ => Self::Special,
        }
    }

    fn policy(self) -> Option<i32> {
        match self {
            Self::Other => Some(libc::SCHED_OTHER),
            Self::Batch => Some(libc::SCHED_BATCH),
            Self::Idle => Some(libc::SCHED_IDLE),
            Self::Special => None,
        }
    }
}

/// Trouble with one thread.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// It has exited, or its number now means another thread.
    #[error("{0} has exited")]
    Gone(ThreadKey),
    /// The kernel said no.
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

/// What `/proc/PID/task/TID/stat` tells about identity, descent and priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub key: ThreadKey,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    pub nice: i8,
    pub class: Class,
    /// It keeps its numbers and its line but can no longer be changed.
    pub zombie: bool,
}

/// Reads a thread's facts; `None` if there is no such thread.
pub(super) fn facts(process: u32, thread: u32) -> Result<Option<Facts>, ThreadError> {
    let fail = |source| ThreadError::Kernel { what: "read the state", thread, source };
    let bytes = match fs::read(format!("/proc/{process}/task/{thread}/stat")) {
        Ok(bytes) => bytes,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let stat = Stat::from_read(bytes.as_slice())
        .map_err(|error| fail(io::Error::new(io::ErrorKind::InvalidData, error.to_string())))?;
    Ok(Some(Facts {
        key: ThreadKey { process, thread, born: stat.starttime },
        parent: stat.ppid.unsigned_abs(),
        group: stat.pgrp.unsigned_abs(),
        session: stat.session.unsigned_abs(),
        nice: i8::try_from(stat.nice).unwrap_or(0),
        class: stat
            .policy
            .map_or(Class::Special, |p| i32::try_from(p).map_or(Class::Special, Class::of_policy)),
        zombie: matches!(stat.state, 'Z' | 'X' | 'x'),
    }))
}

/// Reads the facts of exactly this thread.
pub(super) fn facts_of(key: ThreadKey) -> Result<Facts, ThreadError> {
    match facts(key.process, key.thread)? {
        Some(facts) if facts.key == key && !facts.zombie => Ok(facts),
        _ => Err(ThreadError::Gone(key)),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn trouble(what: &'static str, key: ThreadKey, error: Errno) -> ThreadError {
    match error {
        Errno::SRCH => ThreadError::Gone(key),
        Errno::PERM | Errno::ACCESS => {
            let why = format!(
                "{error}: threads of other users, and raising priority, need CAP_SYS_NICE; \
                 for your own threads a higher RLIMIT_NICE will do (limits.conf: 'nice -10')"
            );
            let source = io::Error::new(io::ErrorKind::PermissionDenied, why);
            ThreadError::Kernel { what, thread: key.thread, source }
        }
        _ => ThreadError::Kernel { what, thread: key.thread, source: error.into() },
    }
}

fn pid(key: ThreadKey) -> Result<Pid, ThreadError> {
    // Number 0 would mean the caller itself.
    i32::try_from(key.thread).ok().and_then(Pid::from_raw).ok_or(ThreadError::Gone(key))
}

/// The hardware threads that a thread may use now.
pub(super) fn mask(key: ThreadKey) -> Result<CpuSet, ThreadError> {
    affinity(pid(key)?).map_err(|error| trouble("read the affinity", key, error))
}

/// The same of whoever has that number now.
pub(crate) fn affinity(thread: Pid) -> Result<CpuSet, Errno> {
    let set = sched_getaffinity(Some(thread))?;
    let most = u32::try_from(rustix::thread::CpuSet::MAX_CPU).unwrap_or(u32::MAX);
    Ok((0..most).filter(|&cpu| set.is_set(cpu as usize)).map(PuId).collect())
}

/// The mask that a thread gets which asks for all: its cpuset's. Asked on a
/// thread that lives for this question only; `None` if none can be made.
pub(super) fn widest_mask() -> Option<CpuSet> {
    let ask = || {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let key = facts(std::process::id(), thread).ok()??.key;
        set_mask(key, None).ok()?;
        mask(key).ok()
    };
    std::thread::Builder::new().spawn(ask).ok()?.join().ok()?
}

/// Lets a thread use just these hardware threads; `None` is all that there
/// are and ever will be, as for a thread that nobody ever pinned.
pub(super) fn set_mask(key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError> {
    let mut set = rustix::thread::CpuSet::new();
    let most = rustix::thread::CpuSet::MAX_CPU;
    match cpus {
        None => (0..most).for_each(|cpu| set.set(cpu)),
        Some(cpus) => {
            cpus.iter().map(|pu| pu.0 as usize).filter(|&c| c < most).for_each(|c| set.set(c));
        }
    }
    sched_setaffinity(Some(pid(key)?), &set).map_err(|error| match error {
        Errno::INVAL => ThreadError::Kernel {
            what: "change the affinity",
            thread: key.thread,
            source: io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{error}: its cpuset holds none of the hardware threads any more"),
            ),
        },
        error => trouble("change the affinity", key, error),
    })
}

/// Sets the nice value of one thread (Linux applies `PRIO_PROCESS` to threads).
pub(super) fn set_nice(key: ThreadKey, nice: i8) -> Result<(), ThreadError> {
    setpriority_process(Some(pid(key)?), i32::from(nice))
        .map_err(|error| trouble("change the nice value", key, error))
}

/// The class, and whether children fall back to the usual one (`SCHED_RESET_ON_FORK`).
pub(super) fn scheduler(key: ThreadKey) -> Result<(Class, bool), ThreadError> {
    let thread = pid(key)?.as_raw_nonzero().get();
    // By number, since musl's wrapper always answers ENOSYS.
    // SAFETY: sched_getscheduler takes a thread number by value and touches no memory of ours.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread) };
    match i32::try_from(policy) {
        Ok(policy) if policy >= 0 => {
            Ok((Class::of_policy(policy), policy & libc::SCHED_RESET_ON_FORK != 0))
        }
        _ => Err(trouble("read the class", key, last_errno())),
    }
}

/// Changes the class alone: nice value and time slice stay, which
/// `sched_setattr` would write anew.
pub(super) fn set_class(key: ThreadKey, class: Class, reset: bool) -> Result<(), ThreadError> {
    let thread = pid(key)?.as_raw_nonzero().get();
    let Some(policy) = class.policy() else { return Ok(()) };
    let policy = policy | if reset { libc::SCHED_RESET_ON_FORK } else { 0 };
    let urgency: libc::c_int = 0; // struct sched_param { int sched_priority; }
    // SAFETY: the kernel only reads one `struct sched_param`, a single int, from the pointer,
    // which points to a live local for the whole call.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const urgency) };
    if answer == 0 { Ok(()) } else { Err(trouble("change the class", key, last_errno())) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Now, in the unit of [`ThreadKey::born`].
pub(super) fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let hz = rustix::param::clock_ticks_per_second();
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * hz + nanos * hz / 1_000_000_000
}
