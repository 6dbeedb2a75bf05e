//! Why something is not counted, in words for the user.

use std::fmt;
use std::fs;
use std::sync::Arc;

use rustix::io::Errno;
use thiserror::Error;

/// An event that could not be opened on a thread, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{event} of thread {thread}: {reason}")]
pub struct OpenError {
    /// Thread number.
    pub thread: u32,
    /// The event's name.
    pub event: Arc<str>,
    /// Why it is not counted.
    pub reason: Reason,
}

/// Why an event is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It happens in the kernel, whose side may not be counted: it would read
    /// 0 and say nothing.
    KernelSide,
    /// There is no such PMU here.
    NoPmu,
    /// The chip does not have it, although the kernel takes it and reads 0.
    NotImplemented,
    /// It was to count for a second of the thread's running and never did: no
    /// counter is free for its group.
    Starved,
    /// The same, where only some hardware threads can count it.
    OtherCores,
    /// The kernel refused it.
    Refused {
        /// The error number.
        errno: Errno,
        /// `kernel.perf_event_paranoid` at that time, if it could be read.
        paranoid: Option<i32>,
    },
}

impl Reason {
    pub(super) fn refused(errno: Errno) -> Self {
        let rights = matches!(errno, Errno::ACCESS | Errno::PERM);
        Self::Refused { errno, paranoid: paranoid_level().filter(|_| rights) }
    }

    /// The error number, if the kernel refused.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Is the thread gone?
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.errno() == Some(Errno::SRCH)
    }

    /// Is this due to a lack of descriptors, and not to the event or the thread?
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        matches!(self.errno(), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errno, paranoid) = match *self {
            Self::Refused { errno, paranoid } => (errno, paranoid),
            Self::KernelSide => {
                return f.write_str(
                    "it happens in the kernel, whose side may not be counted here (lower \
                     kernel.perf_event_paranoid to 1 or give CAP_PERFMON)",
                );
            }
            Self::NoPmu => {
                return f.write_str(
                    "this kernel offers no such PMU (virtual machines often have none)",
                );
            }
            Self::NotImplemented => {
                return f.write_str("this chip does not have it and would read 0 for ever");
            }
            Self::Starved => {
                return f.write_str(
                    "it never counted in a second of running: no counter was free for its group \
                     (the NMI watchdog may hold one, kernel.nmi_watchdog; so may other profilers)",
                );
            }
            Self::OtherCores => {
                return f.write_str("the thread ran on cores of another kind only");
            }
        };
        let why = match errno {
            Errno::ACCESS | Errno::PERM => {
                f.write_str("not permitted: the thread may belong to another user, or ")?;
                return match paranoid {
                    Some(level) => write!(
                        f,
                        "kernel.perf_event_paranoid, now {level}, is too high for it (lower it \
                         or give CAP_PERFMON)"
                    ),
                    None => f.write_str("a security policy forbids perf events"),
                };
            }
            Errno::NOENT => {
                "this kernel does not know the event on this CPU (virtual machines often have no \
                 hardware counters)"
            }
            Errno::INVAL => {
                "the kernel refuses it: a wrong encoding, or more events in the group than \
                 counters that can hold them"
            }
            Errno::MFILE => "this process has no file descriptor left (raise RLIMIT_NOFILE)",
            Errno::NFILE => "the system has no file descriptor left (raise fs.file-max)",
            Errno::SRCH => "the thread is gone",
            Errno::OPNOTSUPP => "the CPU's counters cannot do what was asked",
            Errno::TOOBIG => "this kernel is too old for the event's description",
            Errno::BUSY => "another process holds the counters exclusively",
            Errno::NOSYS => "this kernel was built without perf events, or a sandbox hides them",
            Errno::NODEV => "this CPU has no counters for it",
            Errno::NOMEM => "the kernel has no memory left for it",
            other => return write!(f, "{other}"),
        };
        f.write_str(why)
    }
}

/// A group that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("reading the counters of thread {thread}: {errno}")]
pub struct ReadError {
    /// Thread number.
    pub thread: u32,
    /// The error number; `EIO` if the kernel gave less than a group.
    pub errno: Errno,
}

/// `kernel.perf_event_paranoid`; none if it cannot be read.
#[must_use]
pub fn paranoid_level() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_to_do_or_what_it_means() {
        let say = |errno, paranoid| Reason::Refused { errno, paranoid }.to_string();
        assert!(say(Errno::ACCESS, Some(3)).contains("perf_event_paranoid, now 3"));
        assert!(say(Errno::PERM, None).contains("security policy"));
        assert!(say(Errno::NOENT, None).contains("virtual machines"));
        assert!(say(Errno::MFILE, None).contains("RLIMIT_NOFILE"));
        let known = [
            Errno::ACCESS,
            Errno::NOENT,
            Errno::INVAL,
            Errno::MFILE,
            Errno::SRCH,
            Errno::OPNOTSUPP,
            Errno::TOOBIG,
            Errno::BUSY,
        ];
        let others = [
            Reason::KernelSide,
            Reason::NoPmu,
            Reason::NotImplemented,
            Reason::Starved,
            Reason::OtherCores,
        ];
        let said = known.iter().map(|&errno| say(errno, None));
        let said = said.chain(others.iter().map(ToString::to_string));
        let said: std::collections::BTreeSet<_> = said.collect();
        assert_eq!(said.len(), known.len() + others.len());
        assert!(others.iter().all(|reason| reason.errno().is_none()));
        assert!(said.iter().all(|text| !text.contains("os error")));
    }
}
