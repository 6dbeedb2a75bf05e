//! What must be put back: the ledger of a living manager or the journal of a
//! dead one, as one plain value. Here is decided, without any I/O, what a
//! thread found on the machine shall get.

use std::collections::BTreeMap;

use symbiont_topology::CpuSet;

use super::kernel::{Class, ThreadKey};
use super::ledger::{Newborn, Repair};
use super::settings::{InForce, Saved, comes_from, is_saved};

/// One thread that was changed, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// What it had before.
    pub saved: Saved,
    /// What may be in force on it now: one value, or two where a crash left
    /// open whether the second arrived.
    pub now: Vec<InForce>,
    /// What was in force on it lately, for the children of that time.
    pub ever: Vec<InForce>,
}

/// All threads of one manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Book {
    /// When the manager began, in clock ticks since boot.
    pub began: u64,
    /// Its threads.
    pub records: BTreeMap<ThreadKey, Record>,
}

/// What a thread has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    pub parent: u32,
    pub mask: CpuSet,
    pub nice: i8,
    pub class: Class,
    pub reset_on_fork: bool,
}

/// What shall be done to one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    pub repair: Repair,
    /// What somebody else changed since: left alone.
    pub foreign: Vec<&'static str>,
}

impl Book {
    /// An empty book.
    #[must_use]
    pub fn new(began: u64) -> Self {
        Self { began, records: BTreeMap::new() }
    }

    /// Is the thread's earlier state known?
    #[must_use]
    pub fn knows(&self, key: &ThreadKey) -> bool {
        self.records.contains_key(key)
    }

    /// Saves what a thread had, or has by somebody else's wish.
    pub fn save(&mut self, key: ThreadKey, saved: Saved) {
        let (now, ever) = match self.records.remove(&key) {
            Some(record) => (record.now, record.ever),
            None => Default::default(),
        };
        self.records.insert(key, Record { saved, now, ever });
    }

    /// Notes what comes into force on a thread that was saved before.
    pub fn set(&mut self, key: &ThreadKey, in_force: InForce) {
        if let Some(record) = self.records.get_mut(key) {
            let before = record.now.pop().unwrap_or_default();
            record.now = vec![before, in_force.clone()];
            record.ever.push(in_force);
        }
    }

    /// The known threads of a process.
    pub fn of_process(&self, process: u32) -> impl Iterator<Item = (&ThreadKey, &Record)> {
        self.records.range(ThreadKey::all_of(process))
    }

    /// What a thread that was born after the manager began carries of what
    /// was in force on the threads of its ancestor process.
    pub fn inherited(&self, ancestor: u32, newborn: &Newborn, cpuset: &CpuSet) -> Repair {
        if newborn.born < self.began {
            return Repair::default();
        }
        self.of_process(ancestor)
            .flat_map(|(_, record)| record.ever.iter().map(move |f| (f, &record.saved)))
            .map(|(in_force, saved)| Repair::of(newborn, in_force, saved, cpuset))
            .fold(Repair::default(), Repair::or_better)
    }
}

impl Record {
    /// What a known thread shall get back, given what it has now.
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
        let mut nices = current.iter().filter_map(|f| f.nice).peekable();
        if nices.peek().is_some() && now.nice != saved.nice {
            if nices.any(|nice| nice == now.nice) {
                repairs.repair.nice = Some(saved.nice);
            } else {
                repairs.foreign.push("nice value");
            }
        }
        if current.iter().any(|f| f.waiting) && now.class != saved.class {
            if now.class == Class::Idle {
                repairs.repair.class = Some(saved.class);
            } else {
                repairs.foreign.push("class");
            }
        }
        repairs
    }

    /// Does the thread's mask look as ours or as it was before us? Tells,
    /// after an exec, which thread's place the leader took.
    pub fn fits(&self, now: &Present, cpuset: &CpuSet) -> bool {
        self.repairs(now, cpuset).foreign.is_empty()
            && (self.now.iter().any(|f| f.mask.is_some())
                || is_saved(&now.mask, &self.saved.mask, cpuset))
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

/// For each process found on the machine that descends from one in the book:
/// the nearest ancestor there. A process in the book is its own ancestor.
///
/// Descent is told by parents and, where an ancestor died, by a session or
/// process group that a process in the book created. A group that was there
/// before the manager began is the shell's own and tells nothing.
pub(super) fn descendants(book: &Book, found: &[Found]) -> BTreeMap<u32, u32> {
    let by_number: BTreeMap<u32, Found> = found.iter().map(|f| (f.process, *f)).collect();
    // A process that was born after a thread in the book is another one that
    // got the same number.
    let is_known = |process: u32| {
        let mut threads = book.of_process(process).map(|(key, _)| key.born).peekable();
        threads.peek().is_some()
            && by_number.get(&process).is_none_or(|f| threads.any(|born| f.born <= born))
    };
    let made_by_known = |number: u32| {
        is_known(number) && book.of_process(number).any(|(key, _)| key.born > book.began)
    };
    let ancestor = |mut at: Found| {
        for _ in 0..=found.len() {
            if is_known(at.process) {
                return Some(at.process);
            }
            if let Some(number) = [at.group, at.session].into_iter().find(|&n| made_by_known(n)) {
                return Some(number);
            }
            // A parent is at least as old as its child, else the number was used again.
            at = *by_number.get(&at.parent).filter(|parent| parent.born <= at.born)?;
        }
        None
    };
    found.iter().filter_map(|f| Some((f.process, ancestor(*f)?))).collect()
}

#[cfg(test)]
mod tests;
