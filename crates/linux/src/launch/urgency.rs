//! The nice value of those who manage.
//!
//! A manager that competes with hundreds of ready threads at their own nice value gets a CPU only
//! after each of them has had its slice: up to seconds later. It uses little, so it may come first.

use rustix::io::Errno;
use rustix::process::{getpriority_process, setpriority_process};

/// Nice value of a thread that manages. More urgent than what users give to programs, less than
/// what the kernel's own helpers have.
pub const MANAGER_NICE: i32 = -15;

/// Makes the calling thread urgent, and the threads that it makes later; no other thread of the
/// process.
///
/// # Errors
/// When neither CAP_SYS_NICE nor RLIMIT_NICE allows it; the nice value stays then.
pub fn be_urgent() -> Result<(), Errno> {
    // Of no process: of the calling thread (setpriority(2), "C library/kernel differences").
    if getpriority_process(None).is_ok_and(|nice| nice <= MANAGER_NICE) {
        return Ok(());
    }
    setpriority_process(None, MANAGER_NICE)
}
