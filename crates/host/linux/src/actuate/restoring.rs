//! Restores what a [`JournalState`] says, on the threads that the machine has now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use symbiont_topology::CpuSet;

use super::inheritance::{Newborn, Repair};
use super::journal_state::{Found, JournalState, ThreadRecord, descendants};
use super::kernel::Kernel;
use super::thread::Present;
use super::thread::{ThreadError, ThreadKey};
use super::trust::Trust;

/// Children can be born of parents that were not yet restored; each pass
/// finds the children of the one before.
const PASSES: usize = 8;

/// A thread that was not restored, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotRestored {
    /// The thread.
    pub thread: ThreadKey,
    /// Why, in words for a user.
    pub why: String,
}

impl fmt::Display for NotRestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.thread, self.why)
    }
}

/// What became of everything that had to be restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// Threads that have their own settings again.
    pub restored: usize,
    /// Of these, children that had inherited ours.
    pub descendants: usize,
    /// Threads that had exited.
    pub gone: usize,
    /// Threads that another process has changed since: its settings were left alone.
    pub left_alone: Vec<NotRestored>,
    /// Threads that could not be restored.
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

/// Restores everything in the journal, then looks for descendants.
pub(super) fn restore_threads(
    kernel: &dyn Kernel,
    state: &JournalState,
    trust: Trust,
) -> RestoreReport {
    let mut report = RestoreReport::default();
    for (key, record) in state.records.iter().filter(|(_, record)| !record.ever.is_empty()) {
        match restore_one(kernel, state, *key, record, trust) {
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
    for (key, own) in unchanged_leaders(kernel, state) {
        match restore_leader(kernel, state, key, own, trust) {
            Ok(back) => report.restored += usize::from(back),
            Err(ThreadError::Gone(_)) => {}
            Err(error) => {
                report.failed.push(NotRestored { thread: key, why: error.to_string() });
            }
        }
    }
    if state.records.values().any(|record| !record.ever.is_empty()) {
        for _ in 0..PASSES {
            if !restore_descendants(kernel, state, trust, &mut report) {
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

fn restore_one(
    kernel: &dyn Kernel,
    state: &JournalState,
    key: ThreadKey,
    record: &ThreadRecord,
    trust: Trust,
) -> Result<Put, ThreadError> {
    let now = kernel.present(key)?;
    let cpuset = kernel.cpuset(key.process);
    let caller = caller_in(kernel, state, key, Some(record), &now, &cpuset);
    let repairs = caller.unwrap_or(record).repairs(&now, &cpuset);
    let changed = !repairs.repair.is_nothing();
    if changed {
        trust.check(key, &now, &repairs.repair, &cpuset)?;
    }
    carry_out(kernel, key, &repairs.repair, &now, &cpuset)?;
    Ok(match (repairs.foreign.as_slice(), changed) {
        ([], true) => Put::Back,
        ([], false) => Put::Unchanged,
        (what, _) => Put::LeftAlone(format!(
            "its {} was changed by its program or another process",
            what.join(" and ")
        )),
    })
}

/// The leaders of changed threads that live and were not changed themselves, with what is known
/// of them.
fn unchanged_leaders<'a>(
    kernel: &dyn Kernel,
    state: &'a JournalState,
) -> Vec<(ThreadKey, Option<&'a ThreadRecord>)> {
    let changed = state.records.iter().filter(|(_, record)| !record.ever.is_empty());
    let processes: BTreeSet<u32> = changed.map(|(key, _)| key.process).collect();
    let leaders = processes.into_iter().filter_map(|p| kernel.facts(p, p).ok().flatten());
    leaders
        .map(|facts| (facts.key, state.records.get(&facts.key)))
        .filter(|(_, own)| own.is_none_or(|record| record.ever.is_empty()))
        .collect()
}

/// Undoes what an unchanged leader brought along, if another thread called exec and is the leader
/// now.
fn restore_leader(
    kernel: &dyn Kernel,
    state: &JournalState,
    key: ThreadKey,
    own: Option<&ThreadRecord>,
    trust: Trust,
) -> Result<bool, ThreadError> {
    let now = kernel.present(key)?;
    let cpuset = kernel.cpuset(key.process);
    let Some(caller) = caller_in(kernel, state, key, own, &now, &cpuset) else { return Ok(false) };
    let repair = caller.repairs(&now, &cpuset).repair;
    if !repair.is_nothing() {
        trust.check(key, &now, &repair, &cpuset)?;
    }
    carry_out(kernel, key, &repair, &now, &cpuset)?;
    Ok(!repair.is_nothing())
}

/// The thread of its process that a leader was before an exec, if it was another one.
fn caller_in<'a>(
    kernel: &dyn Kernel,
    state: &'a JournalState,
    leader: ThreadKey,
    own: Option<&ThreadRecord>,
    now: &Present,
    cpuset: &CpuSet,
) -> Option<&'a ThreadRecord> {
    if leader.thread != leader.process {
        return None;
    }
    let others = state
        .of_process(leader.process)
        .filter(|(key, record)| **key != leader && key.born >= leader.born && record.may_lead);
    caller(kernel, own, others, now, cpuset).map(|(_, record)| record)
}

/// The record of the thread whose exec explains best what a leader has now, if it carries
/// something of ours and explains more than the leader's `own` record does. Only threads that are
/// gone can have called it.
pub(super) fn caller<'a>(
    kernel: &dyn Kernel,
    own: Option<&ThreadRecord>,
    others: impl Iterator<Item = (&'a ThreadKey, &'a ThreadRecord)>,
    now: &Present,
    cpuset: &CpuSet,
) -> Option<(&'a ThreadKey, &'a ThreadRecord)> {
    let own = own.map_or(0, |record| record.explains(now, cpuset).weight());
    others
        .map(|(key, record)| (record.explains(now, cpuset), key, record))
        .filter(|(explained, ..)| explained.ours > 0 && explained.weight() > own)
        .filter(|(_, key, _)| kernel.facts_of(**key).is_err())
        .min_by_key(|(explained, ..)| Reverse(explained.weight()))
        .map(|(_, key, record)| (key, record))
}

/// One pass over the machine; true if a descendant was restored.
fn restore_descendants(
    kernel: &dyn Kernel,
    state: &JournalState,
    trust: Trust,
    report: &mut RestoreReport,
) -> bool {
    let before = report.descendants;
    let found = all_processes(kernel);
    let mut cpusets = BTreeMap::new();
    for (process, ancestors) in descendants(state, &found) {
        let cpuset = cpusets.entry(process).or_insert_with(|| kernel.cpuset(process));
        for key in threads_of(kernel, process) {
            if !state.may_carry(&key) {
                continue;
            }
            let Ok(now) = kernel.present(key) else { continue };
            let repair = state.inherited(&ancestors, &Newborn::new(key, &now), cpuset);
            if repair.is_nothing() {
                continue;
            }
            let done = trust
                .check(key, &now, &repair, cpuset)
                .and_then(|()| carry_out(kernel, key, &repair, &now, cpuset));
            match done {
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

/// Gives a thread what a repair says. The class comes first: a thread that
/// waits for an idle machine could wait long for the rest.
pub(super) fn carry_out(
    kernel: &dyn Kernel,
    key: ThreadKey,
    repair: &Repair,
    now: &Present,
    cpuset: &CpuSet,
) -> Result<(), ThreadError> {
    if repair.is_nothing() {
        return Ok(());
    }
    kernel.facts_of(key)?;
    if let Some(class) = repair.class {
        kernel.set_class(key, class, now.reset_on_fork)?;
    }
    if let Some(nice) = repair.nice {
        kernel.set_nice(key, nice)?;
    }
    if let Some(mask) = &repair.mask {
        kernel.set_mask(key, mask.to_write(cpuset))?;
    }
    check_after(kernel, key, |other| {
        if repair.class.is_some() {
            kernel.set_class(other, now.class, now.reset_on_fork)?;
        }
        if repair.nice.is_some() {
            kernel.set_nice(other, now.nice)?;
        }
        if repair.mask.is_some() {
            kernel.set_mask(other, Some(&now.mask))?;
        }
        Ok(())
    })
}

/// Is it still the same thread after the act? If it went away under it and
/// another one got its number, and so perhaps the change, that one gets back
/// what was there before.
pub(super) fn check_after(
    kernel: &dyn Kernel,
    key: ThreadKey,
    back: impl Fn(ThreadKey) -> Result<(), ThreadError>,
) -> Result<(), ThreadError> {
    let Err(error) = kernel.facts_of(key) else { return Ok(()) };
    if let (ThreadError::Gone(_), Ok(Some(other))) = (&error, kernel.facts(key.process, key.thread))
    {
        // It may be gone as well, and then nothing is left to do.
        let _ = back(other.key);
    }
    Err(error)
}

fn all_processes(kernel: &dyn Kernel) -> Vec<Found> {
    let facts = kernel.processes().into_iter().filter_map(|p| kernel.facts(p, p).ok().flatten());
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

fn threads_of(kernel: &dyn Kernel, process: u32) -> Vec<ThreadKey> {
    let threads = kernel.threads(process).into_iter();
    threads
        .filter_map(|thread| kernel.facts(process, thread).ok().flatten())
        .filter(|facts| !facts.zombie)
        .map(|facts| facts.key)
        .collect()
}
