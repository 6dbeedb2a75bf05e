//! Looks for processes that rules want managed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use procfs::process::Process;

use super::{Facts, Rules, Verdict};

/// Looks at a new process before it is taken to have become what it will be: a shell's child is the
/// shell itself until it executes its program.
const FIRST_LOOKS: u32 = 3;
/// Looks after which an older process is judged again: it may have executed another program.
const LATER: u32 = 16;

/// What is known of the processes of this machine.
#[derive(Debug, Default)]
pub struct Finder {
    /// How often each was judged.
    looks: BTreeMap<u32, u32>,
    /// The daemon and its ancestors: who manages these manages the daemon.
    own: BTreeSet<u32>,
    users: HashMap<u32, Option<String>>,
    scans: u32,
}

/// A process that is to be managed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub process: u32,
    /// What people call its program.
    pub name: String,
    /// Processes with the same group are one program.
    pub group: Option<String>,
    /// What the rules say.
    pub verdict: Verdict,
}

/// What a look at all processes gave.
#[derive(Debug, Default)]
pub struct Look {
    /// What is to be managed, by number: parents come before most of their children.
    pub found: Vec<Found>,
    /// Rules that match the daemon or an ancestor of it, by their files.
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

    /// Judges all processes anew with the next look.
    pub fn start_over(&mut self) {
        self.looks.clear();
    }

    /// Judges the processes that are new, and from time to time the others; those that are managed
    /// are not looked at.
    pub fn look(&mut self, rules: &Rules, is_managed: impl Fn(u32) -> bool) -> Look {
        let mut look = Look::default();
        self.scans = self.scans.wrapping_add(1);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        look.alive = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        self.looks.retain(|process, _| look.alive.contains(process));
        for &process in &look.alive {
            let looks = self.looks.entry(process).or_default();
            let is_due = *looks < FIRST_LOOKS || (process ^ self.scans) % LATER == 0;
            if !is_due || is_managed(process) {
                continue;
            }
            *looks = looks.saturating_add(1);
            let Some((name, group, verdict)) = self.judge(rules, process) else { continue };
            if self.own.contains(&process) {
                look.own.push(verdict.rule);
            } else {
                look.found.push(Found { process, name, group, verdict });
            }
        }
        look
    }

    fn judge(&mut self, rules: &Rules, process: u32) -> Option<(String, Option<String>, Verdict)> {
        let users = &mut self.users;
        let mut name_of = |uid| users.entry(uid).or_insert_with(|| name_of_user(uid)).clone();
        let facts = Facts::read(&Process::new(i32::try_from(process).ok()?).ok()?, &mut name_of)?;
        let verdict = rules.decide(&facts)?;
        let executable = facts.executable.as_deref().and_then(|path| path.rsplit('/').next());
        let group = verdict.is_group.then_some(facts.cgroup);
        let unit = facts.unit.filter(|_| verdict.is_group);
        let name = unit.or_else(|| executable.map(str::to_owned)).unwrap_or_default();
        Some((name, group, verdict))
    }
}

fn name_of_user(uid: u32) -> Option<String> {
    Some(uzers::get_user_by_uid(uid)?.name().to_string_lossy().into_owned())
}
