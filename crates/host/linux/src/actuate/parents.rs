//! Threads that could become another user's, and those that have.
//!
//! # Problem
//! An ordinary user may change a thread as long as its real user is the same. A child that executes a setuid
//! program (su, sudo) and becomes that program's user keeps the mask that it inherited from a placed thread; from
//! then on `sched_setaffinity` answers EPERM. What cannot be undone must not be done.
//!
//! # Approach
//! This concerns managers without the right to place all users' threads.
//!
//! ```text
//! a process makes another one               → its threads are restored, and it is not placed until it replaces its
//!                                             program; unless it may gain no privileges (no_new_privs), which
//!                                             makes its children harmless
//! a placed thread executes a setuid program → it is restored
//! that comes too late (EPERM)               → the thread is stuck: tried again once a second, reported at the end,
//!                                             and left in the journal, from which root can restore it
//! ```

use std::fs;
use std::sync::Arc;

use symbiont_machine::{Outcome, Priority, Target};
use symbiont_topology::CpuSet;

use super::applied_state::Entry;
use super::inheritance::Repair;
use super::settings::AppliedSettings;
use super::state::{State, after, allowed_of, saved_of};
use super::thread::Present;
use super::thread::{ThreadError, ThreadKey};

/// Why a thread of such a process is not placed.
pub(super) const NOT_PLACED: &str = "its process makes other processes, which could become \
     another user's (su, sudo) before they are restored; that needs CAP_SYS_NICE";

impl State {
    /// A process made another one.
    pub fn forked(&mut self, process: u32) {
        if self.privilege.may_place_all() || self.parents.contains_key(&process) {
            return;
        }
        let is_harmless = has_no_new_privileges(process);
        self.parents.insert(process, is_harmless);
        if is_harmless {
            return;
        }
        let changed = self.applied.of_process(process).filter(|(_, e)| !e.applied().is_nothing());
        let changed: Vec<ThreadKey> = changed.map(|(key, _)| *key).collect();
        for key in changed {
            // What fails here is tried again with the next move.
            let _ = self.restore_now(key);
        }
    }

    /// May the threads of a process not be changed, since it makes processes?
    pub fn is_parent(&self, process: u32) -> bool {
        self.parents.get(&process) == Some(&false)
    }

    /// Forgets parents that are gone.
    pub fn forget_parents(&mut self) {
        self.parents.retain(|process, _| fs::exists(format!("/proc/{process}")).unwrap_or(true));
    }

    /// Keeps a thread that inherited what is ours and may not be changed any
    /// more, as one that we changed; gives its allowed CPUs.
    pub fn keep_stuck(
        &mut self,
        key: ThreadKey,
        now: &Present,
        repair: &Repair,
        cpuset: &Arc<CpuSet>,
    ) -> Arc<CpuSet> {
        let mut own = now.clone();
        after(&mut own, repair, cpuset);
        let saved = saved_of(&own, cpuset);
        let allowed = allowed_of(&saved, cpuset);
        let applied = AppliedSettings {
            mask: repair.carried.clone(),
            nice: repair.nice.is_some().then_some(now.nice),
            class: repair.class.map(|_| now.class),
        };
        self.applied.insert(key, Entry::new(saved, Arc::clone(&allowed)));
        // Its own children inherited that too.
        self.applied.set_applied(&key, applied.clone(), key.born);
        // Should this fail, so does every act, which tries it again.
        let _ = self.announce(key, Some(&applied));
        self.note_stuck(key);
        allowed
    }

    /// A changed thread may not be restored now.
    pub fn note_stuck(&mut self, key: ThreadKey) {
        self.slipped += u64::from(self.stuck.insert(key));
    }

    /// Tries again what could not be restored: a program that gave its
    /// privileges up is the user's again.
    pub fn retry_stuck(&mut self) {
        for key in self.stuck.clone() {
            if matches!(self.kernel.facts_of(key), Err(ThreadError::Gone(_))) {
                let tick = self.kernel.now_ticks();
                self.applied.depart(&key, tick);
                self.stuck.remove(&key);
            } else if !matches!(self.restore_now(key), Outcome::Refused(_)) {
                self.stuck.remove(&key);
            }
        }
    }

    fn restore_now(&mut self, key: ThreadKey) -> Outcome {
        match self.set_affinity(key, &Target::Os) {
            Outcome::Done => match self.set_class_ext(key, false) {
                Outcome::Done => self.set_priority(key, Priority::Normal),
                outcome => outcome,
            },
            outcome => outcome,
        }
    }
}

/// A process that has this passes it on, and none of its descendants becomes
/// another user's by a setuid program.
fn has_no_new_privileges(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"]))
}
