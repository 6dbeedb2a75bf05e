//! The system calls and `/proc` files that read and change a thread's mask,
//! nice value and scheduling class. Nothing here remembers or decides.

#![allow(unsafe_code, reason = "sched_getscheduler and sched_setscheduler have no safe wrapper")]

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::sync::Arc;

use procfs::FromRead;
use procfs::process::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use symbiont_machine::ThreadId;
use symbiont_topology::{CpuSet, HostTopology, PuId};

use super::affinity;
use super::cgroup::Cgroups;
use super::groups::{GroupKey, Grouping};
use super::journal_state::Present;
use super::mounts::Mounts;
use super::scheduler::loaded_scheduler;
use super::standing::Standing;
use crate::online::Online;

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

/// Bytes that are read of a line of `/proc` at most: some fifty numbers and a name.
const LONGEST_LINE: u64 = 4096;

/// Trouble with one thread.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// It has exited, or its number now means another thread.
    #[error("{0} has exited")]
    Gone(ThreadKey),
    /// The kernel said no.
    #[error("cannot {what} of thread {thread}: {source}")]
    Kernel {
        /// What was attempted.
        what: &'static str,
        /// Thread number.
        thread: u32,
        /// The kernel's answer.
        source: io::Error,
    },
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
    /// It keeps its numbers and its line but can no longer be changed.
    pub zombie: bool,
    /// Where it runs or waits to run; none: it sleeps.
    pub on: Option<PuId>,
}

/// What the actuator asks of a kernel: the running one ([`Host`]), or a simulated one.
pub(super) trait Kernel: fmt::Debug + Send {
    /// A thread's facts; `None` if there is no such thread.
    fn facts(&self, process: u32, thread: u32) -> Result<Option<Facts>, ThreadError>;
    /// The hardware threads that a thread may use now.
    fn mask(&self, key: ThreadKey) -> Result<CpuSet, ThreadError>;
    /// Lets a thread use just these hardware threads; `None` is all that there are and ever will
    /// be, as for a thread that was never pinned.
    fn set_mask(&self, key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError>;
    /// Sets the nice value of one thread.
    fn set_nice(&self, key: ThreadKey, nice: i8) -> Result<(), ThreadError>;
    /// The class, and whether children fall back to the usual one.
    fn scheduler(&self, key: ThreadKey) -> Result<(Class, bool), ThreadError>;
    /// Changes the class alone.
    fn set_class(&self, key: ThreadKey, class: Class, reset: bool) -> Result<(), ThreadError>;
    /// Now, in the unit of [`ThreadKey::born`].
    fn now_ticks(&self) -> u64;
    /// Now, on the clock of the kernel's reports of births.
    fn now_ns(&self) -> u64;
    /// All processes.
    fn processes(&self) -> Vec<u32>;
    /// The threads of a process.
    fn threads(&self, process: u32) -> Vec<u32>;
    /// The CPUs that a process's cpuset allows now.
    fn cpuset(&self, process: u32) -> Arc<CpuSet>;
    /// The scheduling group in which a process competes.
    fn group(&self, process: u32) -> Option<GroupKey>;
    /// How processes are grouped for scheduling.
    fn grouping(&self) -> Grouping;
    /// The `sched_ext` scheduler that decides now.
    fn loaded_scheduler(&self) -> Option<String>;
    /// Finds again what may have changed of the machine: online CPUs, and where cgroups are
    /// mounted. Returns how many CPUs are online, where that is known.
    fn look_again(&mut self) -> Option<usize> {
        None
    }
    /// The calling thread, for it to go to the CPUs of threads that it nudges.
    fn standing(&self) -> Option<Standing> {
        None
    }
    /// CPUs that no thread may use any more although they are listed as online and in cpusets: they
    /// are going offline just now.
    fn leaving(&self) -> CpuSet {
        CpuSet::new()
    }

    /// The facts of exactly this thread.
    fn facts_of(&self, key: ThreadKey) -> Result<Facts, ThreadError> {
        exactly(key, self.facts(key.process, key.thread)?)
    }

    /// What a thread has now.
    fn present(&self, key: ThreadKey) -> Result<Present, ThreadError> {
        let mask = self.mask(key)?;
        let (class, reset_on_fork) = self.scheduler(key)?;
        // Last, so that what was read belongs to the thread whose birth is checked.
        let facts = self.facts_of(key)?;
        let Facts { parent, nice, on, .. } = facts;
        Ok(Present { parent, mask, nice, class, reset_on_fork, on })
    }
}

/// The running kernel.
#[derive(Debug)]
pub(super) struct Host {
    cgroups: Cgroups,
    mounts: Mounts,
    online: Online,
}

impl Host {
    pub fn new(host: &HostTopology) -> Self {
        let mounts = Mounts::watch();
        Self { cgroups: Cgroups::discover(host), mounts, online: Online::open() }
    }
}

impl Kernel for Host {
    fn facts(&self, process: u32, thread: u32) -> Result<Option<Facts>, ThreadError> {
        facts(process, thread)
    }

    fn mask(&self, key: ThreadKey) -> Result<CpuSet, ThreadError> {
        mask(key)
    }

    fn set_mask(&self, key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError> {
        set_mask(key, cpus)
    }

    fn set_nice(&self, key: ThreadKey, nice: i8) -> Result<(), ThreadError> {
        set_nice(key, nice)
    }

    fn scheduler(&self, key: ThreadKey) -> Result<(Class, bool), ThreadError> {
        scheduler(key)
    }

    fn set_class(&self, key: ThreadKey, class: Class, reset: bool) -> Result<(), ThreadError> {
        set_class(key, class, reset)
    }

    fn now_ticks(&self) -> u64 {
        now_ticks()
    }

    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
    }

    fn processes(&self) -> Vec<u32> {
        numbers_in("/proc")
    }

    fn threads(&self, process: u32) -> Vec<u32> {
        numbers_in(&format!("/proc/{process}/task"))
    }

    fn cpuset(&self, process: u32) -> Arc<CpuSet> {
        let cpuset = self.cgroups.cpuset(process);
        // The kernel takes offline CPUs out of cpusets a moment later.
        let left = self.online.now().map(|online| online.intersection(&cpuset));
        match left {
            Some(left) if !left.is_empty() && left != *cpuset => Arc::new(left),
            _ => cpuset,
        }
    }

    fn group(&self, process: u32) -> Option<GroupKey> {
        self.cgroups.group(process)
    }

    fn grouping(&self) -> Grouping {
        self.cgroups.grouping()
    }

    fn loaded_scheduler(&self) -> Option<String> {
        loaded_scheduler()
    }

    fn look_again(&mut self) -> Option<usize> {
        let online = self.online.now()?;
        let count = online.len();
        self.cgroups.look_again(online, self.mounts.have_changed());
        Some(count)
    }

    fn standing(&self) -> Option<Standing> {
        Standing::begin(&self.cpuset(std::process::id()))
    }

    fn leaving(&self) -> CpuSet {
        // A thread that asks for all has what its cpuset allows, less what is going offline.
        let own = self.cpuset(std::process::id());
        widest_mask().map_or_else(CpuSet::new, |left| own.difference(&left))
    }
}

fn numbers_in(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Reads a thread's facts; `None` if there is no such thread.
pub(super) fn facts(process: u32, thread: u32) -> Result<Option<Facts>, ThreadError> {
    let fail = |source| ThreadError::Kernel { what: "read the state", thread, source };
    let bytes = match read_line(&format!("/proc/{process}/task/{thread}/stat")) {
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
        on: stat
            .processor
            .filter(|_| stat.state == 'R')
            .and_then(|cpu| u32::try_from(cpu).ok())
            .map(PuId),
    }))
}

/// A file of one line, in as few calls as there can be: many are read while a CPU is kept.
fn read_line(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    fs::File::open(path)?.take(LONGEST_LINE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the facts of exactly this thread.
pub(super) fn facts_of(key: ThreadKey) -> Result<Facts, ThreadError> {
    exactly(key, facts(key.process, key.thread)?)
}

fn exactly(key: ThreadKey, found: Option<Facts>) -> Result<Facts, ThreadError> {
    found.filter(|facts| facts.key == key && !facts.zombie).ok_or(ThreadError::Gone(key))
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
    affinity::get(Some(pid(key)?)).map_err(|error| trouble("read the affinity", key, error))
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

fn set_mask(key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError> {
    affinity::set(Some(pid(key)?), cpus).map_err(|error| match error {
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

/// Linux applies `PRIO_PROCESS` to threads.
fn set_nice(key: ThreadKey, nice: i8) -> Result<(), ThreadError> {
    setpriority_process(Some(pid(key)?), i32::from(nice))
        .map_err(|error| trouble("change the nice value", key, error))
}

/// Whether children fall back to the usual class is `SCHED_RESET_ON_FORK`.
fn scheduler(key: ThreadKey) -> Result<(Class, bool), ThreadError> {
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

/// Does the calling thread run before all usual ones?
pub(super) fn is_at_realtime_priority() -> bool {
    // SAFETY: sched_getscheduler takes a thread number by value, 0 for the caller, and touches no memory of ours.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let realtime = [libc::SCHED_FIFO, libc::SCHED_RR];
    i32::try_from(policy)
        .is_ok_and(|policy| realtime.contains(&(policy & !libc::SCHED_RESET_ON_FORK)))
}

/// Nice value and time slice stay, which `sched_setattr` would write anew.
fn set_class(key: ThreadKey, class: Class, reset: bool) -> Result<(), ThreadError> {
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
