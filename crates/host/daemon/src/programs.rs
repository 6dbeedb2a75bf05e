//! The programs that are managed, with the users of each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use symbiont_machine::{Class, ProgramId, Sample};
use symbiont_wire::Failure;

use crate::access::ROOT;
use crate::process::owner_of;
use crate::quota::{self, Quota};
use crate::{OwnedProcess, Owner, Peer};

/// A program that is managed.
#[derive(Debug)]
pub struct ManagedProgram {
    /// Its name, for people.
    pub name: String,
    /// Its purpose.
    pub class: Class,
    /// Was that stated for it, or by a rule?
    pub is_class_stated: bool,
    /// The user whose processes all of them are, which may see and detach it; root's where they are
    /// several users'.
    pub owner: u32,
    /// The user that had it managed. Root's programs may run as any user.
    pub enrolled_by: u32,
    /// Its first processes.
    pub roots: Vec<OwnedProcess>,
    /// Since when it is managed.
    pub since: Instant,
    /// Is it managed as a rule wants it, and no user asked?
    pub is_ruled: bool,
    /// Are daemons that it leaves behind managed to their end?
    pub linger: bool,
    /// Its job, as the job manager numbers it.
    pub job: Option<u64>,
    /// What it is known by from one run to the next; none: its name.
    pub identity: Option<String>,
    /// Are its first processes held back as root, until they execute the program as its owner?
    pub is_held_back: bool,
}

/// All programs.
#[derive(Debug)]
pub struct Programs {
    managed: BTreeMap<ProgramId, ManagedProgram>,
    quota: Quota,
    /// Processes whose owner was checked, with the count of execs at that time.
    checked: BTreeMap<u32, u32>,
}

impl Programs {
    /// None yet.
    pub fn new() -> Self {
        let quota = Quota::new("programs", quota::PROGRAMS);
        Self { managed: BTreeMap::new(), quota, checked: BTreeMap::new() }
    }

    /// Takes a place for a program of this peer.
    ///
    /// # Errors
    /// When its user has too many programs or threads.
    pub fn reserve(&mut self, peer: Peer, sample: Option<&Sample>) -> Result<(), Failure> {
        let threads = sample.map_or(0, |sample| {
            let theirs = |id: &ProgramId| self.get(*id).is_some_and(|p| p.enrolled_by == peer.uid);
            sample.threads.iter().filter(|thread| theirs(&thread.program)).count()
        });
        if !peer.is_root() && threads as u64 >= quota::THREADS {
            let what = "threads".to_owned();
            return Err(Failure::QuotaExceeded { what, limit: quota::THREADS });
        }
        self.quota.take(peer.uid)
    }

    /// Gives a reserved place back.
    pub fn cancel(&mut self, peer: Peer) {
        self.quota.give_back(peer.uid);
    }

    /// Keeps a program in its reserved place.
    pub fn insert(&mut self, id: ProgramId, program: ManagedProgram) {
        self.managed.insert(id, program);
    }

    /// Forgets a program.
    pub fn remove(&mut self, id: ProgramId) -> Option<ManagedProgram> {
        let removed = self.managed.remove(&id);
        if let Some(program) = &removed {
            self.quota.give_back(program.enrolled_by);
        }
        removed
    }

    /// A rule states the class of a program.
    pub fn state_class(&mut self, id: ProgramId, class: Class) {
        if let Some(program) = self.managed.get_mut(&id) {
            (program.class, program.is_class_stated) = (class, true);
        }
    }

    /// What a program is called by has another name now.
    pub fn rename(&mut self, id: ProgramId, old: &str, new: &str) {
        if let Some(program) = self.managed.get_mut(&id).filter(|program| program.name == old) {
            program.name = new.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        }
    }

    /// A program.
    pub fn get(&self, id: ProgramId) -> Option<&ManagedProgram> {
        self.managed.get(&id)
    }

    /// All, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (ProgramId, &ManagedProgram)> {
        self.managed.iter().map(|(id, program)| (*id, program))
    }

    /// Programs of which nothing lives any more.
    pub fn ended(&self, sample: &Sample) -> Vec<ProgramId> {
        let alive: BTreeSet<ProgramId> = sample.threads.iter().map(|t| t.program).collect();
        let has_ended = |id: ProgramId, program: &ManagedProgram| {
            !alive.contains(&id) && program.roots.iter().all(OwnedProcess::has_ended)
        };
        self.iter().filter(|(id, p)| has_ended(*id, p)).map(|(id, _)| id).collect()
    }

    /// Programs whose first processes have ended, and whose daemons shall be released.
    pub fn left_behind(&self) -> Vec<ProgramId> {
        let is_over = |program: &ManagedProgram| {
            !program.linger && program.roots.iter().all(OwnedProcess::has_ended)
        };
        self.iter().filter(|(_, program)| is_over(program)).map(|(id, _)| id).collect()
    }

    /// Processes that came to run as another user since they were enrolled, of programs that users
    /// enrolled; a program that root enrolled is root's alone then. A process is looked at when it is
    /// new and after each exec: only there do its rights grow (credentials(7)).
    pub fn strangers(&mut self, sample: &Sample) -> Vec<(u32, Owner)> {
        let mut strangers = Vec::new();
        let mut checked = BTreeMap::new();
        for threads in sample.threads.chunk_by(|a, b| a.id.process == b.id.process) {
            let Some(thread) = threads.first() else { continue };
            let (process, generation) = (thread.id.process, thread.id.generation);
            let Some(program) = self.managed.get_mut(&thread.program) else { continue };
            let is_known = self.checked.get(&process) == Some(&generation);
            if !program.is_several_users() && !is_known {
                // A process that is gone is no stranger.
                let Ok(owner) = owner_of(process) else { continue };
                if !owner.is(program.owner) {
                    let is_root = program.roots.iter().any(|root| root.pid() == process);
                    if program.is_held_back && generation == 0 && is_root && owner.is(ROOT) {
                        continue;
                    }
                    if program.enrolled_by == ROOT {
                        program.owner = ROOT;
                    } else {
                        strangers.push((process, owner));
                        continue;
                    }
                }
            }
            checked.insert(process, generation);
        }
        self.checked = checked;
        strangers
    }
}

impl ManagedProgram {
    /// Root's programs may have processes of any user.
    fn is_several_users(&self) -> bool {
        self.enrolled_by == ROOT && self.owner == ROOT
    }
}
