//! The few calls that have no safe wrapper: fork, exec, the state of signals.
//!
//! They are for processes with a single thread: after a fork, the child of such a process is a complete copy, in
//! which any function may be called, not only async-signal-safe ones. [`fork`] checks this itself.
#![expect(unsafe_code, reason = "fork, exec and signal state have no safe wrappers")]

use std::ffi::CStr;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

/// Why a fork did not happen.
#[derive(Debug)]
pub(super) enum ForkError {
    /// There are other threads.
    Threads(usize),
    /// The kernel said no.
    Io(io::Error),
}

/// Which side of a fork this is.
#[derive(Debug)]
pub(super) enum Side {
    /// The process that forked, and its child.
    Parent(Pid),
    /// The child.
    Child,
}

/// How many threads this process has. Where /proc is not mounted, only that it has one
/// can be found out.
pub(super) fn threads() -> io::Result<usize> {
    match fs::read_dir("/proc/self/task") {
        Ok(list) => Ok(list.count()),
        Err(_) if is_single_threaded() => Ok(1),
        Err(error) => Err(error),
    }
}

/// The kernel refuses this flag in a process with several threads, and does nothing
/// in one that has a single one (unshare(2)).
fn is_single_threaded() -> bool {
    // SAFETY: unshare has no memory preconditions, and with this flag changes nothing.
    unsafe { libc::unshare(libc::CLONE_THREAD) == 0 }
}

/// `fork(2)`, refused unless this process has exactly one thread.
pub(super) fn fork() -> Result<Side, ForkError> {
    match threads().map_err(ForkError::Io)? {
        1 => {}
        several => return Err(ForkError::Threads(several)),
    }
    // SAFETY: this is the only thread, so no lock can be held by another one and
    // all memory is consistent in the child.
    let pid = unsafe { libc::fork() };
    match (pid, Pid::from_raw(pid)) {
        (0, _) => Ok(Side::Child),
        (1.., Some(pid)) => Ok(Side::Parent(pid)),
        _ => Err(ForkError::Io(io::Error::last_os_error())),
    }
}

/// Ends a forked copy of this process, without the caller's exit handlers and
/// without writing its buffers a second time.
pub(super) fn end(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// `execvp(3)`: searches PATH; returns only on failure.
pub(super) fn exec<'a>(words: impl Iterator<Item = &'a CStr>) -> io::Error {
    let pointers: Vec<_> =
        words.map(CStr::as_ptr).chain(std::iter::once(std::ptr::null())).collect();
    let Some(program) = pointers.first().filter(|first| !first.is_null()) else {
        return io::Error::from_raw_os_error(libc::EINVAL);
    };
    // SAFETY: the strings outlive the call, end in a zero byte each, and the
    // list ends in a null pointer.
    unsafe { libc::execvp(*program, pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Adds variables to this process's environment, for the program that follows.
/// Does nothing in a process with several threads.
pub(super) fn add_environment<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) {
    if threads().is_ok_and(|count| count == 1) {
        for (name, value) in variables {
            // SAFETY: no other thread exists that could read the environment.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

/// Closes every descriptor from 3 on but those of `keep`.
///
/// The caller answers for it that no code in this process uses one of the
/// closed ones afterwards; it is meant for a copy that was just forked.
pub(super) fn close_others(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    keep.sort_unstable();
    let mut from: u32 = 3;
    for kept in keep.into_iter().filter(|fd| *fd >= 3) {
        if kept > from {
            close_range(from, kept - 1)?;
        }
        from = kept + 1;
    }
    close_range(from, u32::MAX)
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: closes descriptors only; see `close_others` for the threads that may use them.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })
}

/// Closes descriptor 0, 1 or 2.
pub(super) fn close_standard(descriptor: RawFd) {
    if (0..3).contains(&descriptor) {
        // SAFETY: the standard streams tolerate a closed descriptor; no owned
        // descriptor has one of these numbers, as the runtime keeps them open.
        unsafe { libc::close(descriptor) };
    }
}

/// A set of signals.
#[derive(Clone, Copy)]
pub(super) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of these signals; unknown numbers are left out.
    pub(super) fn of(signals: impl IntoIterator<Item = i32>) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset fills the set that it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: it was just filled.
        let mut set = unsafe { set.assume_init() };
        for signal in signals {
            // SAFETY: `set` is valid; a bad number is refused with EINVAL.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        Self(set)
    }

    /// Makes this the set of blocked signals; gives the one before.
    pub(super) fn block_only(&self) -> io::Result<Self> {
        self.change(libc::SIG_SETMASK)
    }

    /// Blocks these in addition; gives the set of blocked ones before.
    pub(super) fn block(&self) -> io::Result<Self> {
        self.change(libc::SIG_BLOCK)
    }

    /// Lets these through; gives the set of blocked ones before.
    pub(super) fn unblock(&self) -> io::Result<Self> {
        self.change(libc::SIG_UNBLOCK)
    }

    fn change(&self, how: i32) -> io::Result<Self> {
        let mut before = Self::of([]);
        // SAFETY: both sets are valid and live through the call.
        check(unsafe { libc::sigprocmask(how, &raw const self.0, &raw mut before.0) })?;
        Ok(before)
    }

    /// A descriptor that becomes readable when one of these (blocked) signals
    /// is pending.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is valid and lives through the call.
        let fd = unsafe { libc::signalfd(-1, &raw const self.0, flags) };
        check(fd)?;
        // SAFETY: the descriptor is new and known to no other code.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Takes one of these (blocked) signals, waiting for it if need be.
    pub(super) fn wait(&self) -> io::Result<Received> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        loop {
            // SAFETY: both pointers are valid through the call.
            let signal = unsafe { libc::sigwaitinfo(&raw const self.0, info.as_mut_ptr()) };
            match check(signal) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            // SAFETY: zeroed is a valid siginfo_t, and the kernel filled it.
            let info = unsafe { info.assume_init() };
            let sender = if info.si_code <= 0 {
                // SAFETY: for signals sent by a process the kernel sets si_pid;
                // for the rest of these codes it reads an integer of the union.
                Sender::Process(unsafe { info.si_pid() })
            } else {
                Sender::Kernel
            };
            return Ok(Received { signal, sender });
        }
    }

    /// Takes one of these (blocked) signals if one is pending; says if it was.
    pub(super) fn take_pending(&self) -> bool {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let no_info = std::ptr::null_mut();
        // SAFETY: the pointers are valid or null where null is allowed.
        unsafe { libc::sigtimedwait(&raw const self.0, no_info, &raw const now) > 0 }
    }
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    /// Its number.
    pub(super) signal: i32,
    /// The process that sent it.
    pub(super) sender: Sender,
}

/// The process that sent a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The kernel: the terminal, a timer, a child's change.
    Kernel,
    /// This process.
    Process(i32),
}

/// Is the signal pending for this process?
pub(super) fn is_pending(signal: i32) -> bool {
    let mut set = SignalSet::of([]);
    // SAFETY: fills the set that it is given.
    unsafe { libc::sigpending(&raw mut set.0) };
    // SAFETY: the set is valid; a bad number gives an error, not 1.
    unsafe { libc::sigismember(&raw const set.0, signal) == 1 }
}

/// Is the signal ignored?
pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is a valid value of this plain C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only reads the disposition, into a struct that lives long enough.
    let read = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    read == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Has the signal ignored, or acted upon as the kernel does by default.
pub(super) fn set_ignored(signal: i32, ignored: bool) {
    let disposition = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither disposition runs code; a number that the kernel or the C
    // library does not allow is refused with an error.
    unsafe { libc::signal(signal, disposition) };
}

/// All signals that there are.
pub(super) fn all_signals() -> impl Iterator<Item = i32> {
    1..=libc::SIGRTMAX()
}

/// Sends a signal to a process.
pub(super) fn send(pid: Pid, signal: i32) {
    // SAFETY: kill has no memory preconditions; a process that is gone, or a
    // number that is no signal, gives an error.
    unsafe { libc::kill(pid.as_raw_nonzero().get(), signal) };
}

fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_is_known_without_proc() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(threads().unwrap() > 1);
                assert!(!is_single_threaded());
            });
        });
    }
}
