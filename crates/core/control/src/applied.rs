//! The applied settings, and those that are left alone for now.

use std::collections::BTreeMap;

use symbiont_machine::{
    Assignment, Change, Move, Outcome, Placement, Priority, Sample, Target, ThreadId,
};
use symbiont_planner::{Barred, Setting, Why};
use symbiont_topology::CpuSet;

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
    /// identity. A machine undoes at an exec what was applied. Forgets targets, too, of which the
    /// online hardware threads leave nothing, unless a mask holds them.
    pub(crate) fn keep(&mut self, sample: &Sample, online: &CpuSet) {
        let find = |id: &ThreadId| sample.threads.binary_search_by_key(id, |t| t.id).is_ok();
        self.bars.retain(|(id, _), _| find(id));
        self.applied.retain(|id, kept| {
            if kept.mask.is_os() && kept.target.cpus().is_some_and(|cpus| cpus.is_disjoint(online))
            {
                kept.target = Target::Os;
            }
            find(id) && !kept.is_nothing()
        });
    }

    /// Notes a target that holds without a move.
    pub(crate) fn reach(&mut self, id: ThreadId, target: &Target, wanted: Option<&Assignment>) {
        self.set(id, |entry| entry.target = target.clone(), wanted);
    }

    /// Leaves all nudged threads to the OS.
    pub(crate) fn forget_nudged(&mut self) {
        self.applied.retain(|_, kept| {
            kept.target = kept.mask.clone();
            !kept.is_nothing()
        });
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
                self.set(asked.thread, |entry| make(entry, &asked.change), wanted);
            }
            Outcome::Gone => {
                self.applied.remove(&asked.thread);
            }
            // Its limit is another one now, and within that it may be nudged.
            Outcome::ExternallyChanged if matches!(asked.change, Change::Nudge(_)) => {
                self.set(asked.thread, |entry| entry.target = entry.mask.clone(), None);
            }
            Outcome::ExternallyChanged => {
                self.bars.insert(key, Bar::ExternallyChanged);
                self.set(asked.thread, |entry| make(entry, &as_the_user_left_it(key.1)), None);
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

    /// Changes what is applied on a thread.
    fn set(
        &mut self,
        id: ThreadId,
        change: impl FnOnce(&mut Assignment),
        wanted: Option<&Assignment>,
    ) {
        let entry = self.applied.entry(id).or_default();
        change(entry);
        if let Some(wanted) = wanted {
            entry.reason = wanted.reason.clone();
            entry.predicted_slowdown = wanted.predicted_slowdown;
        }
        if entry.is_nothing() {
            self.applied.remove(&id);
        }
    }
}

/// Brings a change that was made into what is applied.
fn make(entry: &mut Assignment, change: &Change) {
    match change {
        // A mask moves the thread as well; what it was nudged to is decided anew.
        Change::Affinity(mask) => (entry.mask, entry.target) = (mask.clone(), mask.clone()),
        Change::Nudge(cpus) => entry.target = Target::Cpus(cpus.clone()),
        Change::Priority(priority) => entry.priority = *priority,
    }
}

fn as_the_user_left_it(setting: Setting) -> Change {
    match setting {
        Setting::Affinity => Change::Affinity(Target::Os),
        Setting::Priority => Change::Priority(Priority::Normal),
    }
}
