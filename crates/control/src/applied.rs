//! The applied settings, and those that are left alone for now.

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
    /// Changed by another process: left alone for the life of the thread.
    ExternallyChanged,
    /// Refused; to be left alone until this quantum, for a pause of this many.
    Refused { until: u64, pause: u64 },
}

/// The applied settings of living threads, and those that are barred.
#[derive(Debug, Clone, Default)]
pub(crate) struct AppliedSettings {
    applied: Placement,
    bars: BTreeMap<(ThreadId, Setting), Bar>,
}

impl AppliedSettings {
    /// The applied settings; threads without any are not listed.
    pub(crate) fn applied(&self) -> &Placement {
        &self.applied
    }

    /// Settings to be left alone in this quantum.
    pub(crate) fn barred(&self, quantum: u64) -> Barred {
        let why = |bar: &Bar| match bar {
            Bar::ExternallyChanged => Some(Why::ExternallyChanged),
            Bar::Refused { until, .. } => (quantum < *until).then_some(Why::Refused),
        };
        self.bars.iter().filter_map(|(key, bar)| Some((*key, why(bar)?))).collect()
    }

    /// Settings that another process changed.
    pub(crate) fn externally_changed(&self) -> impl Iterator<Item = (ThreadId, Setting)> + '_ {
        self.bars.iter().filter(|(_, bar)| **bar == Bar::ExternallyChanged).map(|(key, _)| *key)
    }

    /// Forgets threads that are not in the sample, which must be ordered by
    /// identity. A machine undoes at an exec what was applied.
    pub(crate) fn keep(&mut self, sample: &Sample) {
        let find = |id: &ThreadId| sample.threads.binary_search_by_key(id, |t| t.id).is_ok();
        self.bars.retain(|(id, _), _| find(id));
        self.applied.retain(|id, _| find(id));
    }

    /// Notes a move that was asked for in this quantum. `wanted` is the
    /// policy's assignment behind it.
    pub(crate) fn note(
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
                self.applied.remove(&asked.thread);
            }
            Outcome::ExternallyChanged => {
                self.bars.insert(key, Bar::ExternallyChanged);
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

    /// Notes the applied value of a setting.
    fn set(&mut self, id: ThreadId, change: &Change, wanted: Option<&Assignment>) {
        let entry = self.applied.entry(id).or_default();
        match change {
            Change::Affinity(target) => entry.target = target.clone(),
            Change::Priority(priority) => entry.priority = *priority,
        }
        if let Some(wanted) = wanted {
            entry.reason = wanted.reason.clone();
            entry.predicted_slowdown = wanted.predicted_slowdown;
        }
        if entry.target == Target::Os && entry.priority == Priority::Normal {
            self.applied.remove(&id);
        }
    }
}

fn as_the_user_left_it(setting: Setting) -> Change {
    match setting {
        Setting::Affinity => Change::Affinity(Target::Os),
        Setting::Priority => Change::Priority(Priority::Normal),
    }
}
