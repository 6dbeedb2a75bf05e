//! Finds processes and threads by listing /proc.
//!
//! # Problem
//! Where the kernel does not report births, they have to be looked for in each quantum; and lost reports have to
//! be made good. To open the files of all processes of a machine costs some 10 µs each.
//!
//! # Approach
//! A complete scan opens the `stat` of each process. The scan of a quantum opens only those of numbers that it
//! has not judged yet, since descent is settled at birth. Every [`FRESH_EVERY`] scans all processes are
//! judged anew, because a number may pass to another process between two of them. New threads are looked for only
//! in processes whose number of threads has changed.
//!
//! A process that is enrolled is looked at with its descendants alone ([`Proc::family`]), by the lists of
//! children that the kernel has for each thread: with a complete scan for each, 500 programs among 5,000
//! processes took half a minute. Such a list leaves out what is moved while it is read, so that two equal
//! ones in a row count; else, and where there are no such lists, a complete scan is made.
//!
//! # Properties
//! - A family is what a complete scan finds of it (`a_family_is_what_a_complete_scan_finds`).

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir, openat};
use rustix::io::Errno;

use super::seen::Seen;
use super::stat::{Stat, number, parse_stat};

/// Scans after which all processes are judged anew.
const FRESH_EVERY: u32 = 16;
/// How often a family is read, until two times in a row it is the same.
const MOST_READS: u32 = 5;

/// A mounted /proc, or a tree of files like it.
#[derive(Debug)]
pub(crate) struct Proc {
    root: OwnedFd,
}

impl Proc {
    pub fn open(root: &std::path::Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::open(root, flags, Mode::empty())? })
    }

    /// Opens a file below the root.
    pub fn file(&self, path: &str) -> Result<OwnedFd, Errno> {
        openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Do its numbers mean the processes that they mean to this one?
    pub fn is_of_own_namespace(&self) -> bool {
        let status = self.file("self/status").map(File::from);
        let text =
            status.ok().and_then(|file| std::io::read_to_string(file).ok()).unwrap_or_default();
        // The reader's number in the folder's namespace and in each one below it, down to its own.
        let numbers = text.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.is_some_and(|numbers| numbers.trim() == std::process::id().to_string())
    }

    /// The `stat` of a process; none if it is gone.
    pub fn stat(&self, process: u32) -> Option<Stat> {
        let file = self.file(&format!("{process}/stat")).ok()?;
        read_stat(file.as_fd()).ok()
    }

    /// The numbers of all processes.
    pub fn numbers(&self) -> Result<BTreeSet<u32>, Errno> {
        let mut numbers = BTreeSet::new();
        self.list(".", |number| {
            numbers.insert(number);
        })?;
        Ok(numbers)
    }

    /// All living processes.
    pub fn processes(&self) -> Result<Vec<Seen>, Errno> {
        let numbers = self.numbers()?;
        Ok(numbers.into_iter().filter_map(|process| self.see(process)).collect())
    }

    /// A process with its descendants, possibly among others; without it if it is gone.
    pub fn family(&self, root: u32) -> Result<Vec<Seen>, Errno> {
        let mut before = None;
        for _ in 0..MOST_READS {
            let Some(now) = self.descendants(root) else { break };
            if before.as_ref() == Some(&now) {
                return Ok(now);
            }
            before = Some(now);
        }
        self.processes()
    }

    /// A process with its descendants by the lists of children; none where there are no such lists.
    fn descendants(&self, root: u32) -> Option<Vec<Seen>> {
        let mut family: Vec<Seen> = self.see(root).into_iter().collect();
        let mut known = BTreeSet::from([root]);
        let mut at = 0;
        while let Some(parent) = family.get(at).map(|seen| seen.process) {
            for thread in self.threads(parent) {
                for child in self.children(parent, thread)? {
                    let seen = self.see(child).filter(|seen| seen.parent == parent);
                    family.extend(seen.filter(|_| known.insert(child)));
                }
            }
            at += 1;
        }
        Some(family)
    }

    /// The processes that a thread made and that it is still the parent of; none where the kernel lists them nowhere.
    fn children(&self, process: u32, thread: u32) -> Option<Vec<u32>> {
        let path = |file: &str| format!("{process}/task/{thread}/{file}");
        let mut text = String::new();
        let listed = self.file(&path("children"));
        match listed.map(|file| File::from(file).read_to_string(&mut text)) {
            Ok(Ok(_)) => {
                Some(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
            }
            // The thread may be gone.
            _ => self.file(&path("stat")).is_err().then(Vec::new),
        }
    }

    /// The threads of a process; none if it is gone.
    pub fn threads(&self, process: u32) -> Vec<u32> {
        let mut threads = Vec::new();
        match self.list(&format!("{process}/task"), |thread| threads.push(thread)) {
            Ok(()) => threads,
            Err(_) => Vec::new(),
        }
    }

    fn see(&self, process: u32) -> Option<Seen> {
        let stat = self.stat(process).filter(|stat| !stat.process_is_dead())?;
        Some(Seen {
            process,
            parent: stat.parent,
            session: stat.session,
            born: stat.born,
            stack: stat.stack,
        })
    }

    fn list(&self, path: &str, mut each: impl FnMut(u32)) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.root, path, flags, Mode::empty())?;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
        let mut entries = RawDir::new(directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = number(entry.file_name().to_bytes());
            if let Some(number) = name.and_then(|name| u32::try_from(name).ok()) {
                each(number);
            }
        }
        Ok(())
    }
}

/// Reads and parses an open `stat` file. ESRCH: the thread is gone.
pub(crate) fn read_stat(file: BorrowedFd<'_>) -> Result<Stat, Errno> {
    let mut buffer = [0; 1024];
    let length = rustix::io::pread(file, &mut buffer, 0)?;
    buffer.get(..length).and_then(parse_stat).ok_or(Errno::ILSEQ)
}

/// Finds new processes, quantum for quantum.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    others: HashSet<u32>,
    scans: u32,
}

/// What a scan found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The numbers of all processes.
    pub listed: BTreeSet<u32>,
    /// Processes that were not judged before.
    pub unknown: Vec<Seen>,
}

impl Scanner {
    /// Lists all processes and looks at the unknown ones. All those are
    /// expected to be others' unless the next call says that they are enrolled.
    pub fn scan(&mut self, proc: &Proc, enrolled: impl Fn(u32) -> bool) -> Result<Found, Errno> {
        if self.scans % FRESH_EVERY == 0 {
            self.others.clear();
        }
        self.scans = self.scans.wrapping_add(1);
        let listed = proc.numbers()?;
        self.others.retain(|other| listed.contains(other) && !enrolled(*other));
        let mut unknown = Vec::new();
        for &process in &listed {
            if !enrolled(process) && self.others.insert(process) {
                unknown.extend(proc.see(process));
            }
        }
        Ok(Found { listed, unknown })
    }

    /// Judges all processes anew at the next scan.
    pub fn forget(&mut self) {
        self.others.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files like /proc; each process: number, parent, state.
    fn fake(processes: &[(u32, u32, char)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (process, parent, state) in processes {
            let directory = root.path().join(process.to_string());
            std::fs::create_dir_all(directory.join("task").join(process.to_string())).unwrap();
            let line = format!(
                "{process} (a b) {state} {parent} 1 1 0 0 0 0 0 0 0 5 6 0 0 20 0 1 0 77 0 0 0 0 \
                 0 9 0 0 0 0 0 0 0 0 0 0 1 0 0\n"
            );
            std::fs::write(directory.join("stat"), &line).unwrap();
            std::fs::write(directory.join(format!("task/{process}/stat")), line).unwrap();
        }
        std::fs::create_dir(root.path().join("sys")).unwrap();
        root
    }

    #[test]
    fn living_processes_are_seen_and_dead_ones_not() {
        let root = fake(&[(10, 1, 'S'), (11, 10, 'R'), (12, 10, 'Z')]);
        std::fs::create_dir(root.path().join("13")).unwrap();
        let seen = Proc::open(root.path()).unwrap().processes().unwrap();
        let numbers: Vec<_> = seen.iter().map(|seen| (seen.process, seen.parent)).collect();
        assert_eq!(numbers, [(10, 1), (11, 10)]);
        assert_eq!((seen[0].born, seen[0].stack), (77, 9));
    }

    #[test]
    fn a_family_is_what_a_complete_scan_finds() {
        let proc = Proc::open(std::path::Path::new("/proc")).unwrap();
        // A shell whose children have children, one of them in the background.
        let script = "sh -c 'sleep 100 & sleep 100' & sh -c 'sleep 100; true'";
        let mut shell = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let by_scan = |root: u32| {
            let seen = proc.processes().unwrap();
            let mut family = BTreeSet::from([root]);
            loop {
                let is_new =
                    |of: &&Seen| family.contains(&of.parent) && !family.contains(&of.process);
                let Some(more) = seen.iter().find(is_new) else { return family };
                family.insert(more.process);
            }
        };
        let begin = std::time::Instant::now();
        while by_scan(shell.id()).len() < 6 && begin.elapsed() < std::time::Duration::from_secs(60)
        {
            std::thread::yield_now();
        }
        let scanned = by_scan(shell.id());
        let family = proc.family(shell.id()).unwrap();
        let listed: BTreeSet<u32> = family.iter().map(|seen| seen.process).collect();
        for process in &scanned {
            let _ = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
        }
        shell.wait().unwrap();
        assert!(scanned.len() >= 6, "{scanned:?}");
        // Where the kernel lists no children there are others, too.
        assert!(listed.is_superset(&scanned), "{listed:?}, not {scanned:?}");
        if proc.children(std::process::id(), std::process::id()).is_some() {
            assert_eq!((&listed, family[0].process), (&scanned, shell.id()));
        }
        assert!(proc.family(shell.id()).unwrap().iter().all(|seen| seen.process != shell.id()));
    }

    #[test]
    fn where_no_children_are_listed_all_are_looked_at() {
        let root = fake(&[(10, 1, 'S'), (11, 10, 'R'), (20, 1, 'S')]);
        let proc = Proc::open(root.path()).unwrap();
        assert_eq!(proc.family(10).unwrap().len(), 3);
        for (process, children) in [(10, "11 "), (11, ""), (20, "")] {
            std::fs::write(
                root.path().join(format!("{process}/task/{process}/children")),
                children,
            )
            .unwrap();
        }
        let numbers = |root| -> Vec<u32> {
            proc.family(root).unwrap().iter().map(|seen| seen.process).collect()
        };
        assert_eq!((numbers(10), numbers(20), numbers(30)), (vec![10, 11], vec![20], vec![]));
    }

    #[test]
    fn a_scan_opens_each_stranger_once() {
        let root = fake(&[(10, 1, 'S'), (11, 10, 'R')]);
        let proc = Proc::open(root.path()).unwrap();
        let mut scanner = Scanner::default();
        let mut unknown = || scanner.scan(&proc, |process| process == 10).unwrap().unknown.len();
        assert_eq!((unknown(), unknown()), (1, 0));
    }

    #[test]
    fn a_number_that_passed_on_is_judged_anew() {
        let root = fake(&[(10, 1, 'S')]);
        let proc = Proc::open(root.path()).unwrap();
        let mut scanner = Scanner::default();
        let found = (0..=FRESH_EVERY)
            .map(|_| scanner.scan(&proc, |_| false).unwrap().unknown.len())
            .sum::<usize>();
        assert_eq!(found, 2);
    }

    #[test]
    fn threads_of_a_process_that_is_gone_are_none() {
        let root = fake(&[(10, 1, 'S')]);
        let proc = Proc::open(root.path()).unwrap();
        assert_eq!(proc.threads(10), [10]);
        assert!(proc.threads(11).is_empty());
    }
}
