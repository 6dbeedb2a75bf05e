//! Lets go of single processes while others stay managed.
//!
//! What was changed on their threads is undone at once. What had been applied to them is remembered for a while:
//! a child that was being born at that moment has inherited it, and is seen only later.

use std::collections::BTreeSet;

use super::actuator::Actuator;
use super::restoring::RestoreReport;
use super::settings::AppliedSettings;
use super::state::State;
use super::syscalls::now_ticks;
use super::thread::ThreadKey;

impl Actuator {
    /// Undoes what was changed on the threads of these processes, and on
    /// descendants that inherited it. What cannot be undone is tried again at the end.
    pub fn restore(&self, processes: &BTreeSet<u32>) -> RestoreReport {
        self.state().restore(processes)
    }

    /// Forgets processes that are not managed any more, except what could not be undone.
    pub fn forget_processes(&self, processes: &BTreeSet<u32>) {
        self.state().applied.forget_processes(processes);
    }
}

impl State {
    fn restore(&mut self, processes: &BTreeSet<u32>) -> RestoreReport {
        let is_of_them = |key: &ThreadKey| processes.contains(&key.process);
        let report = self.restore_matching(is_of_them);
        let failed: BTreeSet<ThreadKey> = report.failed.iter().map(|one| one.thread).collect();
        let changed = self.applied.iter().filter(|(_, entry)| !entry.applied().is_nothing());
        let undone = changed.map(|(key, _)| *key).filter(is_of_them);
        let undone: Vec<ThreadKey> = undone.filter(|key| !failed.contains(key)).collect();
        for key in undone {
            let nothing = AppliedSettings::default();
            // If the journal is full, a restore after a crash finds nothing left to undo.
            let _ = self.announce(key, Some(&nothing));
            self.applied.set_applied(&key, nothing, now_ticks());
        }
        report
    }
}
