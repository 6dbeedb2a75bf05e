//! When the loop is to wake, and how late it woke.

use std::time::{Duration, Instant};

/// Plans wake-ups one quantum apart, without drift.
#[derive(Debug, Default)]
pub(super) struct Ticker {
    next: Option<Instant>,
    /// How far the plan was put off, as its moment had passed already.
    overdue: Duration,
    lateness: Lateness,
}

impl Ticker {
    /// Time until the next planned moment, one quantum after the last one. If
    /// that has passed already, the plan starts over from now: missed quanta
    /// are not caught up on.
    pub fn plan(&mut self, quantum: Duration) -> Duration {
        let now = Instant::now();
        let wanted = self.next.and_then(|last| last.checked_add(quantum));
        let late = wanted.and_then(|wanted| now.checked_duration_since(wanted));
        self.overdue = late.map_or(Duration::ZERO, |late| late.saturating_add(quantum));
        if late.is_some() {
            self.lateness.missed += 1;
        }
        let next = wanted.filter(|wanted| *wanted > now);
        let next = next.or_else(|| now.checked_add(quantum)).unwrap_or(now);
        self.next = Some(next);
        next.saturating_duration_since(now)
    }

    /// Time until the planned moment; zero if there is none or it has passed.
    pub fn left(&self) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now()))
    }

    /// The planned moment was waited for.
    pub fn woke(&mut self) {
        if let Some(planned) = self.next {
            self.lateness.add(planned.elapsed().saturating_add(self.overdue));
        }
    }

    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }
}

/// How late the loop woke: a histogram with buckets an eighth of a doubling
/// wide (9 %), from 1 µs to beyond an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lateness {
    buckets: Vec<u64>,
    max: Duration,
    /// Quanta whose planned moment had passed before the loop came to wait.
    pub missed: u64,
}

/// Buckets per doubling.
const FINENESS: f64 = 8.0;

impl Lateness {
    fn add(&mut self, late: Duration) {
        let micros = (late.as_secs_f64() * 1e6).max(1.0);
        // At most log2(1e6 s in µs) × 8 buckets: the cast cannot overflow.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 400")]
        let bucket = (micros.log2() * FINENESS).min(400.0) as usize;
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.max = self.max.max(late);
    }

    /// Wake-ups counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The largest lateness.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The lateness that this share (0 to 1) of the wake-ups did not exceed,
    /// to the upper edge of its bucket; none before the first wake-up.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank between 1 and the count"
        )]
        let rank = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, held) in self.buckets.iter().zip(1u32..).map(|(h, b)| (b, h)) {
            below += held;
            if below >= rank {
                let edge = (f64::from(bucket) / FINENESS).exp2() * 1e-6;
                return Some(Duration::from_secs_f64(edge).min(self.max));
            }
        }
        Some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket_of_the_truth() {
        let mut lateness = Lateness::default();
        for micros in 1..=1000 {
            lateness.add(Duration::from_micros(micros));
        }
        for (share, truth) in [(0.5, 500e-6), (0.95, 950e-6)] {
            let read = lateness.quantile(share).unwrap().as_secs_f64();
            assert!((truth..truth * 1.1).contains(&read), "{share}: {read}");
        }
        assert_eq!(lateness.quantile(1.0), Some(Duration::from_micros(1000)));
        assert_eq!(lateness.count(), 1000);
    }

    #[test]
    fn nothing_counted_has_no_quantile() {
        assert_eq!(Lateness::default().quantile(0.5), None);
    }

    #[test]
    fn a_plan_is_one_quantum_ahead_and_does_not_catch_up() {
        let mut ticker = Ticker::default();
        let quantum = Duration::from_secs(3600);
        assert!(ticker.plan(quantum) > Duration::from_secs(3500));
        let second = ticker.plan(quantum);
        assert!(second > Duration::from_secs(7100), "{second:?}");
        ticker.next = Instant::now().checked_sub(Duration::from_millis(5));
        assert!(ticker.plan(Duration::from_millis(1)) <= Duration::from_millis(1));
        assert_eq!(ticker.lateness().missed, 1);
    }

    #[test]
    fn a_missed_quantum_counts_as_late() {
        let quantum = Duration::from_millis(20);
        let past = Instant::now().checked_sub(Duration::from_millis(100));
        let mut ticker = Ticker { next: past, ..Ticker::default() };
        ticker.plan(quantum);
        ticker.woke();
        assert!(ticker.lateness().max() >= Duration::from_millis(80));
    }

    proptest! {
        #[test]
        fn any_lateness_is_counted(nanos in any::<u64>()) {
            let mut lateness = Lateness::default();
            lateness.add(Duration::from_nanos(nanos));
            prop_assert_eq!(lateness.count(), 1);
            prop_assert_eq!(lateness.quantile(0.5).is_some(), true);
        }
    }
}
