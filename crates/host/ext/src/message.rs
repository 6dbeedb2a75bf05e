//! What is said.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_machine::Class;
use symbiont_topology::CpuSet;

/// What a manager asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// From now on this thread belongs there.
    Place(Placed),
    /// The thread with this number belongs nowhere any more.
    Release(u32),
    /// Report [`Statistics`].
    Statistics,
}

/// Where a thread belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Its number.
    pub thread: u32,
    /// Its own CPUs. Those that its mask leaves out do not count.
    pub cpus: CpuSet,
    /// Its group.
    #[serde(default)]
    pub group: u32,
    /// Its class: `latency` shares a core with its group only while it runs, `alone` with none.
    #[serde(default)]
    pub class: Class,
}

/// What a loader says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The scheduler is loaded.
    Loaded,
    /// What it did so far.
    Statistics(Statistics),
    /// It is not loaded, or no longer.
    Ended(Ended),
}

/// What the scheduler did since it was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// How often a placed thread was put on a CPU.
    pub dispatches: u64,
    /// How often a CPU was taken from a thread for another one.
    pub preemptions: u64,
    /// How often a thread ran since it had waited too long, against its class or its neighbour's.
    pub starved: u64,
    /// Running time of placed threads on their own CPUs.
    pub own_ns: u64,
    /// The same elsewhere: they had waited, and there a CPU was idle.
    pub lent_ns: u64,
    /// Of the classes that keep a core: what was on their siblings while they ran.
    pub siblings: BTreeMap<Class, SiblingTime>,
    /// How long the thread that waits longest has waited.
    pub longest_wait_ns: u64,
}

/// Time of sibling hardware threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiblingTime {
    /// While threads of the class ran, of all siblings.
    pub all_ns: u64,
    /// Of that, idle.
    pub idle_ns: u64,
}

/// Why a scheduler is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// In words.
    pub why: String,
    /// Could it be loaded again at once? So after CPUs went offline or came online.
    #[serde(default)]
    pub again: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round<T: Serialize + for<'de> Deserialize<'de>>(value: &T) -> T {
        let text = serde_json::to_string(value).unwrap();
        assert!(!text.contains('\n'), "one line");
        serde_json::from_str(&text).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(thread: u32, group: u32, own_ns: u64, why: String, again: bool) {
            let placed = Placed { thread, cpus: "1,3-4".parse().unwrap(), group, class: Class::Latency };
            for request in [Request::Place(placed), Request::Release(thread), Request::Statistics] {
                prop_assert_eq!(round(&request), request);
            }
            let siblings = BTreeMap::from([(Class::Alone, SiblingTime { all_ns: own_ns, idle_ns: 1 })]);
            let statistics = Statistics { own_ns, siblings, ..Statistics::default() };
            for report in
                [Report::Loaded, Report::Statistics(statistics), Report::Ended(Ended { why, again })]
            {
                prop_assert_eq!(round(&report), report);
            }
        }
    }
}
