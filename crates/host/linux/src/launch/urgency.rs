//! Gives managers a priority at which they get a CPU in time.
//!
//! A manager that competes with hundreds of ready threads at their own nice value gets a CPU only after each of
//! them has had its slice, up to seconds later. Among thousands a nice value alone does not help: next to 1,000
//! ready threads on a CPU, nice −15 is a share of 3 %, and a manager that uses more has to wait. So a manager
//! runs at the lowest real-time priority, where it may: it uses little, and spends its time waiting. The kernel
//! keeps part of each second for other threads (sched_rt_runtime_us, or the fair server).

use rustix::io::Errno;
use rustix::process::{getpriority_process, setpriority_process};

use crate::observe::{run_all_at_realtime_priority, run_at_normal_priority};

/// Nice value of a thread that manages, where it may not run at real-time priority. More urgent than
/// what users give to programs, less than what the kernel's own helpers have.
pub const MANAGER_NICE: i32 = -15;

/// Makes the calling thread urgent, and the threads that it makes later: it waits for some of them.
///
/// # Errors
/// When neither CAP_SYS_NICE nor RLIMIT_RTPRIO nor RLIMIT_NICE allows it; nothing is changed then.
pub fn be_urgent() -> Result<(), Errno> {
    if run_all_at_realtime_priority().is_ok() {
        return Ok(());
    }
    // Of no process: of the calling thread (setpriority(2), "C library/kernel differences").
    if getpriority_process(None).is_ok_and(|nice| nice <= MANAGER_NICE) {
        return Ok(());
    }
    setpriority_process(None, MANAGER_NICE)
}

/// Gives the calling thread the usual priority: for threads that an urgent one made and that nothing waits for.
pub fn be_normal() {
    // Always allowed from a real-time class; a nice value that is higher than it was, too.
    let _ = run_at_normal_priority();
    if getpriority_process(None).is_ok_and(|nice| nice < 0) {
        let _ = setpriority_process(None, 0);
    }
}
