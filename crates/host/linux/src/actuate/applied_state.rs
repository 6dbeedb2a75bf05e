//! What is known of each adopted thread: a plain value, without I/O.
//!
//! A thread inherits the settings of the thread that made it, ours among them. Whether a newborn inherited one of
//! ours follows from time: its maker must have had that setting at the moment of the birth. So each entry keeps
//! not only what is applied now, but also what was applied lately, and since when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use symbiont_topology::CpuSet;

use super::inheritance::{Change, Explained, Newborn, Repair, SLACK};
use super::settings::{AppliedSettings, Saved};
use super::thread::ThreadKey;

/// Changes of one thread that are remembered for its children.
const HISTORY: usize = 16;
/// Threads that exited while something of ours was or had been applied, and
/// newborns that were looked at, remembered for children that are seen late.
const REMEMBERED: usize = 1024;
/// When a thread was born that was gone before it could be read.
pub(super) const UNKNOWN: u64 = 0;
/// For so many clock ticks after a thread was missed, an exec that it called may still be
/// reported: ten seconds at the usual 100 ticks. Loading a program takes milliseconds; without
/// the proc connector it is found with the next sample.
pub(super) const EXEC_LASTS: u64 = 1000;

/// One adopted thread.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Execs of its process, as far as is known.
    pub generation: u32,
    pub saved: Saved,
    pub allowed: Arc<CpuSet>,
    /// Is what was saved in the journal?
    pub journaled: bool,
    /// Was it once found with the whole of its allowed CPUs, although less was set?
    pub widened: bool,
    /// Was it once found with a mask that was held on another thread of its process?
    pub suspected: bool,
    /// When it was last found with another mask from its program or another process, in clock ticks; none: never
    /// since it was adopted.
    pub chosen: Option<u64>,
    applied: AppliedSettings,
    /// In order of time; before the first, nothing was applied.
    history: VecDeque<Change>,
}

impl Entry {
    pub fn new(saved: Saved, allowed: Arc<CpuSet>) -> Self {
        let (applied, history) = Default::default();
        Self {
            generation: 0,
            saved,
            allowed,
            journaled: false,
            widened: false,
            suspected: false,
            chosen: None,
            applied,
            history,
        }
    }

    pub fn applied(&self) -> &AppliedSettings {
        &self.applied
    }

    /// Was another mask found on it at a tick or later?
    pub fn chose_since(&self, tick: u64) -> bool {
        self.chosen.is_some_and(|chosen| chosen >= tick)
    }

    /// Settings of another entry apply to this thread, where that explains a setting
    /// which this entry does not explain. What that entry saved was then read from this thread.
    pub fn take_over(&mut self, other: &Self, own: Explained, others: Explained, tick: u64) {
        let mut applied = self.applied.clone();
        if !own.mask && others.mask {
            applied.mask.clone_from(&other.applied.mask);
            self.saved.mask.clone_from(&other.saved.mask);
        }
        if !own.nice && others.nice {
            applied.nice = other.applied.nice;
            self.saved.nice = other.saved.nice;
        }
        if !own.class && others.class {
            applied.class = other.applied.class;
            self.saved.class = other.saved.class;
            self.saved.reset_on_fork = other.saved.reset_on_fork;
        }
        if applied != self.applied {
            self.set_applied(applied, tick);
        }
    }

    fn set_applied(&mut self, applied: AppliedSettings, tick: u64) {
        self.note(applied, tick, false);
    }

    fn note(&mut self, applied: AppliedSettings, tick: u64, inherited: bool) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        let saved = self.saved.clone();
        self.history.push_back(Change { since: tick, applied: applied.clone(), saved, inherited });
        self.applied = applied;
    }

    /// Everything of ours that was applied about a tick, and what was saved then.
    fn about(&self, tick: u64) -> impl Iterator<Item = (&AppliedSettings, &Saved)> {
        let ends = self.history.iter().skip(1).map(|change| change.since).chain([u64::MAX]);
        let changes: Vec<_> = self.history.iter().zip(ends).collect();
        changes
            .into_iter()
            .filter(move |(change, end)| {
                change.may_be_inherited(tick) && tick <= end.saturating_add(SLACK)
            })
            .map(|(change, _)| (&change.applied, &change.saved))
            // Of what one tick cannot distinguish, the last: it has what was saved last.
            .rev()
    }

    /// All that is remembered to have been applied.
    pub fn ever(&self) -> impl Iterator<Item = &Change> {
        self.history.iter().filter(|change| !change.applied.is_nothing())
    }

    /// What is applied now and what was just before, in order of time.
    pub fn latest(&self) -> impl Iterator<Item = &Change> {
        self.history.iter().skip(self.history.len().saturating_sub(2))
    }

    /// Was such a mask applied at a tick, or later? Inherited masks do not count: such a mask may be the target of a
    /// nudge, which no program reads; and a mask that was held is in the history of the thread that passed it on.
    pub fn had_since(&self, tick: u64, is_it: impl Fn(&CpuSet) -> bool) -> bool {
        let ends = self.history.iter().skip(1).map(|change| change.since).chain([u64::MAX]);
        let mut lately = self.history.iter().zip(ends).filter(|(_, end)| *end >= tick);
        lately.any(|(change, _)| {
            !change.inherited && change.applied.mask.as_ref().is_some_and(&is_it)
        })
    }

    /// Since when something is applied, if it is.
    pub fn since(&self, applied: &AppliedSettings) -> Option<u64> {
        self.history.back().filter(|last| last.applied == *applied).map(|last| last.since)
    }

    fn forget_changes(&mut self) {
        self.applied = AppliedSettings::default();
        self.history.clear();
        self.journaled = false;
    }

    fn was_ever_changed(&self) -> bool {
        !self.history.is_empty()
    }
}

/// A changed thread that exited.
#[derive(Debug)]
struct Departed {
    key: ThreadKey,
    entry: Entry,
    /// When it was missed; none if it ended before the last exec of its process.
    missed: Option<u64>,
}

impl Departed {
    /// Is it this thread, and not what it was before an exec?
    fn is_missed(&self, key: &ThreadKey) -> bool {
        self.key == *key && self.missed.is_some()
    }

    /// May an exec that it called still be unreported?
    fn may_lead(&self, tick: u64) -> bool {
        self.missed.is_some_and(|missed| tick <= missed.saturating_add(EXEC_LASTS))
    }
}

/// All adopted threads.
#[derive(Debug, Default)]
pub(super) struct AppliedState {
    threads: BTreeMap<ThreadKey, Entry>,
    /// Those with a history: only their children can carry something of ours.
    changed: BTreeSet<ThreadKey>,
    departed: VecDeque<Departed>,
    /// Newborns that carried what they inherited until that was undone, or until they ended. They
    /// are many: kept apart, so that they displace no other.
    carried: VecDeque<Departed>,
    seen_at_birth: VecDeque<ThreadKey>,
}

impl AppliedState {
    pub fn get(&self, key: &ThreadKey) -> Option<&Entry> {
        self.threads.get(key)
    }

    pub fn get_mut(&mut self, key: &ThreadKey) -> Option<&mut Entry> {
        self.threads.get_mut(key)
    }

    pub fn insert(&mut self, key: ThreadKey, entry: Entry) {
        if entry.was_ever_changed() {
            self.changed.insert(key);
        }
        self.threads.insert(key, entry);
    }

    /// Enters a thread that is new, or again new to us: its children may still carry what is
    /// remembered of it.
    pub fn insert_new(&mut self, key: ThreadKey, mut entry: Entry, tick: u64) {
        let is_it = |gone: &Departed| gone.key == key && gone.missed.is_none();
        let known = [&mut self.carried, &mut self.departed].into_iter().find_map(|queue| {
            let at = queue.iter().rposition(is_it)?;
            queue.remove(at)
        });
        if let Some(known) = known {
            entry.history = known.entry.history;
            if entry.history.back().is_some_and(|last| !last.applied.is_nothing()) {
                entry.set_applied(AppliedSettings::default(), tick);
            }
        }
        self.insert(key, entry);
    }

    /// Notes what was applied to a thread at a tick.
    pub fn set_applied(&mut self, key: &ThreadKey, applied: AppliedSettings, tick: u64) {
        if let Some(entry) = self.threads.get_mut(key) {
            entry.set_applied(applied, tick);
            self.changed.insert(*key);
        }
    }

    /// Everything was restored: nothing of ours is applied or remembered.
    pub fn forget_changes(&mut self) {
        self.threads.values_mut().for_each(Entry::forget_changes);
        self.changed.clear();
        self.departed.clear();
        self.carried.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ThreadKey, &Entry)> {
        self.threads.iter()
    }

    /// The threads that exited lately after we had changed them, and at a tick: may an exec that
    /// they called still be unreported?
    pub fn departed(&self, tick: u64) -> impl Iterator<Item = (&ThreadKey, &Entry, bool)> {
        let all = self.departed.iter().chain(&self.carried);
        all.map(move |gone| (&gone.key, &gone.entry, gone.may_lead(tick)))
    }

    /// The threads of a leader's process that may have called an exec which was not reported by
    /// this tick, the latest first. Whether they are gone is for the kernel to say.
    pub fn callers(
        &self,
        leader: ThreadKey,
        tick: u64,
    ) -> impl Iterator<Item = (&ThreadKey, &Entry)> {
        let adopted = self.of_process(leader.process);
        let departed = self.departed.iter().rev().filter(move |gone| gone.may_lead(tick));
        adopted
            .chain(departed.map(|gone| (&gone.key, &gone.entry)))
            .filter(move |(key, _)| key.process == leader.process && key.born >= leader.born)
            .filter(move |(key, _)| **key != leader)
    }

    /// The adopted threads of a process.
    pub fn of_process(&self, process: u32) -> impl Iterator<Item = (&ThreadKey, &Entry)> {
        self.threads.range(ThreadKey::all_of(process))
    }

    pub fn of_process_mut(
        &mut self,
        process: u32,
    ) -> impl Iterator<Item = (&ThreadKey, &mut Entry)> {
        self.threads.range_mut(ThreadKey::all_of(process))
    }

    /// The processes of the adopted threads, in order.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        let mut last = None;
        self.threads
            .keys()
            .map(|key| key.process)
            .filter(move |&process| last.replace(process) != Some(process))
    }

    /// The thread exited, and is missed since this tick. What its children may have inherited is kept for a while.
    pub fn depart(&mut self, key: &ThreadKey, tick: u64) {
        if let Some(entry) = self.take_adopted(key) {
            // Should it only be out of sight, it is no newborn.
            self.saw_at_birth(*key);
            self.remember_departed(*key, entry, Some(tick));
        }
    }

    /// Forgets threads of these processes on which nothing of ours is applied.
    pub fn forget_processes(&mut self, processes: &BTreeSet<u32>) {
        let stays = |key: &ThreadKey, entry: &Entry| {
            !processes.contains(&key.process) || !entry.applied().is_nothing()
        };
        self.threads.retain(|key, entry| stays(key, entry));
        self.departed.retain(|gone| stays(&gone.key, &gone.entry));
        let threads = &self.threads;
        self.changed.retain(|key| threads.contains_key(key));
    }

    fn take_adopted(&mut self, key: &ThreadKey) -> Option<Entry> {
        self.changed.remove(key);
        self.threads.remove(key)
    }

    /// Is it a changed thread that is believed gone?
    pub fn is_departed(&self, key: &ThreadKey) -> bool {
        self.departed.iter().any(|gone| gone.is_missed(key))
    }

    /// What is known of a changed thread that was believed gone.
    pub fn take_departed(&mut self, key: &ThreadKey) -> Option<Entry> {
        let at = self.departed.iter().rposition(|gone| gone.is_missed(key))?;
        self.departed.remove(at).map(|gone| gone.entry)
    }

    /// What is known of a thread, adopted or believed gone.
    pub fn take(&mut self, key: &ThreadKey) -> Option<Entry> {
        self.take_adopted(key).or_else(|| self.take_departed(key))
    }

    /// Remembers a thread that exited, if it was ever changed: missed since a tick, or ended
    /// before the last exec of its process.
    pub fn remember_departed(&mut self, key: ThreadKey, entry: Entry, missed: Option<u64>) {
        if entry.was_ever_changed() {
            remember(&mut self.departed, Departed { key, entry, missed });
        }
    }

    /// All threads of a process that now is another program, the leader too, and then those that
    /// were missed just before, the latest first.
    pub fn take_process(&mut self, process: u32, tick: u64) -> Vec<(ThreadKey, Entry)> {
        let keys: Vec<_> = self.of_process(process).map(|(key, _)| *key).collect();
        let adopted = keys.into_iter().filter_map(|key| Some((key, self.take_adopted(&key)?)));
        let mut all: Vec<_> = adopted.collect();
        let departed = std::mem::take(&mut self.departed);
        let is_of_it = |gone: &Departed| gone.key.process == process && gone.may_lead(tick);
        let (mine, others): (VecDeque<_>, _) = departed.into_iter().partition(is_of_it);
        self.departed = others;
        all.extend(mine.into_iter().rev().map(|gone| (gone.key, gone.entry)));
        all
    }

    /// Was such a mask applied on a thread of this process at a tick, or later?
    pub fn had_lately(&self, process: u32, tick: u64, is_it: impl Fn(&CpuSet) -> bool) -> bool {
        self.makers(process, 0).any(|(_, entry)| entry.had_since(tick, &is_it))
    }

    pub fn saw_at_birth(&mut self, key: ThreadKey) {
        remember(&mut self.seen_at_birth, key);
    }

    /// The threads of which it is known that they carry nothing inherited.
    pub fn seen_at_birth(&self) -> impl Iterator<Item = &ThreadKey> {
        self.seen_at_birth.iter()
    }

    pub fn was_seen_at_birth(&self, key: &ThreadKey) -> bool {
        self.seen_at_birth.contains(key)
    }

    /// Was a thread of this process ever changed, as far as is remembered?
    pub fn was_changed(&self, process: u32) -> bool {
        self.makers(process, 0).any(|(_, entry)| entry.ever().next().is_some())
    }

    /// Could a newborn of this process that has this mask carry something of ours? Says yes also
    /// where only a second read can decide: a cpuset may have cut what it carries.
    pub fn may_carry(&self, process: u32, mask: Option<&CpuSet>) -> bool {
        let is_whole = |set: &CpuSet| mask.is_some_and(|mask| set != mask && set.is_subset(mask));
        let mut ever = self.makers(process, 0).flat_map(|(_, entry)| entry.ever());
        ever.any(|Change { applied: f, .. }| {
            f.nice.is_some()
                || f.class.is_some()
                || f.mask.as_ref().is_some_and(|set| !is_whole(set))
        })
    }

    /// A newborn carried something from its birth until a tick; its own children may carry it too.
    pub fn note_carried(
        &mut self,
        key: ThreadKey,
        carried: AppliedSettings,
        saved: Saved,
        [born, tick]: [u64; 2],
    ) {
        let mut entry = Entry::new(saved, Arc::default());
        entry.note(carried, born, true);
        entry.set_applied(AppliedSettings::default(), tick);
        remember(&mut self.carried, Departed { key, entry, missed: None });
    }

    /// A newborn was gone before it could be read: whatever its maker had at its birth, it carried
    /// until now.
    pub fn note_unseen(&mut self, (process, thread): (u32, u32), newborn: ThreadKey, tick: u64) {
        let likeliest = self.makers(process, thread).next().map(|(key, _)| *key);
        // One that was never seen either is remembered once for each change of its own maker.
        let makers = self.makers(process, thread).filter(|(key, _)| Some(**key) == likeliest);
        let changes: Vec<Change> = makers.flat_map(|(_, entry)| entry.history.clone()).collect();
        for change in changes.into_iter().filter(|change| !change.applied.is_nothing()) {
            self.note_carried(newborn, change.applied, change.saved, [change.since, tick]);
        }
    }

    /// What a newborn carries of what its maker had at its birth. The maker is
    /// `thread` of `process` where that is known, else any thread of it.
    pub fn repair(
        &self,
        (process, thread): (u32, u32),
        newborn: &Newborn,
        cpuset: &CpuSet,
    ) -> Repair {
        // Threads of an older process that had the number made none of this one's.
        let leader = self.leader_born(process, newborn.born);
        let inherited = || {
            self.makers(process, thread)
                .filter(|(key, _)| key.born >= leader || key.born == UNKNOWN)
                .flat_map(|(_, entry)| entry.about(newborn.born))
        };
        inherited()
            .map(|(applied, saved)| Repair::of(newborn, applied, saved, cpuset))
            .fold(Repair::default(), Repair::or_better)
            .or_counted(newborn, inherited())
    }

    /// When the leader of a process was born, as far as is known: the youngest with its number that
    /// is not younger than a newborn.
    fn leader_born(&self, process: u32, newborn: u64) -> u64 {
        let gone = self.departed.iter().chain(&self.carried).map(|gone| &gone.key);
        let keys = self.of_process(process).map(|(key, _)| key).chain(gone);
        let leaders = keys.filter(|key| (key.process, key.thread) == (process, process));
        let births = leaders.map(|key| key.born).filter(|born| *born <= newborn);
        births.max().unwrap_or_default()
    }

    /// Threads that may have made a newborn, the likeliest first.
    fn makers(&self, process: u32, thread: u32) -> impl Iterator<Item = (&ThreadKey, &Entry)> {
        let changed = move || {
            self.changed
                .range(ThreadKey::all_of(process))
                .filter_map(|key| self.threads.get_key_value(key))
        };
        let gone = move || {
            let all = self.departed.iter().chain(&self.carried);
            let of_it = all.filter(move |gone| gone.key.process == process);
            of_it.map(|gone| (&gone.key, &gone.entry))
        };
        let all = move || changed().chain(gone());
        let known = all().filter(move |(key, _)| key.thread == thread);
        let others = all().filter(move |(key, _)| key.thread != thread);
        known.chain(others)
    }
}

fn remember<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == REMEMBERED {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests;
