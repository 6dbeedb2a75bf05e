//! What a group counted of a thread, from reading to reading.

use std::sync::Arc;
use std::time::Duration;

use symbiont_machine::{GroupCounts, GroupReading};

/// The last reading of a group and the last difference of two.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// The last reading, and the thread's CPU time then.
    last: Option<(GroupReading, Duration)>,
    /// The thread's CPU time at the last sample.
    run_time: Option<Duration>,
    change: Option<Change>,
    /// Why the group is not counted, at the last sample.
    absent: Option<Arc<str>>,
}

/// What a group counted between two readings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// Raw counts, in the group's order.
    pub counts: Vec<u64>,
    /// Time enabled over time running: what raw counts are multiplied by to
    /// stand for the whole time.
    pub scale: f64,
    /// Time running over the thread's CPU time since the reading before.
    pub coverage: f64,
    /// Samples since the later reading.
    pub age: u64,
}

impl Track {
    /// Takes the counts of the next sample and the thread's CPU time then.
    /// True if anything but the age changed.
    pub(crate) fn take(&mut self, counts: GroupCounts, run_time: Duration) -> bool {
        let before = self.run_time.replace(run_time);
        let (reading, absent) = match counts {
            Ok(reading) => (Some(reading), None),
            Err(why) => (None, Some(why)),
        };
        let reasons_differ = self.absent != absent;
        self.absent = absent;
        let change = reading.and_then(|reading| self.advance(reading, before, run_time));
        let news = reasons_differ || change.is_some();
        match (change, &mut self.change) {
            (Some(new), change) => *change = Some(new),
            (None, Some(old)) => old.age = old.age.saturating_add(1),
            (None, None) => {}
        }
        news
    }

    /// The difference to the reading before, if the group counted since.
    fn advance(
        &mut self,
        reading: GroupReading,
        before: Option<Duration>,
        run_time: Duration,
    ) -> Option<Change> {
        let same = |last: &&(GroupReading, Duration)| last.0.opened == reading.opened;
        let base = self.last.as_ref().filter(same);
        let (change, counted) = match base {
            // The CPU time since the last reading, or since the group was
            // opened: at the earliest after the sample before.
            Some((last, at)) => (difference(last, &reading), run_time.saturating_sub(*at)),
            None => (
                Some((reading.enabled, reading.running, reading.counts.clone())),
                before.map_or(Duration::ZERO, |before| run_time.saturating_sub(before)),
            ),
        };
        // Without running time nothing was counted: the next difference is to
        // the same reading as this one.
        if base.is_none() || change.as_ref().is_none_or(|(_, running, _)| !running.is_zero()) {
            self.last = Some((reading, run_time));
        }
        let (enabled, running, counts) = change.filter(|(_, running, _)| !running.is_zero())?;
        let running = running.as_secs_f64();
        // The OS may credit CPU time late; then the group's own time is nearer.
        let cpu = counted.max(enabled).as_secs_f64().max(running);
        let scale = enabled.as_secs_f64().max(running) / running;
        Some(Change { counts, scale, coverage: running / cpu, age: 0 })
    }

    /// The last difference, however old.
    pub(crate) fn change(&self) -> Option<&Change> {
        self.change.as_ref()
    }

    /// Why the group is not counted; none: it is.
    pub(crate) fn absent(&self) -> Option<&Arc<str>> {
        self.absent.as_ref()
    }
}

/// Time enabled, time running and counts between two readings; none if
/// anything decreased.
fn difference(
    before: &GroupReading,
    after: &GroupReading,
) -> Option<(Duration, Duration, Vec<u64>)> {
    let counts = after.counts.iter().zip(&before.counts).map(|(now, then)| now.checked_sub(*then));
    Some((
        after.enabled.checked_sub(before.enabled)?,
        after.running.checked_sub(before.running)?,
        counts.collect::<Option<_>>()?,
    ))
}
