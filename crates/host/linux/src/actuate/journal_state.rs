//! What there is to restore, as one plain value: the applied state of a living manager, or what a dead manager's
//! journal says. It does no I/O; it decides which settings a thread that is found on the machine gets back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use symbiont_topology::CpuSet;

use super::inheritance::Explained;
use super::inheritance::{Change, Newborn, Repair};
use super::settings::{AppliedSettings, Saved, chosen_nice, comes_from, is_saved};
use super::thread::{Present, ThreadKey};

/// One thread that was changed, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadRecord {
    /// What it had before.
    pub saved: Saved,
    /// What may be applied on it now: one value, or two where a crash left
    /// open whether the second arrived.
    pub now: Vec<AppliedSettings>,
    /// What was applied on it lately, for the children of that time.
    pub ever: Vec<Change>,
    /// If it is gone: may it have become the leader of its process, by an exec that was not
    /// reported?
    pub may_lead: bool,
}

/// All threads of one manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct JournalState {
    /// When the manager began, in clock ticks since boot.
    pub began: u64,
    /// Its threads.
    pub records: BTreeMap<ThreadKey, ThreadRecord>,
    /// Threads whose inheritance was undone before.
    pub undone: BTreeSet<ThreadKey>,
}

/// What is to be done to one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    pub repair: Repair,
    /// What another process changed since: left alone.
    pub foreign: Vec<&'static str>,
}

impl JournalState {
    /// An empty state.
    #[must_use]
    pub fn new(began: u64) -> Self {
        Self { began, ..Self::default() }
    }

    /// May a thread carry what it inherited?
    #[must_use]
    pub fn may_carry(&self, key: &ThreadKey) -> bool {
        key.born >= self.began && !self.knows(key) && !self.undone.contains(key)
    }

    /// Is the thread's earlier state known?
    #[must_use]
    pub fn knows(&self, key: &ThreadKey) -> bool {
        self.records.contains_key(key)
    }

    /// Saves what a thread had before us, or what another process has given it since: a setting that differs from what
    /// was saved before is certainly not ours.
    pub fn save(&mut self, key: ThreadKey, saved: Saved) {
        let (mut now, ever) = match self.records.remove(&key) {
            Some(ThreadRecord { saved: before, mut now, ever, .. }) => {
                for applied in &mut now {
                    let (mask, nice) = (before.mask == saved.mask, before.nice == saved.nice);
                    applied.mask = applied.mask.take().filter(|_| mask);
                    applied.nice = applied.nice.filter(|_| nice);
                    applied.class = applied.class.filter(|_| before.class == saved.class);
                }
                (now, ever)
            }
            None => Default::default(),
        };
        now.dedup();
        self.records.insert(key, ThreadRecord { saved, now, ever, may_lead: true });
    }

    /// Notes what is about to be applied, at a tick or later, to a thread that was saved before.
    pub fn set(&mut self, key: &ThreadKey, applied: AppliedSettings, since: u64) {
        if let Some(record) = self.records.get_mut(key) {
            let before = record.now.pop().unwrap_or_default();
            record.now = vec![before, applied.clone()];
            record.ever.push(Change {
                since,
                applied,
                saved: record.saved.clone(),
                inherited: false,
            });
        }
    }

    /// Notes what is certainly applied to a thread: what was announced last is over.
    pub fn is(&mut self, key: &ThreadKey, applied: AppliedSettings) {
        if let Some(record) = self.records.get_mut(key) {
            record.now = vec![applied];
        }
    }

    /// The known threads of a process.
    pub fn of_process(&self, process: u32) -> impl Iterator<Item = (&ThreadKey, &ThreadRecord)> {
        self.records.range(ThreadKey::all_of(process))
    }

    fn of_ancestor(
        &self,
        ancestor: &Ancestor,
    ) -> impl Iterator<Item = (&ThreadKey, &ThreadRecord)> {
        let of_it = |one: &Candidate| {
            let born = one.born;
            self.of_process(one.process).filter(move |(key, _)| key.born >= born)
        };
        ancestor.iter().flat_map(of_it)
    }

    /// Its processes that are not among the living ones of these numbers.
    fn gone(&self, living: &BTreeMap<u32, Found>) -> Vec<Candidate> {
        let is_gone = |key: &&ThreadKey| living.get(&key.process).is_none_or(|f| key.born < f.born);
        let gone: BTreeSet<u32> =
            self.records.keys().filter(is_gone).map(|key| key.process).collect();
        gone.into_iter().map(|process| Candidate { process, born: 0 }).collect()
    }

    /// What a thread that was born after the manager began carries of what
    /// was applied on the threads of its ancestor processes. What it has in common with what the
    /// nearest ancestor had before us, it has from there.
    pub fn inherited(&self, ancestors: &[Ancestor], newborn: &Newborn, cpuset: &CpuSet) -> Repair {
        let mut all = Repair::default();
        if newborn.born < self.began {
            return all;
        }
        let (mut mask, mut nice, mut class) = (false, false, false);
        for ancestor in ancestors {
            // The youngest first: older ones can be of another process that had the number.
            let mut all_of_it: Vec<_> = self.of_ancestor(ancestor).collect();
            all_of_it.sort_by_key(|(key, _)| Reverse(key.born));
            let records = || all_of_it.iter().map(|(_, record)| *record);
            let inherited = || {
                let changes = records().flat_map(|record| record.ever.iter().rev());
                changes.filter(|change| change.may_be_inherited(newborn.born))
            };
            let repair = inherited()
                .map(|change| Repair::of(newborn, &change.applied, &change.saved, cpuset))
                .fold(Repair::default(), Repair::or_better)
                .or_counted(newborn, inherited().map(|change| (&change.applied, &change.saved)));
            let is_own = |is_it: &dyn Fn(&Saved) -> bool| records().any(|r| is_it(&r.saved));
            if !mask {
                mask = repair.mask.is_some()
                    || is_own(&|own| is_saved(&newborn.mask, &own.mask, cpuset));
                (all.mask, all.carried) = (repair.mask, repair.carried);
            }
            if !nice {
                nice = repair.nice.is_some() || is_own(&|own| own.nice == newborn.nice);
                all.nice = repair.nice;
            }
            if !class {
                class = repair.class.is_some() || is_own(&|own| own.class == newborn.class);
                all.class = repair.class;
            }
        }
        all
    }
}

impl ThreadRecord {
    /// What a known thread is given back, by what it has now.
    pub fn repairs(&self, now: &Present, cpuset: &CpuSet) -> Repairs {
        let Self { saved, now: current, .. } = self;
        let mut repairs = Repairs::default();

        let mut masks = current.iter().filter_map(|f| f.mask.as_ref()).peekable();
        if masks.peek().is_some() {
            if masks.any(|set| comes_from(&now.mask, set, &saved.mask, cpuset)) {
                repairs.repair.mask = Some(saved.mask.clone());
            } else if !is_saved(&now.mask, &saved.mask, cpuset) {
                repairs.foreign.push("affinity");
            }
        }
        let nices: Vec<i8> = current.iter().filter_map(|f| f.nice).collect();
        if let Some(last) = nices.last().filter(|_| now.nice != saved.nice) {
            let chosen = chosen_nice(saved.nice, Some(*last), now.nice);
            if nices.contains(&now.nice) {
                repairs.repair.nice = Some(saved.nice);
            } else if chosen != now.nice {
                repairs.repair.nice = Some(chosen);
            } else {
                repairs.foreign.push("nice value");
            }
        }
        if current.iter().any(|f| f.class.is_some()) && now.class != saved.class {
            if current.iter().any(|f| f.class == Some(now.class)) {
                repairs.repair.class = Some(saved.class);
            } else {
                repairs.foreign.push("class");
            }
        }
        repairs
    }

    /// Which of the settings that a thread has now are those that it had before us, or ours?
    pub fn explains(&self, now: &Present, cpuset: &CpuSet) -> Explained {
        let saved = &self.saved;
        let own_mask = is_saved(&now.mask, &saved.mask, cpuset);
        let (own_nice, own_class) = (now.nice == saved.nice, now.class == saved.class);
        let mut masks = self.now.iter().filter_map(|f| f.mask.as_ref());
        let our_mask = masks.any(|set| comes_from(&now.mask, set, &saved.mask, cpuset));
        let our_nice = self.now.iter().any(|f| f.nice == Some(now.nice));
        let our_class = self.now.iter().any(|f| f.class == Some(now.class));
        let ours = [(our_mask, own_mask), (our_nice, own_nice), (our_class, own_class)];
        Explained {
            mask: our_mask || (own_mask && self.may_have_now(|f| f.mask.is_none())),
            nice: our_nice || (own_nice && self.may_have_now(|f| f.nice.is_none())),
            class: our_class || (own_class && self.may_have_now(|f| f.class.is_none())),
            ours: ours.into_iter().filter(|(ours, own)| *ours && !own).count(),
        }
    }

    /// May something be true of what is applied now?
    fn may_have_now(&self, is_so: impl Fn(&AppliedSettings) -> bool) -> bool {
        self.now.is_empty() || self.now.iter().any(is_so)
    }
}

/// A process found on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub process: u32,
    pub born: u64,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
}

/// A process that may be an ancestor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub process: u32,
    /// When it was born, if it lives; else 0.
    pub born: u64,
}

/// The processes one of which is an ancestor: more than one where that is unknown.
pub(super) type Ancestor = Vec<Candidate>;

/// For each process found on the machine that descends from some in the journal: these ancestors, the
/// nearest first. A process in the journal is its own ancestor.
///
/// Descent follows from parents and, after them, by a session or process group that a process in
/// the journal created: an ancestor may have died, and its creator can be far from a child whose
/// parent is known. A group that was there before the manager began is the shell's own and shows
/// nothing.
pub(super) fn descendants(state: &JournalState, found: &[Found]) -> BTreeMap<u32, Vec<Ancestor>> {
    let by_number: BTreeMap<u32, Found> = found.iter().map(|f| (f.process, *f)).collect();
    // A process that was born after a thread in the journal is another one that
    // got the same number.
    let is_known = |process: u32| {
        let mut threads = state.of_process(process).map(|(key, _)| key.born).peekable();
        threads.peek().is_some()
            && by_number.get(&process).is_none_or(|f| threads.any(|born| f.born <= born))
    };
    let born = |process: u32| by_number.get(&process).map(|f| f.born);
    // Its first known thread can be younger than the process.
    let made_by_known = |number: u32| {
        let first = || state.of_process(number).map(|(key, _)| key.born).min();
        is_known(number) && born(number).or_else(first).is_some_and(|born| born > state.began)
    };
    let gone = state.gone(&by_number);
    // A parent is at least as old as its child, else the number was used again.
    let parent = |at: &Found| by_number.get(&at.parent).filter(|p| p.born <= at.born).copied();
    let ancestors = |of: Found| {
        let line = || std::iter::successors(Some(of), parent).take(found.len() + 1);
        let parents = || line().map(|at| at.process).filter(|process| is_known(*process));
        let unknown = line().filter(|at| !is_known(at.process));
        let creators =
            unknown.filter_map(|at| [at.group, at.session].into_iter().find(|&n| made_by_known(n)));
        let mut known: Vec<u32> = Vec::new();
        let is_orphan = parents().next().is_none();
        for process in parents().chain(creators) {
            if !known.contains(&process) {
                known.push(process);
            }
        }
        let one = |process| Candidate { process, born: born(process).unwrap_or_default() };
        // Any that is gone can have been the parent of an orphan.
        let others = if is_orphan { gone.as_slice() } else { &[] };
        let ancestor =
            |process| std::iter::once(one(process)).chain(others.iter().copied()).collect();
        known.into_iter().map(ancestor).collect::<Vec<Ancestor>>()
    };
    let all = found.iter().map(|f| (f.process, ancestors(*f)));
    all.filter(|(_, ancestors)| !ancestors.is_empty()).collect()
}

#[cfg(test)]
mod tests;
