//! The loop of a process that slows a CPU down.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setpriority_process};

use super::{SlowCpu, SlowError};
use crate::actuate::affinity;
use crate::observe::run_at_realtime_priority;

/// The CPU is taken away once in each period.
pub const PERIOD: Duration = Duration::from_millis(4);

/// Highest of nice values' urgency.
const MOST_URGENT: i32 = -20;

/// Slows a CPU down until the time is over or the parent is gone. This process
/// must have no other work: its main thread is pinned and made urgent. `begun`
/// is called when all that has succeeded. Without `parent` it is bound to the
/// process that is its parent now.
///
/// # Errors
/// When it cannot be pinned or made urgent, or not be bound to its parent.
pub fn run(
    slow: SlowCpu,
    limit: Duration,
    parent: Option<u32>,
    begun: impl FnOnce(),
) -> Result<(), SlowError> {
    let parent = parent.or_else(current_parent);
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(SlowError::Parent)?;
    let cpu = slow.cpu().0;
    affinity::set(None, Some(&slow.cpu().into())).map_err(|errno| SlowError::Pin(cpu, errno))?;
    if let Err(refused) = run_at_realtime_priority() {
        setpriority_process(None, MOST_URGENT).map_err(|_| SlowError::Urgent(refused))?;
    }
    begun();
    let busy = PERIOD.mul_f64(1.0 - 1.0 / slow.factor());
    let begin = Instant::now();
    let mut next = begin;
    // The parent may have ended before the kernel was asked to signal it.
    while next.duration_since(begin) < limit && current_parent() == parent {
        while next.elapsed() < busy {
            std::hint::spin_loop();
        }
        next += PERIOD;
        let now = Instant::now();
        // After a long stop what was missed is not made up for.
        next = next.max(now.checked_sub(PERIOD).unwrap_or(next));
        std::thread::sleep(next.saturating_duration_since(now));
    }
    Ok(())
}

fn current_parent() -> Option<u32> {
    getppid().map(|pid: Pid| pid.as_raw_nonzero().get().unsigned_abs())
}
