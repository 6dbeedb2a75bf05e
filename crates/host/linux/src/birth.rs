//! Processes, distinguished by their time of birth from later ones with the same number.

use std::os::fd::OwnedFd;

use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

/// A process and when it was born, in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessBirth {
    /// Its process number.
    pub process: u32,
    /// When it was born, in clock ticks since boot.
    pub born: u64,
}

impl ProcessBirth {
    /// The process that has this number now.
    #[must_use]
    pub fn of(process: u32) -> Option<Self> {
        Some(Self { process, born: born(process)? })
    }

    /// A pidfd of the process, if it lives or has not been waited for.
    #[must_use]
    pub fn hold(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.process).ok()?)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Read after the descriptor was opened: what is read is that process's, or it has ended.
        (born(self.process)? == self.born).then_some(pidfd)
    }

    /// A pidfd of the process, if it has not ended.
    #[must_use]
    pub fn hold_alive(&self) -> Option<OwnedFd> {
        self.hold().filter(|pidfd| !has_ended(pidfd))
    }
}

/// Has a process ended?
#[must_use]
pub fn has_ended(pidfd: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

fn born(process: u32) -> Option<u64> {
    let number = i32::try_from(process).ok()?;
    Some(Process::new(number).and_then(|process| process.stat()).ok()?.starttime)
}

/// The id of the machine's current boot; empty where /proc does not say.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_with_the_same_number_is_not_taken() {
        let me = ProcessBirth::of(std::process::id()).unwrap();
        assert!(me.hold().is_some());
        assert!(ProcessBirth { born: me.born + 1, ..me }.hold().is_none());
        assert!(ProcessBirth { process: u32::MAX, ..me }.hold().is_none());
    }

    #[test]
    fn a_process_that_ended_is_not_alive_although_it_was_not_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let birth = ProcessBirth::of(child.id()).unwrap();
        assert!(birth.hold_alive().is_some());
        child.kill().unwrap();
        let pidfd = birth.hold().unwrap();
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
        assert!(birth.hold_alive().is_none());
        child.wait().unwrap();
        assert!(birth.hold().is_none());
    }
}
