//! CPU time of children that have ended.
#![expect(unsafe_code, reason = "rusage has no safe wrapper")]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// CPU time in user mode of all children that ended and were waited for, including that of their own such
/// children.
///
/// # Errors
/// None on Linux.
pub fn user_time_of_children() -> io::Result<Duration> {
    usage_of_children().map(|usage| duration(usage.ru_utime))
}

/// The same, in user mode and in the kernel together.
///
/// # Errors
/// None on Linux.
pub fn cpu_time_of_children() -> io::Result<Duration> {
    usage_of_children().map(|usage| duration(usage.ru_utime) + duration(usage.ru_stime))
}

fn usage_of_children() -> io::Result<libc::rusage> {
    // SAFETY: all zeros is a value of it; the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that lives for the whole call.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usage)
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// A child that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedChild {
    /// The process.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// CPU time of it, and of its descendants that were waited for.
    pub cpu_time: Duration,
}

/// Waits for a child that has ended already; none: no child has.
///
/// # Errors
/// `ECHILD` when there is no child at all.
pub fn reap() -> io::Result<Option<EndedChild>> {
    // SAFETY: all zeros is a value of it; the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: both pointers are to locals that live for the whole call.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match u32::try_from(pid) {
        Ok(0) => Ok(None),
        Ok(pid) => Ok(Some(EndedChild {
            pid,
            status: ExitStatus::from_raw(status),
            cpu_time: duration(usage.ru_utime) + duration(usage.ru_stime),
        })),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_child_that_ended_has_used_time() {
        let before = super::user_time_of_children().unwrap();
        let all = super::cpu_time_of_children().unwrap();
        assert!(all >= before);
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
        assert!(super::user_time_of_children().unwrap() > before);
        assert!(super::cpu_time_of_children().unwrap() > all);
    }
}
