//! What a machine counts of its threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ProgramId, Signals, ThreadId, Timestamp};

/// What the counts of a sample mean. It comes with every sample, shared, so
/// that a recording or a simulated machine is read by the very same code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    /// Name of the event catalogue.
    pub catalogue: String,
    /// The catalogue itself, as text: what is needed to make sense of the
    /// counts, wherever they are read.
    pub text: String,
    /// The signals that are counted for.
    pub signals: Signals,
    /// The groups that are counted, in the order of
    /// [`ThreadSample::counts`](crate::ThreadSample::counts).
    pub groups: Vec<CountedGroup>,
    /// Events that the catalogue has in these groups and that no machine of this kind counts
    /// here, with the reason.
    #[serde(default)]
    pub refused: BTreeMap<Arc<str>, Arc<str>>,
}

/// Events that are counted at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedGroup {
    /// Name of the group in the catalogue.
    pub name: Arc<str>,
    /// Names of the events in the order of [`GroupReading::counts`]. Those
    /// that are refused are left out.
    pub events: Vec<Arc<str>>,
}

/// What a group counted of a thread since it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReading {
    /// When counting began, from zero. Another moment than before: the group
    /// was closed meanwhile, and what it counted then is in no later reading.
    pub opened: Timestamp,
    /// Run time of the thread while the group was to count.
    pub enabled: Duration,
    /// The part of it in which the group did count; less than `enabled` where
    /// groups share the counters.
    pub running: Duration,
    /// Raw counts, one for each event of the group.
    pub counts: Vec<u64>,
}

/// The reading of a group of a thread, or the reason why there is none.
pub type GroupCounts = Result<GroupReading, Arc<str>>;

/// A thread that ended since the last sample, and what was counted of it in
/// all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Which thread.
    pub id: ThreadId,
    /// The program that it belonged to.
    pub program: ProgramId,
    /// Its last counts, for each group.
    pub counts: Vec<GroupCounts>,
}
