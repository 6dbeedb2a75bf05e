//! Finds masks that are no longer what we set, although we undid nothing.
//!
//! # Problem
//! Where a policy keeps a thread in its place, no move is made, and so nothing would notice that another process
//! has changed the thread's mask, or that the kernel has undone it, as it does when all CPUs of a mask go
//! offline.
//!
//! # Approach
//! Once a second, the masks of all threads that have one of ours are read; a read takes less than a microsecond.
//!
//! ```text
//! the mask that we set                      → nothing to do
//! another one                               → a change by another process: accepted, and reported once
//! all that the user allows, the first time  → perhaps undone by the kernel, as its CPUs went offline and came back
//!                                             unseen: nothing of ours is applied, the policy may place it again
//! all that the user allows, once more       → a change by another process: accepted
//! no CPU of the mask is online              → left to the caller, which knows what is online
//! ```
//!
//! Also read are the masks of threads that chose one of their own, since they may choose again; of all threads of
//! processes on which masks were held lately ([`super::suspect`]); and the nice values of threads that have one
//! of ours, from which their program may have counted its own.
//!
//! # Properties
//! In `tests/actuate/acting.rs` and on the simulated kernel (`event_machine`):
//! - A change is reported once, and stays (`a_change_from_outside_is_found_without_a_move`).
//! - A mask that a nudged thread sets is known without a move (`a_pin_of_a_nudged_thread_is_known`).
//! - What the kernel undid is reported as undone, once (`a_mask_that_was_widened_is_set_again_once`).

use symbiont_machine::{Change, Move, Outcome, Target, ThreadId};
use symbiont_topology::CpuSet;

use super::acts::{Ended, mask_is_ours};
use super::actuator::Actuator;
use super::settings::AppliedSettings;
use super::state::State;
use super::thread::ThreadKey;

impl Actuator {
    /// The masks that lapsed since the last call: each with the move to the user's own mask, and
    /// [`Outcome::ExternallyChanged`] where another process changed it or [`Outcome::Done`] where the kernel
    /// did.
    #[must_use]
    pub fn lapsed(&self) -> Vec<(Move, Outcome)> {
        let placed: Vec<ThreadKey> = {
            let mut state = self.state();
            state.undo_suspects();
            state.read_own();
            state.read_nice();
            let entries = state.applied.iter();
            entries.filter(|(_, entry)| entry.applied().mask.is_some()).map(|(k, _)| *k).collect()
        };
        // One at a time: the event reader must not wait for all of them.
        let lapsed = placed.into_iter().filter_map(|key| {
            let mut state = self.state();
            let outcome = state.lapsed(key)?;
            let generation = state.applied.get(&key)?.generation;
            let ThreadKey { process, thread, born } = key;
            let thread = ThreadId { process, thread, born, generation };
            Some((Move { thread, change: Change::Affinity(Target::Os) }, outcome))
        });
        lapsed.collect()
    }
}

impl State {
    /// Reads the masks of threads that have their own: they may have set another one.
    fn read_own(&mut self) {
        let own = self.applied.iter().filter(|(_, entry)| entry.applied().mask.is_none());
        let own: Vec<ThreadKey> = own.map(|(k, _)| *k).collect();
        for key in own {
            let Ok(now) = self.kernel.mask(key) else { continue };
            let cpuset = self.known_cpuset(key.process);
            if self.applied.get(&key).is_none_or(|entry| mask_is_ours(entry, &now, &cpuset)) {
                continue;
            }
            let Ok(now) = self.kernel.present(key) else { continue };
            if !self.may_have_execed(key, &now) {
                let _ = self.check_foreign_mask(key, &now.mask);
            }
        }
    }

    /// Reads the nice values of threads that have one of ours: they may have counted one from it.
    fn read_nice(&mut self) {
        let ours = self.applied.iter().filter(|(_, entry)| entry.applied().nice.is_some());
        let ours: Vec<ThreadKey> = ours.map(|(key, _)| *key).collect();
        for key in ours {
            let Ok(now) = self.kernel.present(key) else { continue };
            if !self.may_have_execed(key, &now) {
                let _ = self.note_others(key, &now);
            }
        }
    }

    fn lapsed(&mut self, key: ThreadKey) -> Option<Outcome> {
        let set = self.applied.get(&key)?.applied().mask.clone()?;
        let is_applied = |now: &CpuSet, cpuset: &CpuSet| {
            let left = set.intersection(cpuset);
            *now == set || *now == left || left.is_empty() || now.is_empty()
        };
        // A thread that is gone, or cannot be read now, is the next sample's business.
        let now = self.kernel.mask(key).ok()?;
        if now == set {
            return None;
        }
        let present = self.kernel.present(key).ok()?;
        if self.may_have_execed(key, &present) {
            return None;
        }
        let was_suspected = self.applied.get(&key)?.suspected;
        match self.check_foreign_mask(key, &present.mask) {
            Err(Ended(Outcome::ExternallyChanged)) => Some(Outcome::ExternallyChanged),
            Err(_) => None,
            Ok(cpuset) if is_applied(&present.mask, &cpuset) => None,
            // It got its mask back just now.
            Ok(_) if self.applied.get(&key)?.suspected != was_suspected => None,
            Ok(_) => {
                let entry = self.applied.get_mut(&key)?;
                let applied = AppliedSettings { mask: None, ..entry.applied().clone() };
                if std::mem::replace(&mut entry.widened, true) {
                    let accepted = self.accept_foreign::<()>(key, &applied);
                    return accepted.err().map(|Ended(outcome)| outcome);
                }
                // If this fails the journal is full: it says more than there is to undo.
                let _ = self.announce(key, Some(&applied));
                let tick = self.kernel.now_ticks();
                self.applied.set_applied(&key, applied, tick);
                Some(Outcome::Done)
            }
        }
    }
}
