//! The system calls and `/proc` files by which a thread's mask, nice value and scheduling class are read and
//! changed. Nothing here remembers or decides.

#![allow(unsafe_code, reason = "sched_getscheduler and sched_setscheduler have no safe wrapper")]

use std::fs;
use std::io::{self, Read as _};

use procfs::FromRead;
use procfs::process::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use symbiont_topology::{CpuSet, PuId};

use super::affinity;
use super::thread::{Class, Facts, ThreadError, ThreadKey};

/// Bytes that are read of a line of `/proc` at most: some fifty numbers and a name.
const LONGEST_LINE: u64 = 4096;

pub(super) fn numbers_in(directory: &str) -> Vec<u32> {
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

pub(super) fn exactly(key: ThreadKey, found: Option<Facts>) -> Result<Facts, ThreadError> {
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

pub(super) fn set_mask(key: ThreadKey, cpus: Option<&CpuSet>) -> Result<(), ThreadError> {
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
pub(super) fn set_nice(key: ThreadKey, nice: i8) -> Result<(), ThreadError> {
    setpriority_process(Some(pid(key)?), i32::from(nice))
        .map_err(|error| trouble("change the nice value", key, error))
}

/// Whether children fall back to the usual class is `SCHED_RESET_ON_FORK`.
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

/// Does the calling thread run before all usual ones?
pub(super) fn is_at_realtime_priority() -> bool {
    // SAFETY: sched_getscheduler takes a thread number by value, 0 for the caller, and touches no memory of ours.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let realtime = [libc::SCHED_FIFO, libc::SCHED_RR];
    i32::try_from(policy)
        .is_ok_and(|policy| realtime.contains(&(policy & !libc::SCHED_RESET_ON_FORK)))
}

/// Nice value and time slice stay, which `sched_setattr` would write anew.
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
