//! What is in force, and which settings are left alone for now.

use std::collections::BTreeMap;

use symbiont_machine::{
    Assignment, Change, Move, Outcome, Placement, Priority, Sample, Target, ThreadId,
};
use symbiont_planner::{Barred, Setting, Why};

/// Longest time, in quanta, that a refused setting is left alone.
const LONGEST_PAUSE: u64 = 64;

/// Why and how long a setting is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bar {
    /// Somebody else's, for the life of the thread.
    Foreign,
    /// Refused; to be left alone until this quantum, for a pause of this many.
    Refused { until: u64, pause: u64 },
}

/// Book of what was done to living threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    in_force: Placement,
    bars: BTreeMap<(ThreadId, Setting), Bar>,
}

impl Ledger {
    /// What is in force; threads with nothing in force are not listed.
    pub(crate) fn in_force(&self) -> &Placement {
        &self.in_force
    }

    /// Settings to be left alone in this quantum.
    pub(crate) fn barred(&self, quantum: u64) -> Barred {
        let why = |bar: &Bar| match bar {
            Bar::Foreign => Some(Why::Foreign),
            Bar::Refused { until, .. } => (quantum < *until).then_some(Why::Refused),
        };
        self.bars.iter().filter_map(|(key, bar)| Some((*key, why(bar)?))).collect()
    }

    /// Settings that another process changed.
    pub(crate) fn externally_changed(&self) -> impl Iterator<Item = (ThreadId, Setting)> + '_ {
        self.bars.iter().filter(|(_, bar)| **bar == Bar::Foreign).map(|(key, _)| *key)
    }

    /// Forgets threads that are not in the sample, which must be ordered by
    /// identity. A machine puts back at an exec what was in force.
    pub(crate) fn keep(&mut self, sample: &Sample) {
        let find = |id: &ThreadId| sample.threads.binary_search_by_key(id, |t| t.id).is_ok();
        self.bars.retain(|(id, _), _| find(id));
        self.in_force.retain(|id, _| find(id));
    }

    /// Books a move that was asked for in this quantum. `wanted` is the
    /// policy's assignment behind it.
    pub(crate) fn book(
        &mut self,
        quantum: u64,
        asked: &Move,
        outcome: &Outcome,
        wanted: Option<&Assignment>,
    ) {
        let key = (asked.thread, Setting::of(&asked.change));
        match outcome {
            Outcome::Done => {
                self.bars.remove(&key);
                self.set(asked.thread, &asked.change, wanted);
            }
            Outcome::Gone => {
                self.in_force.remove(&asked.thread);
            }
            Outcome::Foreign => {
                self.bars.insert(key, Bar::Foreign);
                self.set(asked.thread, &as_the_user_left_it(key.1), None);
            }
            Outcome::Refused(_) => {
                let pause = match self.bars.get(&key) {
                    Some(Bar::Refused { pause, .. }) => (pause * 2).min(LONGEST_PAUSE),
                    _ => 2,
                };
                let until = quantum.saturating_add(pause).saturating_add(1);
                self.bars.insert(key, Bar::Refused { until, pause });
            }
            Outcome::NotEnforced => {}
        }
    }

    /// Notes what is in force for a setting.
    fn set(&mut self, id: ThreadId, change: &Change, wanted: Option<&Assignment>) {
        let entry = self.in_force.entry(id).or_default();
        match change {
            Change::Affinity(target) => entry.target = target.clone(),
            Change::Priority(priority) => entry.priority = *priority,
        }
        if let Some(wanted) = wanted {
            entry.reason = wanted.reason.clone();
            entry.predicted_slowdown = wanted.predicted_slowdown;
        }
        if entry.target == Target::Os && entry.priority == Priority::Normal {
            self.in_force.remove(&id);
        }
    }
}

fn as_the_user_left_it(setting: Setting) -> Change {
    match setting {
        Setting::Affinity => Change::Affinity(Target::Os),
        Setting::Priority => Change::Priority(Priority::Normal),
    }
}
