//! What the kernel says about threads: where they may run, and how urgent they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::test_folder::wait_until;

/// The settings of a thread that symbiont may change, as the kernel reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The mask, as a list of CPUs.
    pub mask: String,
    pub nice: i32,
    /// The scheduling class, by its number.
    pub class: u32,
    /// The CPU it ran on last.
    pub cpu: String,
}

impl Settings {
    /// Mask, nice value and class.
    pub fn chosen(&self) -> (&str, i32, u32) {
        (&self.mask, self.nice, self.class)
    }
}

/// The calling thread's; what its children have unless a process changes it.
pub fn own() -> Settings {
    of_thread("/proc/thread-self").expect("this thread")
}

fn of_thread(folder: &str) -> Option<Settings> {
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    let stat: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Settings {
        mask: mask.trim().to_owned(),
        nice: stat.get(16)?.parse().ok()?,
        class: stat.get(38)?.parse().ok()?,
        cpu: (*stat.get(36)?).to_owned(),
    })
}

/// All threads of a process and its descendants.
pub fn of_tree(root: u32) -> BTreeMap<u32, Settings> {
    let threads = |process: u32| {
        let folder = format!("/proc/{process}/task");
        let entries = fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
        let threads = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        threads.map(|thread: u32| (thread, format!("{folder}/{thread}"))).collect::<Vec<_>>()
    };
    let tree = tree(root).into_iter().flat_map(threads);
    tree.filter_map(|(thread, folder)| Some((thread, of_thread(&folder)?))).collect()
}

/// A process and its descendants.
pub fn tree(root: u32) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = processes
        .filter_map(|process| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            Some((process, stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    let mut tree = BTreeSet::from([root]);
    loop {
        let before = tree.len();
        let more: Vec<u32> = parents.iter().filter(|p| tree.contains(&p.1)).map(|p| p.0).collect();
        tree.extend(more);
        if tree.len() == before {
            return tree;
        }
    }
}

/// Threads of a tree that are not as expected.
pub fn changed(root: u32, from: &Settings) -> BTreeMap<u32, Settings> {
    let mut threads = of_tree(root);
    threads.retain(|_, now| now.chosen() != from.chosen());
    threads
}

/// Waits until some thread of a tree was given another mask.
pub fn wait_for_change(root: u32, from: &Settings) {
    wait_until("a thread is placed", || of_tree(root).values().any(|now| now.mask != from.mask));
}
