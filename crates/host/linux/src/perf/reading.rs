//! What reading a group's counts gives.

use std::sync::Arc;
use std::time::Duration;

/// One reading of a group, cumulative since it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Time that the thread ran while the group was enabled.
    pub enabled: Duration,
    /// The part of it in which the group really counted; less than `enabled`
    /// where the kernel shares the counters among groups.
    pub running: Duration,
    /// Counts by the event's name, in the group's order; refused events are
    /// absent.
    pub counts: Vec<(Arc<str>, u64)>,
}

impl Reading {
    /// An event's count, as read and not scaled.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counts.iter().find(|(known, _)| **known == *name).map(|&(_, count)| count)
    }

    /// An event's count scaled to the time in which the group was enabled;
    /// none if the group never counted.
    #[must_use]
    pub fn estimate(&self, name: &str) -> Option<f64> {
        let count = self.count(name)?;
        let scale = self.enabled.as_secs_f64() / self.running.as_secs_f64();
        scale.is_finite().then_some(count as f64 * scale)
    }

    /// The same counts as if the group had been enabled only while it counted.
    pub(super) fn unscaled(self) -> Self {
        Self { enabled: self.running, ..self }
    }

    /// What was counted since an earlier reading; none if the group did not
    /// count meanwhile: its counts are then unknown, not zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let running = self.running.checked_sub(earlier.running).filter(|time| !time.is_zero())?;
        let enabled = self.enabled.checked_sub(earlier.enabled)?;
        let counts = self.counts.iter().filter_map(|(name, count)| {
            let before = earlier.count(name)?;
            Some((name.clone(), count.wrapping_sub(before)))
        });
        Some(Self { enabled, running, counts: counts.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(enabled: u64, running: u64, count: u64) -> Reading {
        let (enabled, running) = (Duration::from_nanos(enabled), Duration::from_nanos(running));
        Reading { enabled, running, counts: vec![("cycles".into(), count)] }
    }

    #[test]
    fn shared_counters_are_scaled() {
        assert_eq!(reading(400, 100, 25).estimate("cycles"), Some(100.0));
        assert_eq!(reading(400, 100, 25).estimate("stalls"), None);
    }

    #[test]
    fn what_never_ran_is_unknown_and_not_zero() {
        assert_eq!(reading(400, 0, 0).estimate("cycles"), None);
        assert_eq!(reading(400, 100, 7).since(&reading(300, 100, 7)), None);
    }

    /// A thread that was on another kind of core for most of its time.
    #[test]
    fn counts_of_some_cpus_are_not_scaled() {
        let moved = reading(400, 100, 25).unscaled();
        assert_eq!(moved.estimate("cycles"), Some(25.0));
        assert_eq!(reading(300, 0, 0).unscaled().estimate("cycles"), None);
        let change = moved.since(&reading(300, 60, 5).unscaled());
        assert_eq!(change, Some(reading(40, 40, 20)));
    }

    #[test]
    fn a_difference_keeps_its_own_times() {
        let change = reading(400, 150, 40).since(&reading(300, 100, 30));
        assert_eq!(change, Some(reading(100, 50, 10)));
    }
}
