//! An account of living processes, independent of `symbiont`: /proc, listed again and
//! again while a program runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A living thread: process, thread, when it was born in clock ticks.
pub type Thread = (u32, u32, u64);

/// When a thread was surely alive, on the clock of samples, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// It was born before this.
    pub from: u64,
    /// It ended after this.
    pub until: u64,
    /// Its process was a child of a living descendant of the root, or the root
    /// itself, each time that it was seen: no orphan.
    pub in_line: bool,
}

/// Follows a tree of processes.
#[derive(Debug, Default)]
pub struct Witness {
    pub seen: BTreeMap<Thread, Seen>,
    pub snapshots: usize,
    /// Processes known to descend from the root, with their births.
    known: BTreeSet<(u32, u64)>,
}

/// What a stat file says.
struct Stat {
    alive: bool,
    parent: u32,
    born: u64,
}

impl Witness {
    /// Takes snapshots of a root's tree until `child` has ended.
    pub fn watch(root: u32, child: &mut Child) -> (Self, ExitStatus) {
        let mut witness = Self::default();
        loop {
            witness.snapshot(root);
            if let Some(status) = child.try_wait().unwrap() {
                return (witness, status);
            }
            // Leaves some CPU time to the programs.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn snapshot(&mut self, root: u32) {
        let before = now();
        let processes: BTreeMap<u32, Stat> = numbers("/proc")
            .filter_map(|process| Some((process, stat(&format!("/proc/{process}/stat"))?)))
            .collect();
        let in_line = descendants(root, &processes);
        self.known.extend(in_line.iter().filter_map(|p| Some((*p, processes.get(p)?.born))));
        let mut found = Vec::new();
        for (process, seen) in &processes {
            if !self.known.contains(&(*process, seen.born)) {
                continue;
            }
            let folder = format!("/proc/{process}/task");
            for thread in numbers(&folder) {
                if let Some(stat) = stat(&format!("{folder}/{thread}/stat")).filter(|s| s.alive) {
                    found.push(((*process, thread, stat.born), in_line.contains(process)));
                }
            }
        }
        let after = now();
        for (thread, in_line) in found {
            let first = Seen { from: after, until: before, in_line: true };
            let seen = self.seen.entry(thread).or_insert(first);
            seen.until = before;
            seen.in_line &= in_line;
        }
        self.snapshots += 1;
    }
}

fn descendants(root: u32, processes: &BTreeMap<u32, Stat>) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (process, stat) in processes {
        children.entry(stat.parent).or_default().push(*process);
    }
    let mut tree = BTreeSet::new();
    let mut next = vec![root];
    while let Some(process) = next.pop() {
        tree.insert(process);
        next.extend(children.get(&process).into_iter().flatten());
    }
    tree
}

/// The numbers among a folder's names; none if it is gone.
fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn stat(path: &str) -> Option<Stat> {
    let text = fs::read_to_string(path).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some(Stat {
        alive: !["Z", "X", "x"].contains(fields.first()?),
        parent: fields.get(1)?.parse().ok()?,
        born: fields.get(19)?.parse().ok()?,
    })
}

/// On the clock of samples.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}
