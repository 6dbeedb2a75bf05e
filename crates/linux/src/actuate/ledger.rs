//! What is known about each adopted thread: a plain value without I/O.
//!
//! A thread made by a thread that we had changed inherits the change. Whether
//! it did is told by time: its value must be one that its maker had at the
//! moment of the birth. So each entry keeps, besides what is in force, what
//! was in force lately and since when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use symbiont_topology::CpuSet;

use super::kernel::{Class, ThreadKey};
use super::settings::{InForce, Mask, Saved, comes_from};

/// Changes of one thread that are remembered for its children.
const HISTORY: usize = 16;
/// Threads that exited while something of ours was or had been in force, and
/// newborns that were looked at, remembered for children that are seen late.
const REMEMBERED: usize = 1024;
/// Births and changes are stamped in clock ticks by different readers of the
/// clock, so that they may be one tick apart.
const SLACK: u64 = 1;

/// One adopted thread.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Execs of its process, as far as is known.
    pub generation: u32,
    pub saved: Saved,
    pub limit: Arc<CpuSet>,
    /// Is what was saved in the journal?
    pub journaled: bool,
    in_force: InForce,
    /// What was in force from which tick on; before the first, nothing.
    history: VecDeque<(u64, InForce)>,
}

impl Entry {
    pub fn new(saved: Saved, limit: Arc<CpuSet>) -> Self {
        let (in_force, history) = Default::default();
        Self { generation: 0, saved, limit, journaled: false, in_force, history }
    }

    pub fn in_force(&self) -> &InForce {
        &self.in_force
    }

    fn put_in_force(&mut self, in_force: InForce, tick: u64) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((tick, in_force.clone()));
        self.in_force = in_force;
    }

    /// Everything of ours that was in force about a tick.
    fn about(&self, tick: u64) -> impl Iterator<Item = &InForce> {
        let ends = self.history.iter().skip(1).map(|(since, _)| *since).chain([u64::MAX]);
        self.history
            .iter()
            .zip(ends)
            .filter(move |((since, _), end)| {
                *since <= tick.saturating_add(SLACK) && tick <= end.saturating_add(SLACK)
            })
            .map(|((_, in_force), _)| in_force)
    }

    /// All that is remembered to have been in force.
    pub fn ever(&self) -> impl Iterator<Item = &InForce> {
        self.history.iter().map(|(_, in_force)| in_force).filter(|f| !f.is_nothing())
    }

    /// What is in force now and what was just before, in order of time.
    pub fn latest(&self) -> impl Iterator<Item = &InForce> {
        self.history.iter().skip(self.history.len().saturating_sub(2)).map(|(_, f)| f)
    }

    fn forget_changes(&mut self) {
        self.in_force = InForce::default();
        self.history.clear();
        self.journaled = false;
    }

    fn was_ever_changed(&self) -> bool {
        !self.history.is_empty()
    }
}

/// What a newborn has.
#[derive(Debug, Clone)]
pub(super) struct Newborn {
    pub mask: CpuSet,
    pub nice: i8,
    pub class: Class,
    pub born: u64,
}

/// What a newborn inherited from us and shall have instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repair {
    pub mask: Option<Mask>,
    pub nice: Option<i8>,
    pub class: Option<Class>,
}

impl Repair {
    /// What of ours a newborn carries, if its maker had `in_force` at its
    /// birth and `saved` before us.
    pub fn of(newborn: &Newborn, in_force: &InForce, saved: &Saved, cpuset: &CpuSet) -> Self {
        let narrow = |set: &CpuSet| {
            newborn.mask != *cpuset && comes_from(&newborn.mask, set, &saved.mask, cpuset)
        };
        let differs = |nice: &i8| *nice == newborn.nice && saved.nice != newborn.nice;
        Self {
            mask: in_force.mask.as_ref().is_some_and(narrow).then(|| saved.mask.clone()),
            nice: in_force.nice.as_ref().is_some_and(differs).then_some(saved.nice),
            class: (in_force.waiting && newborn.class == Class::Idle).then_some(saved.class),
        }
    }

    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The other one if it explains more of what the newborn has.
    pub fn or_better(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }

    fn weight(&self) -> usize {
        [self.mask.is_some(), self.nice.is_some(), self.class.is_some()]
            .into_iter()
            .filter(|explained| *explained)
            .count()
    }
}

/// All adopted threads.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    threads: BTreeMap<ThreadKey, Entry>,
    /// Those with a history: only their children can carry something of ours.
    changed: BTreeSet<ThreadKey>,
    departed: VecDeque<(ThreadKey, Entry)>,
    seen_at_birth: VecDeque<ThreadKey>,
}

impl Ledger {
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

    /// Notes what came into force on a thread at a tick.
    pub fn put_in_force(&mut self, key: &ThreadKey, in_force: InForce, tick: u64) {
        if let Some(entry) = self.threads.get_mut(key) {
            entry.put_in_force(in_force, tick);
            self.changed.insert(*key);
        }
    }

    /// Everything was put back: nothing of ours is in force or remembered.
    pub fn forget_changes(&mut self) {
        self.threads.values_mut().for_each(Entry::forget_changes);
        self.changed.clear();
        self.departed.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ThreadKey, &Entry)> {
        self.threads.iter()
    }

    /// The threads that exited lately after we had changed them.
    pub fn departed(&self) -> impl Iterator<Item = (&ThreadKey, &Entry)> {
        self.departed.iter().map(|(key, entry)| (key, entry))
    }

    pub fn len(&self) -> usize {
        self.threads.len()
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

    /// The thread exited. What its children may have inherited is kept a while.
    pub fn depart(&mut self, key: &ThreadKey) {
        if let Some(entry) = self.threads.remove(key) {
            self.changed.remove(key);
            self.remember_departed(*key, entry);
        }
    }

    /// What is known of a changed thread that was believed gone.
    pub fn take_departed(&mut self, key: &ThreadKey) -> Option<Entry> {
        let at = self.departed.iter().rposition(|(departed, _)| departed == key)?;
        self.departed.remove(at).map(|(_, entry)| entry)
    }

    pub fn remember_departed(&mut self, key: ThreadKey, entry: Entry) {
        if entry.was_ever_changed() {
            remember(&mut self.departed, (key, entry));
        }
    }

    /// All threads of a process that now is another program; the leader is
    /// given back as well.
    pub fn take_process(&mut self, process: u32) -> Vec<(ThreadKey, Entry)> {
        let keys: Vec<_> = self.of_process(process).map(|(key, _)| *key).collect();
        keys.into_iter()
            .filter_map(|key| {
                self.changed.remove(&key);
                Some((key, self.threads.remove(&key)?))
            })
            .collect()
    }

    pub fn saw_at_birth(&mut self, key: ThreadKey) {
        remember(&mut self.seen_at_birth, key);
    }

    pub fn was_seen_at_birth(&self, key: &ThreadKey) -> bool {
        self.seen_at_birth.contains(key)
    }

    /// Could a newborn of this process that has this mask carry something of
    /// ours? Says no quickly, and yes also where only a closer look can tell.
    pub fn may_carry(&self, process: u32, mask: &dyn Fn() -> Option<CpuSet>) -> bool {
        let mut ever = self.makers(process, 0).flat_map(|(_, entry)| entry.ever()).peekable();
        if ever.peek().is_none() {
            return false;
        }
        let mask = mask();
        ever.any(|f| f.nice.is_some() || f.waiting || (f.mask.is_some() && f.mask == mask))
    }

    /// What a newborn carries of what its maker had at its birth. The maker is
    /// `thread` of `process` where that is known, else any thread of it.
    pub fn repair(
        &self,
        (process, thread): (u32, u32),
        newborn: &Newborn,
        cpuset: &CpuSet,
    ) -> Repair {
        self.makers(process, thread)
            .flat_map(|(_, entry)| entry.about(newborn.born).map(move |f| (f, &entry.saved)))
            .map(|(in_force, saved)| Repair::of(newborn, in_force, saved, cpuset))
            .fold(Repair::default(), Repair::or_better)
    }

    /// Threads that may have made a newborn, the likeliest first.
    fn makers(&self, process: u32, thread: u32) -> impl Iterator<Item = (&ThreadKey, &Entry)> {
        let changed = move || {
            self.changed
                .range(ThreadKey::all_of(process))
                .filter_map(|key| self.threads.get_key_value(key))
        };
        let known = changed().filter(move |(key, _)| key.thread == thread);
        let others = changed().filter(move |(key, _)| key.thread != thread);
        let gone = self.departed().filter(move |(key, _)| key.process == process);
        known.chain(others).chain(gone)
    }
}

fn remember<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == REMEMBERED {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn entry(mask: Mask) -> Entry {
        let saved = Saved { mask, nice: 0, class: Class::Other, reset_on_fork: false };
        Entry::new(saved, Arc::new(set("0-3")))
    }

    fn pinned(cpus: &str) -> InForce {
        InForce { mask: Some(set(cpus)), ..InForce::default() }
    }

    fn newborn(mask: &str, born: u64) -> Newborn {
        Newborn { mask: set(mask), nice: 0, class: Class::Other, born }
    }

    const MAKER: ThreadKey = ThreadKey { process: 10, thread: 12, born: 5 };

    fn ledger_with(changes: &[(u64, InForce)]) -> Ledger {
        let mut entry = entry(Mask::All);
        for (tick, in_force) in changes {
            entry.put_in_force(in_force.clone(), *tick);
        }
        let mut ledger = Ledger::default();
        ledger.insert(MAKER, entry);
        ledger
    }

    #[test]
    fn a_newborn_carries_what_its_maker_had_at_its_birth() {
        let ledger =
            ledger_with(&[(100, pinned("0")), (200, pinned("1")), (300, InForce::default())]);
        let repair = |mask, born| ledger.repair((10, 12), &newborn(mask, born), &set("0-3")).mask;
        assert_eq!(repair("0", 150), Some(Mask::All));
        assert_eq!(repair("1", 150), None, "pinned itself to a mask that we used later");
        assert_eq!(repair("1", 250), Some(Mask::All));
        assert_eq!(repair("0", 50), None, "born before we changed anything");
        assert_eq!(repair("1", 350), None, "born after we had put it back");
        assert_eq!(repair("0-3", 150), None);
    }

    #[test]
    fn a_thread_that_departed_is_still_known_as_a_maker() {
        let mut ledger = ledger_with(&[(100, pinned("0"))]);
        ledger.depart(&MAKER);
        assert_eq!(ledger.len(), 0);
        let repair = ledger.repair((10, 0), &newborn("0", 150), &set("0-3"));
        assert_eq!(repair.mask, Some(Mask::All));
    }

    #[test]
    fn memory_of_the_departed_is_bounded() {
        let mut ledger = Ledger::default();
        for thread in 0..5000 {
            let key = ThreadKey { process: 10, thread, born: 5 };
            let mut entry = entry(Mask::All);
            entry.put_in_force(pinned("0"), 100);
            ledger.insert(key, entry);
            ledger.depart(&key);
            ledger.saw_at_birth(key);
        }
        assert_eq!(ledger.departed().count(), REMEMBERED);
        assert_eq!(ledger.seen_at_birth.len(), REMEMBERED);
    }

    #[test]
    fn nice_and_class_are_inherited_too() {
        let in_force = InForce { mask: None, nice: Some(-10), waiting: true };
        let child = Newborn { nice: -10, class: Class::Idle, ..newborn("0-3", 1) };
        let repair = Repair::of(&child, &in_force, &entry(Mask::All).saved, &set("0-3"));
        let expected = Repair { mask: None, nice: Some(0), class: Some(Class::Other) };
        assert_eq!(repair, expected);
    }
}
