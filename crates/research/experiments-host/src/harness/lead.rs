//! How long before the measured part of a run its programs are started.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Longest.
const LONGEST: Duration = Duration::from_millis(3200);

/// Twice as long from the next run on once one has failed, perhaps since the machine was too slow for it.
pub struct Lead {
    first: Duration,
    times: AtomicU32,
}

impl Lead {
    /// So long at first.
    pub fn new(first: Duration) -> Self {
        Self { first, times: AtomicU32::new(1) }
    }

    /// How long for the next run.
    pub fn get(&self) -> Duration {
        (self.first * self.times.load(Ordering::Relaxed)).min(LONGEST)
    }

    /// Does it grow no more?
    pub fn is_longest(&self) -> bool {
        self.get() >= LONGEST
    }

    /// Takes note of how a run ended, and returns it.
    pub fn heed<T, E>(&self, outcome: Result<T, E>) -> Result<T, E> {
        if outcome.is_err() && !self.is_longest() {
            self.times.fetch_add(self.times.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_runs_get_more_time_up_to_a_limit() {
        let lead = Lead::new(Duration::from_millis(400));
        assert_eq!(lead.heed(Ok::<_, ()>(1)), Ok(1));
        assert_eq!(lead.get(), Duration::from_millis(400));
        assert_eq!(lead.heed(Err::<(), _>(1)), Err(1));
        assert_eq!(lead.get(), Duration::from_millis(800));
        (0..40).for_each(|_| assert!(lead.heed(Err::<(), _>(1)).is_err()));
        assert_eq!(lead.get(), LONGEST);
    }
}
