//! What managing costs this process.

use std::time::Duration;

use procfs::process::Process;
use rustix::time::{ClockId, clock_gettime};

/// Cost of this process since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of all its threads.
    pub cpu: Duration,
    /// Threads sampled, summed over all samples.
    pub thread_quanta: u64,
    /// Most memory that was ever resident, program text included, in bytes;
    /// none if it cannot be read.
    pub memory_bytes: Option<u64>,
}

impl Cost {
    pub(super) fn now(thread_quanta: u64) -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let memory = Process::myself().and_then(|me| me.status()).ok();
        Self {
            cpu: cpu.try_into().unwrap_or_default(),
            thread_quanta,
            memory_bytes: memory.and_then(|status| status.vmhwm).map(|kib| kib * 1024),
        }
    }
}
