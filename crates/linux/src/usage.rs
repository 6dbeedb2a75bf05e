//! CPU time of children that have ended.
#![expect(unsafe_code, reason = "rusage has no safe wrapper")]

use std::time::Duration;

/// CPU time in user mode of all children that ended and were waited for, those of theirs included.
///
/// # Errors
/// None on Linux.
pub fn user_time_of_children() -> std::io::Result<Duration> {
    // SAFETY: all zeros is a value of it; the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that lives for the whole call.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let seconds = u64::try_from(usage.ru_utime.tv_sec).unwrap_or(0);
    let micros = u64::try_from(usage.ru_utime.tv_usec).unwrap_or(0);
    Ok(Duration::from_secs(seconds) + Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_child_that_ended_has_used_time() {
        let before = super::user_time_of_children().unwrap();
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
        assert!(super::user_time_of_children().unwrap() > before);
    }
}
