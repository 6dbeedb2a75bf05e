//! Scans for processes that rules want managed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use procfs::process::Process;

use super::{Facts, Group, Needs, Rules, Verdict};
use crate::surroundings::Surroundings;

/// Scans at a new process before it is taken to have become what it will be: a shell's child is the
/// shell itself until it executes its program.
const FIRST_SCANS: u32 = 3;
/// Scans after which an older process is judged again: it may have executed another program.
const LATER: u32 = 16;

/// The processes of this machine, as far as they were judged.
#[derive(Debug, Default)]
pub struct Finder {
    /// How often each was judged.
    seen: BTreeMap<u32, u32>,
    /// The daemon and its ancestors: managing these means managing the daemon.
    own: BTreeSet<u32>,
    scans: u32,
}

/// A process that is to be managed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub process: u32,
    /// The name of its program, for people.
    pub name: String,
    /// Processes with the same group are one program.
    pub group: Option<String>,
    /// The verdict of the rules.
    pub verdict: Verdict,
}

/// The result of a scan of all processes.
#[derive(Debug, Default)]
pub struct Scan {
    /// The processes to be managed, by number: parents come before most of their children.
    pub found: Vec<Found>,
    /// What matches the daemon or an ancestor of it, for people.
    pub own: Vec<String>,
    /// All processes.
    pub alive: BTreeSet<u32>,
}

impl Finder {
    /// For a daemon that is this process.
    #[must_use]
    pub fn new() -> Self {
        let mut own = BTreeSet::new();
        let mut next = Some(std::process::id());
        while let Some(process) = next.filter(|process| *process > 0 && own.insert(*process)) {
            let stat =
                i32::try_from(process).ok().and_then(|pid| Process::new(pid).ok()?.stat().ok());
            next = stat.and_then(|stat| u32::try_from(stat.ppid).ok());
        }
        Self { own, ..Self::default() }
    }

    /// Judges all processes anew with the next scan.
    pub fn start_over(&mut self) {
        self.seen.clear();
    }

    /// Judges this process with the next scan.
    pub fn judge_again(&mut self, process: u32) {
        self.seen.remove(&process);
    }

    /// Judges the processes that are new, and from time to time the others; those that are managed
    /// are not looked at.
    pub fn scan(
        &mut self,
        rules: &Rules,
        around: &mut Surroundings,
        is_managed: impl Fn(u32) -> bool,
    ) -> Scan {
        let mut scan = Scan::default();
        self.scans = self.scans.wrapping_add(1);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        scan.alive = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        self.seen.retain(|process, _| scan.alive.contains(process));
        let needs = rules.needs();
        for &process in &scan.alive {
            let scans = self.seen.entry(process).or_default();
            let is_due = *scans < FIRST_SCANS || (process ^ self.scans) % LATER == 0;
            if !is_due || is_managed(process) {
                continue;
            }
            *scans = scans.saturating_add(1);
            let Some((name, group, verdict)) = judge(rules, needs, around, process) else {
                continue;
            };
            if self.own.contains(&process) {
                scan.own.push(verdict.by);
            } else {
                scan.found.push(Found { process, name, group, verdict });
            }
        }
        scan
    }
}

fn judge(
    rules: &Rules,
    needs: Needs,
    around: &mut Surroundings,
    process: u32,
) -> Option<(String, Option<String>, Verdict)> {
    let process = Process::new(i32::try_from(process).ok()?).ok()?;
    let facts = Facts::read(&process, needs, around)?;
    let verdict = rules.decide(&facts)?;
    let executable = facts.executable.as_deref().and_then(|path| path.rsplit('/').next());
    let (name, group) = match (verdict.group, facts.container) {
        (Group::Container, Some(of)) => (Some(of.display()), Some(of.cgroup.clone())),
        (Group::None, _) => (None, None),
        (Group::Cgroup | Group::Container, _) => (facts.unit, Some(facts.cgroup)),
    };
    let name = name.or_else(|| executable.map(str::to_owned)).unwrap_or_default();
    Some((name, group, verdict))
}
