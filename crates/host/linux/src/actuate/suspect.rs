//! Masks of ours that a program took for its own.
//!
//! # Problem
//! A program may read its mask while one of ours is on it, and later set what it read: OpenMP runtimes on their
//! workers, topology libraries after they have looked at each CPU. That looks like its own choice, and would stay
//! for life.
//!
//! # Approach
//! A mask is *suspect* if it differs from what was left on the thread and equals one that was held on a thread of
//! its process within the last ten seconds.
//!
//! ```text
//! a suspect mask, the first time, of a thread that never chose one  → it gets what its user had; the log says so
//! the same thread sets it again, or had chosen a mask before        → it is believed
//! a mask to which threads were only nudged                          → it is believed; the log says so if the thread
//!                                                                     could run, and read, while it was narrow
//! ```
//!
//! A library that tries one CPU after another and then goes back reads its mask so often that it would sooner or
//! later catch a nudge's target. So a thread is not nudged within a second of a change of its mask.
//!
//! # Properties
//! In `tests/actuate/nudging.rs`:
//! - A mask that was read from ours is undone once, and believed after that
//!   (`a_mask_that_was_read_from_ours_is_undone`). From then on the thread is nudged by the mask that it has
//!   (`a_thread_that_got_its_mask_back_is_nudged`).
//! - One whose mask was chosen before is believed (`a_thread_that_chose_a_mask_before_is_believed`).
//! - A pin to where threads were nudged stays (`a_pin_to_where_others_were_nudged_stays`,
//!   `a_pin_to_where_the_thread_was_nudged_stays`), also after such a target was inherited
//!   (`a_pin_of_a_child_that_inherited_a_target_stays`), and where it is not the first
//!   (`the_last_of_several_masks_stays`).
//! - Only a mask that could be seen in a nudge is doubted (`a_pin_to_where_a_thread_was_seen_is_doubted`).
//! - A thread whose mask changed is left alone for a while (`a_thread_whose_mask_changed_is_not_nudged`).

use symbiont_topology::CpuSet;

use super::acts::mask_is_ours;
use super::actuator::Actuator;
use super::applied_state::EXEC_LASTS;
use super::state::{State, Suspect};
use super::thread::ThreadKey;

/// For how long a mask of ours is suspect when it is seen again, in clock ticks.
const LASTS: u64 = EXEC_LASTS;
/// For how long one that was seen in a nudge is doubted.
const DOUBTED_NS: u64 = 10_000_000_000;
/// Most that are remembered until they are asked for.
const MOST: usize = 64;

impl Actuator {
    /// The suspect masks that were undone since the last call.
    #[must_use]
    pub fn suspects(&self) -> Vec<Suspect> {
        std::mem::take(&mut self.state().suspects)
    }

    /// The masks since the last call that stay, though their programs may have read them in a nudge.
    #[must_use]
    pub fn doubts(&self) -> Vec<Suspect> {
        std::mem::take(&mut self.state().doubts)
    }
}

impl State {
    /// Gives a thread back what it had if it set a mask of ours; says whether it did.
    pub(super) fn undo_suspect(&mut self, key: ThreadKey, now: &CpuSet, cpuset: &CpuSet) -> bool {
        let since = self.kernel.now_ticks().saturating_sub(LASTS);
        let had = |mask: &CpuSet| mask == now || mask.intersection(cpuset) == *now;
        let is_ours = self.applied.had_lately(key.process, since, had);
        let Some(entry) = self.applied.get_mut(&key) else { return false };
        if now == cpuset
            || !is_ours
            || entry.chosen.is_some()
            || std::mem::replace(&mut entry.suspected, true)
        {
            return false;
        }
        let held = entry.applied().mask.clone().filter(|held| !held.is_disjoint(cpuset));
        let write = held.or_else(|| entry.saved.mask.to_write(cpuset).cloned());
        let done = self.kernel.set_mask(key, write.as_ref()).is_ok();
        if done && self.suspects.len() < MOST {
            self.suspects.push(Suspect { thread: key, mask: now.clone() });
        }
        done
    }

    /// Takes note of a mask that a thread set, if a thread of its process was seen with it in a nudge.
    pub(super) fn doubt(&mut self, key: ThreadKey, now: &CpuSet, cpuset: &CpuSet) {
        let since = self.kernel.now_ns().saturating_sub(DOUBTED_NS);
        let had = |mask: &CpuSet| mask == now || mask.intersection(cpuset) == *now;
        if now != cpuset && self.doubts.len() < MOST && self.nudges.showed(key.process, since, had)
        {
            self.doubts.push(Suspect { thread: key, mask: now.clone() });
        }
    }

    /// Looks at all threads of processes on which masks were held lately.
    pub(super) fn undo_suspects(&mut self) {
        let since = self.kernel.now_ticks().saturating_sub(LASTS);
        let processes: Vec<u32> = self.applied.processes().collect();
        let held = processes.into_iter().filter(|p| self.applied.had_lately(*p, since, |_| true));
        for process in held.collect::<Vec<_>>() {
            let cpuset = self.known_cpuset(process);
            let keys: Vec<ThreadKey> = self.applied.of_process(process).map(|(k, _)| *k).collect();
            for key in keys {
                let Ok(now) = self.kernel.mask(key) else { continue };
                if self.applied.get(&key).is_none_or(|entry| mask_is_ours(entry, &now, &cpuset)) {
                    continue;
                }
                // A leader that another thread of its process has replaced has what was held on that one.
                let Ok(now) = self.kernel.present(key) else { continue };
                if !self.may_have_execed(key, &now) {
                    self.undo_suspect(key, &now.mask, &cpuset);
                }
            }
        }
    }
}
