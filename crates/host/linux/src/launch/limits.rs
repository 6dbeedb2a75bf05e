//! Limits that a manager inherits from the user's shell and must not die of.
//!
//! A limit on the size of files, on CPU time or on memory is meant for the programs. Were the manager ended by
//! it, their threads would stay changed. So the manager raises its own limits as far as it may: without bound
//! where it has CAP_SYS_RESOURCE, else to the hard limit. At a hard limit on CPU time the kernel kills, so the
//! manager ends in good order before that.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::observe::raise_descriptor_limit;

/// What could end a manager or keep it from its work.
const RAISED: [Resource; 7] = [
    Resource::Fsize,
    Resource::Cpu,
    Resource::As,
    Resource::Data,
    Resource::Memlock,
    Resource::Nproc,
    Resource::Rttime,
];

/// CPU time that is kept for putting everything back, at most.
const KEPT: Duration = Duration::from_secs(1);

/// Raises this process's limits. What cannot be raised stays.
pub(super) fn raise() {
    for resource in RAISED {
        let hard = getrlimit(resource).maximum;
        let unbounded = Rlimit { current: None, maximum: None };
        let raised = setrlimit(resource, unbounded);
        let _ = raised.or_else(|_| setrlimit(resource, Rlimit { current: hard, maximum: hard }));
    }
    // Two descriptors are kept open for each thread. The kernel bounds them in any case.
    let _ = raise_descriptor_limit();
}

/// The CPU time of this process at which it should end; none if it has no limit.
pub(super) fn cpu_time_to_end() -> Option<Duration> {
    let hard = getrlimit(Resource::Cpu).maximum.map(Duration::from_secs)?;
    Some(hard.saturating_sub(KEPT.min(hard / 4)))
}

/// CPU time that this process has used.
pub(super) fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}
