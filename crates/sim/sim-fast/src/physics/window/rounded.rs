//! An environment as the window model sees it: rounded and bounded.

use super::super::pipeline::{CacheLevel, Environment, Queue, REACHES};
use super::{Course, HISTORY};

/// An environment as a run takes it: whole numbers where it needs them, within bounds. Runs that see the same go
/// the same course.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundedEnvironment {
    /// Entries of the re-order buffer are operations here, however full its groups are.
    pub environment: Environment,
    /// By [`CacheLevel`]: the longest reuse time, instructions, after which a line is still cached.
    pub reach: [f32; REACHES],
}

impl Course<'_> {
    /// What a run that follows this course makes of an environment.
    #[must_use]
    pub fn seen(&self, environment: &Environment) -> RoundedEnvironment {
        let mut seen = *environment;
        // A completion table of groups has as many entries as it would have with full ones.
        seen.entries[Queue::Rob as usize] *= self.fill;
        for queue in [Queue::Rob, Queue::Lq, Queue::Sq] {
            let entries = &mut seen.entries[queue as usize];
            *entries = entries.round().clamp(1.0, (HISTORY - 1) as f64);
        }
        seen.dispatch = seen.dispatch.clamp(1e-2, self.pipeline.width);
        seen.ports = seen.ports.map(|share| share.min(1.0));
        seen.memory_latency = seen.memory_latency.round().max(1.0);
        // Finite, so that a cold access is beyond any reach.
        let reach = environment.reach.map(|reach| reach.min(127.0).exp2() as f32);
        RoundedEnvironment { environment: seen, reach }
    }
}

impl RoundedEnvironment {
    /// Entries of a queue that is counted in whole operations.
    pub(super) fn whole(&self, queue: Queue) -> usize {
        self.environment.entries[queue as usize] as usize
    }

    pub(super) fn reach(&self, level: CacheLevel) -> f32 {
        self.reach[level as usize]
    }
}
