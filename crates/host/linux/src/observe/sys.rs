//! System calls that rustix does not wrap.
#![expect(
    unsafe_code,
    reason = "recvmmsg, sched_setscheduler, sched_setattr and clocks of other processes have no safe wrapper"
)]

use std::time::Duration;

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;

/// Receives up to `N` datagrams without waiting; fills in the length of each
/// and gives their number. Longer datagrams are cut.
///
/// Expects a non-blocking socket.
pub(crate) fn receive<const N: usize, const M: usize>(
    socket: BorrowedFd<'_>,
    buffers: &mut [[u8; M]; N],
    lengths: &mut [usize; N],
) -> Result<usize, Errno> {
    let mut parts = buffers
        .each_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: M });
    let mut messages = parts.each_mut().map(|part| {
        // SAFETY: mmsghdr is a plain C structure; all zeros are a valid value
        // and mean: no address, no control data.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message
    });
    let most = libc::c_uint::try_from(N).unwrap_or(libc::c_uint::MAX);
    let (first, no_timeout) = (messages.as_mut_ptr(), std::ptr::null_mut());
    // SAFETY: `messages` holds at least `most` headers. Each points to one part
    // in `parts`, which describes exactly one buffer of `buffers`; all three
    // live until the call returns and are not touched meanwhile.
    let count = unsafe { libc::recvmmsg(socket.as_raw_fd(), first, most, 0, no_timeout) };
    let count = usize::try_from(count).map_err(|_| last_error())?;
    for (length, message) in lengths.iter_mut().zip(&messages).take(count) {
        *length = usize::try_from(message.msg_len).unwrap_or(0).min(M);
    }
    Ok(count)
}

/// Puts the calling thread into the round-robin real-time class at its lowest
/// priority; threads that it makes are normal.
pub(crate) fn run_at_realtime_priority() -> Result<(), Errno> {
    set_class(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1)
}

/// The same, and the threads that it makes from now on are in that class, too.
pub(crate) fn run_all_at_realtime_priority() -> Result<(), Errno> {
    set_class(libc::SCHED_RR, 1)
}

/// Puts the calling thread into the normal class.
pub(crate) fn run_at_normal_priority() -> Result<(), Errno> {
    set_class(libc::SCHED_OTHER, 0)
}

fn set_class(class: libc::c_int, priority: libc::c_int) -> Result<(), Errno> {
    // SAFETY: sched_param is a plain C structure of integers and times.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    let (this_thread, parameters): (libc::pid_t, *const _) = (0, &raw const parameters);
    // SAFETY: the kernel reads one sched_param behind the pointer, which lives
    // until the call returns.
    // (Called directly: musl's own function acts on processes and refuses.)
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, this_thread, class, parameters) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// `struct sched_attr` of sched_setattr(2) in its first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// `SCHED_FLAG_RESET_ON_FORK`: threads and processes that it makes are normal.
const RESET_ON_FORK: u64 = 1;
/// The shortest slice that the kernel grants.
const SHORTEST_NS: u64 = 100_000;

/// Gives the calling thread, which needs no right for that, the shortest time slice: since
/// Linux 6.12 it then runs as soon as it wakes, before threads with longer slices. Older
/// kernels take no notice.
pub(crate) fn run_in_short_slices() -> Result<(), Errno> {
    let attributes = SchedAttr {
        size: 48,
        policy: 0,
        flags: RESET_ON_FORK,
        nice: rustix::process::getpriority_process(None)?,
        priority: 0,
        runtime_ns: SHORTEST_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    let (this_thread, flags): (libc::pid_t, libc::c_uint) = (0, 0);
    // SAFETY: the kernel reads `size` bytes behind the pointer, which is the size of SchedAttr,
    // a plain C structure that lives until the call returns.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setattr, this_thread, &raw const attributes, flags)
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// The clock of the time that all threads of a process ran, also those that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessClock(libc::clockid_t);

impl ProcessClock {
    /// None where there is no such process.
    pub fn of(process: u32) -> Option<Self> {
        let mut clock = 0;
        let process = libc::pid_t::try_from(process).ok()?;
        // SAFETY: a clock's number is written behind the pointer, which lives until the call returns.
        let failed = unsafe { libc::clock_getcpuclockid(process, &raw mut clock) };
        (failed == 0).then_some(Self(clock))
    }

    /// None if the process is gone.
    pub fn read(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a time is written behind the pointer, which lives until the call returns.
        let done = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        let seconds = u64::try_from(time.tv_sec).ok().filter(|_| done == 0)?;
        Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
