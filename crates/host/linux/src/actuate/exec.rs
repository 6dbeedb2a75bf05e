//! Which thread of a process became its leader by an exec.
//!
//! # Problem
//! A thread that calls exec becomes the leader of its process: it takes over the leader's number and time of
//! birth (`de_thread` in the kernel's fs/exec.c), but keeps its own mask, nice value and class. All other threads
//! end. The kernel reports the exec only after the new program was loaded, and does not say which thread called
//! it. In between, a sample misses the threads that the exec ended, and a move finds on the leader what was
//! applied to another thread.
//!
//! # Approach
//! The caller is identified by its settings. Each known thread of the process explains some of the three settings
//! that the leader has now, as applied to it or as saved. The thread that explains most of them was the caller;
//! of several, the leader itself.
//!
//! ```text
//! candidates := the leader, and threads that are gone, were missed at most EXEC_LASTS ago, and not before the
//!               last exec
//! caller     := the candidate that explains most of the leader's mask, nice value and class
//! ```
//!
//! # Properties
//! - The caller's own settings come back, even if a sample fell between the exec and its report
//!   (`an_exec_is_undone_although_a_sample_fell_before_its_report`), or if no report came at all
//!   (`an_exec_that_was_never_reported_is_undone_at_the_end`).
//! - A move before the report leaves what was saved alone
//!   (`a_move_before_the_report_of_an_exec_changes_nothing`).
//! - A thread whose end was reported is not taken for the caller
//!   (`a_thread_whose_end_was_reported_did_not_call_exec`).

use std::cmp::Reverse;

use symbiont_machine::{Priority, Target};
use symbiont_topology::CpuSet;

use super::applied_state::Entry;
use super::journal_state::ThreadRecord;
use super::restoring::caller;
use super::settings::{Mask, chosen_nice};
use super::state::{State, allowed_of, record_of};
use super::thread::Present;
use super::thread::ThreadKey;

impl State {
    /// A process replaced its program. `candidates` are its threads whose end was not reported
    /// before; none where that is not known.
    pub fn execed(&mut self, process: u32, candidates: &[u32]) {
        self.groups.remove(&process);
        self.cpusets.remove(&process);
        let mut threads = self.applied.take_process(process, self.kernel.now_ticks());
        if threads.is_empty() {
            return;
        }
        let leader = self.kernel.facts(process, process).ok().flatten().map(|facts| facts.key);
        let now = |key| Some((key, self.kernel.present(key).ok()?));
        if let Some((leader, now)) = leader.and_then(now) {
            let cpuset = self.cpuset_of(process, &now.mask);
            let is_candidate = |thread| candidates.contains(&thread);
            // The end of the old leader can be reported under the caller's number.
            let any = candidates.is_empty() || is_candidate(process);
            threads.sort_by_key(|(key, _)| (*key != leader, !is_candidate(key.thread)));
            let explained = |entry| record_of(entry).explains(&now, &cpuset);
            let caller = threads
                .iter()
                .enumerate()
                .filter(|(_, (key, _))| key.born >= leader.born)
                .filter(|(_, (key, _))| any || is_candidate(key.thread))
                .min_by_key(|(_, (_, entry))| Reverse(explained(entry).weight()));
            // An act on the leader's number after the exchange met the caller.
            let met =
                threads.iter().position(|(key, entry)| *key == leader && explained(entry).ours > 0);
            if let Some(position) = caller.map(|(position, _)| position).or(met) {
                let last = threads.iter().map(|(_, entry)| entry.generation).max();
                let tick = self.kernel.now_ticks();
                if let Some((mut entry, met)) = met
                    .and_then(|met| Some((threads.get(position)?.1.clone(), &threads.get(met)?.1)))
                {
                    entry.take_over(met, explained(&entry), explained(met), tick);
                    threads[position].1 = entry;
                }
                let (key, mut entry) = threads.remove(position);
                entry.generation = last.unwrap_or_default() + 1;
                self.install(leader, key, entry, &now, &cpuset);
                self.undo(leader);
            }
        }
        for (key, entry) in threads {
            self.applied.remember_departed(key, entry, None);
        }
    }

    /// Continues with what is known of a thread that was believed gone; `None` if nothing is. The
    /// leader of a process may be another thread of it by now.
    pub fn resume(&mut self, key: ThreadKey, now: &Present, cpuset: &CpuSet) -> Option<()> {
        let own = self.applied.take_departed(&key);
        let record = own.as_ref().map(record_of);
        let caller = self.unreported_caller(key, record.as_ref(), now, cpuset);
        if let Some((from, entry)) = caller.and_then(|from| Some((from, self.applied.take(&from)?)))
        {
            if let Some(own) = own {
                self.applied.remember_departed(key, own, None);
            }
            self.install(key, from, entry, now, cpuset);
            self.undo(key);
            return Some(());
        }
        self.install(key, key, own?, now, cpuset);
        Some(())
    }

    /// Does a leader look like a changed thread of its process that is gone? Then that one called
    /// exec, and the report, which moves what was saved, is still to come.
    pub fn may_have_execed(&mut self, key: ThreadKey, now: &Present) -> bool {
        if key.thread != key.process {
            return false;
        }
        let Some(own) = self.applied.get(&key).map(record_of) else { return false };
        let mut cpuset = self.known_cpuset(key.process);
        if !own.explains(now, &cpuset).is_all() {
            cpuset = self.read_cpuset(key.process);
        }
        self.unreported_caller(key, Some(&own), now, &cpuset).is_some()
    }

    fn unreported_caller(
        &self,
        leader: ThreadKey,
        own: Option<&ThreadRecord>,
        now: &Present,
        cpuset: &CpuSet,
    ) -> Option<ThreadKey> {
        if leader.thread != leader.process {
            return None;
        }
        if own.is_some_and(|own| own.explains(now, cpuset).is_all()) {
            return None;
        }
        let others = self.applied.callers(leader, self.kernel.now_ticks());
        let others: Vec<_> = others.map(|(key, entry)| (*key, record_of(entry))).collect();
        let others = others.iter().map(|(key, record)| (key, record));
        caller(&*self.kernel, own, others, now, cpuset).map(|(key, _)| *key)
    }

    /// Enters a leader, or any thread, with what is known of the thread that it was. What this
    /// does not explain was changed by another process and is the thread's own.
    fn install(
        &mut self,
        key: ThreadKey,
        was: ThreadKey,
        mut entry: Entry,
        now: &Present,
        cpuset: &CpuSet,
    ) {
        let explained = record_of(&entry).explains(now, cpuset);
        let mut applied = entry.applied().clone();
        if !explained.mask {
            entry.saved.mask = Mask::classify(now.mask.clone(), cpuset);
            applied.mask = None;
        }
        if !explained.nice {
            let chosen = chosen_nice(entry.saved.nice, applied.nice, now.nice);
            // If this fails it ended.
            let is_set = chosen == now.nice || self.kernel.set_nice(key, chosen).is_ok();
            entry.saved.nice = if is_set { chosen } else { now.nice };
            applied.nice = None;
        }
        if !explained.class {
            (entry.saved.class, entry.saved.reset_on_fork) = (now.class, now.reset_on_fork);
            applied.class = None;
        }
        entry.allowed = allowed_of(&entry.saved, &self.known_cpuset(key.process));
        let is_news = key != was || !explained.is_all();
        entry.journaled &= !is_news;
        let is_changed = applied != *entry.applied();
        self.applied.insert(key, entry);
        if is_changed {
            self.applied.set_applied(&key, applied.clone(), self.kernel.now_ticks());
        }
        if is_news {
            // Should this fail, so does every act, which tries it again.
            let _ = self.announce(key, Some(&applied));
        }
    }

    /// Undoes at once what is applied to a leader: programs count the CPUs when they start.
    fn undo(&mut self, leader: ThreadKey) {
        if self.applied.get(&leader).is_some_and(|entry| !entry.applied().is_nothing()) {
            // What fails here is undone at the end.
            let _ = self.set_affinity(leader, &Target::Os);
            let _ = self.set_class_ext(leader, false);
            let _ = self.set_priority(leader, Priority::Normal);
        }
    }
}
