//! The signals that a supervisor takes over while its jobs run.

use std::io;

use super::raw::{self, SignalSet};

/// What the supervisor must not keep from acting on itself: marks of its own
/// faults, and what cannot be blocked.
const ITS_OWN: [i32; 9] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGPIPE,
    libc::SIGKILL,
    libc::SIGSTOP,
];

/// The supervisor's hold on its signals, and how they were before.
pub(super) struct Signals {
    pub(super) taken: SignalSet,
    blocked_before: SignalSet,
    sigchld_was_ignored: bool,
}

impl Signals {
    /// Blocks everything that is passed on, and the news of children.
    pub(super) fn take_over() -> io::Result<Self> {
        let taken = SignalSet::of(raw::all_signals().filter(|signal| !ITS_OWN.contains(signal)));
        let blocked_before = taken.block()?;
        let sigchld_was_ignored = raw::is_ignored(libc::SIGCHLD);
        // While it is ignored, the kernel keeps no statuses of children.
        raw::set_ignored(libc::SIGCHLD, false);
        Ok(Self { taken, blocked_before, sigchld_was_ignored })
    }

    /// Restores what was before; also in children.
    pub(super) fn give_back(&self) {
        if self.sigchld_was_ignored {
            raw::set_ignored(libc::SIGCHLD, true);
        }
        // Can only fail for arguments that it does not get.
        let _ = self.blocked_before.block_only();
    }

    /// Forgets signals that came along with the jobs' end, such as the `^C`
    /// that ended them.
    pub(super) fn forget_pending(&self) {
        while self.taken.take_pending() {}
    }

    /// Stops this process by the signal that stopped its jobs.
    pub(super) fn stop(&self, signal: i32) {
        let signal = if raw::is_ignored(signal) { libc::SIGSTOP } else { signal };
        // Sent while it is blocked, it merges with one that the terminal sent:
        // so this process stops once.
        raw::send(rustix::process::getpid(), signal);
        let only = SignalSet::of([signal]);
        if only.unblock().is_ok() {
            let _ = only.block();
        }
    }
}
