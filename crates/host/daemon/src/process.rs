//! A process that a client names by a pidfd.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Owner;

/// A descriptor that names no living process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It is no pidfd, or one of a process that this one cannot see.
    #[error("the descriptor names no process that symbiontd can see")]
    NoProcess,
    /// The process has ended.
    #[error("the process has ended")]
    Ended,
    /// Its files cannot be read.
    #[error("cannot read whose process {pid} is: {source}")]
    Io {
        /// The process.
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A process that was alive, with its owner, when it was looked at. Its number is valid as long
/// as [`Self::has_ended`] says no.
#[derive(Debug)]
pub struct OwnedProcess {
    pidfd: OwnedFd,
    pid: u32,
    owner: Owner,
}

impl OwnedProcess {
    /// Looks up the process of a pidfd.
    ///
    /// # Errors
    /// When there is none, or it has ended.
    pub fn of(pidfd: OwnedFd) -> Result<Self, ProcessError> {
        let pid = pid_of(pidfd.as_fd())?;
        let owner = owner_of(pid);
        let process = Self { pidfd, pid, owner: Owner { real: u32::MAX, effective: u32::MAX } };
        // Only of a process that still lives was it the right one's file.
        if process.has_ended() {
            return Err(ProcessError::Ended);
        }
        let owner = owner.map_err(|source| ProcessError::Io { pid, source })?;
        Ok(Self { owner, ..process })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The user that the process belonged to.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Has it ended?
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        loop {
            match poll(&mut fds, Some(&now)) {
                Ok(count) => return count > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }
}

impl AsFd for OwnedProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Whose a process is, by its number; the number of another of its threads is none.
pub fn owner_of(pid: u32) -> io::Result<Owner> {
    let number = i32::try_from(pid).map_err(io::Error::other)?;
    let status = Process::new(number).and_then(|process| process.status());
    let status = status.map_err(io::Error::other)?;
    if status.tgid != number {
        return Err(io::Error::other(format!("it is a thread of process {}", status.tgid)));
    }
    Ok(Owner { real: status.ruid, effective: status.euid })
}

/// The kernel shows in a pidfd's own file which process it names (proc_pid_fdinfo(5)).
pub fn pid_of(pidfd: BorrowedFd<'_>) -> Result<u32, ProcessError> {
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let text = fs::read_to_string(path).map_err(|_| ProcessError::NoProcess)?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"));
    match pid.and_then(|pid| pid.trim().parse::<i64>().ok()) {
        Some(-1) => Err(ProcessError::Ended),
        Some(pid) => u32::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(ProcessError::NoProcess),
        None => Err(ProcessError::NoProcess),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, PidfdFlags, geteuid, getuid, pidfd_open};

    use super::*;

    fn pidfd(pid: u32) -> OwnedFd {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        pidfd_open(pid, PidfdFlags::empty()).unwrap()
    }

    #[test]
    fn a_pidfd_says_which_process_it_names_and_whose_it_is() {
        let process = OwnedProcess::of(pidfd(std::process::id())).unwrap();
        assert_eq!(process.pid(), std::process::id());
        let me = Owner { real: getuid().as_raw(), effective: geteuid().as_raw() };
        assert_eq!(process.owner(), me);
        assert!(!process.has_ended());
    }

    #[test]
    fn a_process_that_has_ended_is_refused() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let fd = pidfd(child.id());
        child.wait().unwrap();
        assert!(matches!(OwnedProcess::of(fd), Err(ProcessError::Ended)));
    }

    #[test]
    fn a_descriptor_of_anything_else_is_refused() {
        let file = fs::File::open("/dev/null").unwrap();
        assert!(matches!(OwnedProcess::of(file.into()), Err(ProcessError::NoProcess)));
    }

    #[test]
    fn a_thread_that_does_not_lead_its_process_is_refused() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            std::thread::park();
        });
        let error = owner_of(receiver.recv().unwrap()).unwrap_err().to_string();
        thread.thread().unpark();
        assert!(error.contains(&format!("a thread of process {}", std::process::id())), "{error}");
    }
}
