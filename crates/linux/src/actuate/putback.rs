//! Puts back what a [`Book`] says, on the machine as it is now.

use std::collections::BTreeMap;
use std::{fmt, fs};

use serde::Serialize;

use super::book::{Book, Found, Present, Record, descendants};
use super::cgroup::Cgroups;
use super::kernel::{self, ThreadError, ThreadKey};
use super::ledger::{Newborn, Repair};

/// Children can be born of parents that were not yet put back; each pass
/// finds the children of the one before.
const PASSES: usize = 8;

/// A thread that was not put back, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotRestored {
    /// Which thread.
    pub thread: ThreadKey,
    /// Why, in words for a user.
    pub why: String,
}

impl fmt::Display for NotRestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.thread, self.why)
    }
}

/// What became of everything that had to be put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// Threads that have their own settings again.
    pub restored: usize,
    /// Of these, children that had inherited ours.
    pub descendants: usize,
    /// Threads that had exited.
    pub gone: usize,
    /// Threads that somebody else changed since; theirs was left alone.
    pub left_alone: Vec<NotRestored>,
    /// Threads that could not be put back.
    pub failed: Vec<NotRestored>,
}

impl RestoreReport {
    /// Adds what another report says.
    pub fn add(&mut self, other: Self) {
        self.restored += other.restored;
        self.descendants += other.descendants;
        self.gone += other.gone;
        self.left_alone.extend(other.left_alone);
        self.failed.extend(other.failed);
    }
}

/// Puts back everything in the book, then looks for descendants.
pub(super) fn put_back(book: &Book, cgroups: &Cgroups) -> RestoreReport {
    let mut report = RestoreReport::default();
    for (key, record) in book.records.iter().filter(|(_, record)| !record.ever.is_empty()) {
        match put_back_one(book, *key, record, cgroups) {
            Ok(Put::Unchanged) => {}
            Ok(Put::Back) => report.restored += 1,
            Ok(Put::LeftAlone(why)) => {
                report.left_alone.push(NotRestored { thread: *key, why });
            }
            Err(ThreadError::Gone(_)) => report.gone += 1,
            Err(error) => {
                report.failed.push(NotRestored { thread: *key, why: error.to_string() });
            }
        }
    }
    if book.records.values().any(|record| !record.ever.is_empty()) {
        for _ in 0..PASSES {
            if !put_back_descendants(book, cgroups, &mut report) {
                break;
            }
        }
    }
    report
}

enum Put {
    Unchanged,
    Back,
    LeftAlone(String),
}

fn put_back_one(
    book: &Book,
    key: ThreadKey,
    record: &Record,
    cgroups: &Cgroups,
) -> Result<Put, ThreadError> {
    let now = present(key)?;
    let cpuset = cgroups.cpuset(key.process);
    let mut repairs = record.repairs(&now, &cpuset);
    if !repairs.foreign.is_empty() && key.thread == key.process {
        // Another thread of the process may have called exec and be the leader now.
        let others = book.of_process(key.process).filter(|(other, _)| **other != key);
        let gone = others.filter(|(other, _)| kernel::facts_of(**other).is_err());
        if let Some((_, other)) = gone.into_iter().find(|(_, r)| r.fits(&now, &cpuset)) {
            repairs = other.repairs(&now, &cpuset);
        }
    }
    let changed = !repairs.repair.is_nothing();
    carry_out(key, &repairs.repair, now.reset_on_fork, &cpuset)?;
    Ok(match (repairs.foreign.as_slice(), changed) {
        ([], true) => Put::Back,
        ([], false) => Put::Unchanged,
        (what, _) => {
            Put::LeftAlone(format!("its {} was changed by somebody else", what.join(" and ")))
        }
    })
}

/// One pass over the machine; true if a descendant was put back.
fn put_back_descendants(book: &Book, cgroups: &Cgroups, report: &mut RestoreReport) -> bool {
    let before = report.descendants;
    let found = all_processes();
    let mut cpusets = BTreeMap::new();
    for (process, ancestor) in descendants(book, &found) {
        let cpuset = cpusets.entry(process).or_insert_with(|| cgroups.cpuset(process));
        for key in threads_of(process) {
            if key.born < book.began || book.knows(&key) {
                continue;
            }
            let Ok(now) = present(key) else { continue };
            let newborn =
                Newborn { mask: now.mask, nice: now.nice, class: now.class, born: key.born };
            let repair = book.inherited(ancestor, &newborn, cpuset);
            if repair.is_nothing() {
                continue;
            }
            match carry_out(key, &repair, now.reset_on_fork, cpuset) {
                Ok(()) => report.descendants += 1,
                Err(ThreadError::Gone(_)) => {}
                Err(error) => {
                    let failure = NotRestored { thread: key, why: error.to_string() };
                    if !report.failed.contains(&failure) {
                        report.failed.push(failure);
                    }
                }
            }
        }
    }
    report.restored += report.descendants - before;
    report.descendants > before
}

/// What a thread has now.
pub(super) fn present(key: ThreadKey) -> Result<Present, ThreadError> {
    let mask = kernel::mask(key)?;
    let (class, reset_on_fork) = kernel::scheduler(key)?;
    // Last, so that what was read belongs to the thread whose birth is checked.
    let facts = kernel::facts_of(key)?;
    Ok(Present { parent: facts.parent, mask, nice: facts.nice, class, reset_on_fork })
}

/// Gives a thread what a repair says. The class comes first: a thread that
/// waits for an idle machine could wait long for the rest.
pub(super) fn carry_out(
    key: ThreadKey,
    repair: &Repair,
    reset_on_fork: bool,
    cpuset: &symbiont_topology::CpuSet,
) -> Result<(), ThreadError> {
    if repair.is_nothing() {
        return Ok(());
    }
    kernel::facts_of(key)?;
    if let Some(class) = repair.class {
        kernel::set_class(key, class, reset_on_fork)?;
    }
    if let Some(nice) = repair.nice {
        kernel::set_nice(key, nice)?;
    }
    if let Some(mask) = &repair.mask {
        kernel::set_mask(key, mask.to_write(cpuset))?;
    }
    Ok(())
}

fn numbers_in(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn all_processes() -> Vec<Found> {
    let facts = numbers_in("/proc").filter_map(|p| kernel::facts(p, p).ok().flatten());
    facts
        .map(|facts| Found {
            process: facts.key.process,
            born: facts.key.born,
            parent: facts.parent,
            group: facts.group,
            session: facts.session,
        })
        .collect()
}

fn threads_of(process: u32) -> Vec<ThreadKey> {
    let threads = numbers_in(&format!("/proc/{process}/task"));
    threads
        .filter_map(|thread| kernel::facts(process, thread).ok().flatten())
        .filter(|facts| !facts.zombie)
        .map(|facts| facts.key)
        .collect()
}
