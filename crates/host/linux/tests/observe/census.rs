//! An independent count of a program's threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use procfs::process::Process;

/// A living thread, by what identifies it in /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counted {
    /// Process number.
    pub process: u32,
    /// Thread number.
    pub thread: u32,
    /// When it was born, in clock ticks since boot.
    pub born: u64,
}

/// The living threads of these processes and of all their descendants whose
/// parents live, straight from /proc.
///
/// This is the audit of a `Watcher`: it shares no code with
/// it. Each thread that is counted before and after a read, and is the same,
/// must be in that read. It opens a file for each process of the machine and
/// is not meant for every quantum.
///
/// # Errors
/// When /proc cannot be listed.
pub fn census(proc: &Path, roots: &[u32]) -> Result<BTreeSet<Counted>, procfs::ProcError> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    let mut found = Vec::new();
    // Those that end while they are looked at are left out.
    for process in procfs::process::all_processes_with_root(proc)?.filter_map(Result::ok) {
        if u32::try_from(process.pid).is_ok_and(|number| roots.contains(&number)) {
            found.push(process);
        } else if let Ok(stat) = process.stat() {
            children.entry(stat.ppid).or_default().push(process);
        }
    }
    let mut counted = BTreeSet::new();
    while let Some(process) = found.pop() {
        found.extend(children.remove(&process.pid).unwrap_or_default());
        for task in process.tasks().into_iter().flatten().filter_map(Result::ok) {
            let Ok(stat) = task.stat() else { continue };
            let numbers = (u32::try_from(task.pid), u32::try_from(task.tid));
            if let ((Ok(process), Ok(thread)), false) = (numbers, matches!(stat.state, 'Z' | 'X')) {
                counted.insert(Counted { process, thread, born: stat.starttime });
            }
        }
    }
    Ok(counted)
}
