//! Counts of events as lines of a recording hold them.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::{Counting, GroupCounts, GroupReading, Timestamp};

/// Counts of a group for a thread, or the reason why there are none; times in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Counts {
    /// When it was opened, time enabled, time running, counts.
    Read(Timestamp, u64, u64, Vec<u64>),
    Absent(Arc<str>),
}

impl From<&GroupCounts> for Counts {
    fn from(counts: &GroupCounts) -> Self {
        match counts {
            Ok(GroupReading { opened, enabled, running, counts }) => {
                Self::Read(*opened, nanos(*enabled), nanos(*running), counts.clone())
            }
            Err(why) => Self::Absent(Arc::clone(why)),
        }
    }
}

impl From<Counts> for GroupCounts {
    fn from(counts: Counts) -> Self {
        match counts {
            Counts::Read(opened, enabled, running, counts) => Ok(GroupReading {
                opened,
                enabled: Duration::from_nanos(enabled),
                running: Duration::from_nanos(running),
                counts,
            }),
            Counts::Absent(why) => Err(why),
        }
    }
}

/// Which events are counted from a quantum on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CountingChange {
    Nothing,
    This(Arc<Counting>),
}

impl CountingChange {
    /// The change from one quantum to the next; none if both are the same.
    pub fn change(before: Option<&Arc<Counting>>, now: Option<&Arc<Counting>>) -> Option<Self> {
        let same = match (before, now) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now) || before == now,
            (before, now) => before.is_none() && now.is_none(),
        };
        let change = now.map_or(Self::Nothing, |counting| Self::This(Arc::clone(counting)));
        (!same).then_some(change)
    }
}

impl From<CountingChange> for Option<Arc<Counting>> {
    fn from(change: CountingChange) -> Self {
        match change {
            CountingChange::Nothing => None,
            CountingChange::This(counting) => Some(counting),
        }
    }
}

/// Nanoseconds; times beyond five centuries are cut.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
