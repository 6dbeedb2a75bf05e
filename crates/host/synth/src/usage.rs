//! The CPU time of this process, as the kernel reports it.

use std::fs;

/// Sums over the live threads of this process; absent where the kernel does
/// not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Seconds on a CPU.
    pub cpu_s: Option<f64>,
    /// Times that a thread went to sleep.
    pub voluntary_switches: Option<u64>,
    /// Times that a thread was preempted.
    pub involuntary_switches: Option<u64>,
}

impl Usage {
    /// Reads `schedstat` and `status` of each thread in `/proc/self/task`.
    #[must_use]
    pub fn of_this_process() -> Self {
        let Ok(threads) = fs::read_dir("/proc/self/task") else { return Self::default() };
        let (mut cpu_ns, mut voluntary, mut involuntary) = (Some(0), Some(0), Some(0));
        for thread in threads.flatten() {
            let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let status = read("status");
            cpu_ns = add(cpu_ns, first_number(&read("schedstat")));
            voluntary = add(voluntary, field(&status, "voluntary_ctxt_switches:"));
            involuntary = add(involuntary, field(&status, "nonvoluntary_ctxt_switches:"));
        }
        Self {
            cpu_s: cpu_ns.map(|ns| ns as f64 / 1e9),
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
        }
    }
}

fn add(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    sum?.checked_add(more?)
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| first_number(line.strip_prefix(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t31\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(31));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), Some(7));
        assert_eq!(field(status, "Threads:"), None);
    }

    #[test]
    fn one_silent_thread_makes_the_sum_absent_not_too_small() {
        assert_eq!(add(Some(3), None), None);
        assert_eq!(add(None, Some(3)), None);
        assert_eq!(add(Some(3), Some(4)), Some(7));
    }
}
