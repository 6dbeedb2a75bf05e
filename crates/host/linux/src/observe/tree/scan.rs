//! What a scan of `/proc` puts right.

use std::collections::{BTreeSet, HashMap};

use symbiont_machine::ProgramId;

use super::{Process, Seen, Sessions, Tree};
use crate::observe::hook::BirthHook;

impl Tree {
    /// Enrols a process and its descendants out of a complete scan, with their
    /// leaders only.
    pub fn enrol(
        &mut self,
        program: ProgramId,
        root: &Seen,
        seen: &[Seen],
        hook: &mut dyn BirthHook,
    ) {
        let process = self.add_seen(program, root, hook);
        (process.old_session, process.reaped) = (root.session, None);
        self.descend(seen, Sessions::Old, hook);
    }

    /// Enrols those whose parent is enrolled, and those in a session that an
    /// enrolled process made since, until no more are found; with their
    /// leaders only.
    pub fn adopt(&mut self, seen: &[Seen], hook: &mut dyn BirthHook) {
        self.descend(seen, Sessions::New, hook);
    }

    fn descend(&mut self, seen: &[Seen], sessions: Sessions, hook: &mut dyn BirthHook) {
        let mut children: HashMap<u32, Vec<&Seen>> = HashMap::new();
        let mut members: HashMap<u32, Vec<&Seen>> = HashMap::new();
        let strangers = seen.iter().filter(|seen| {
            seen.process != self.own_process
                && !self.processes.contains_key(&seen.process)
                && (matches!(sessions, Sessions::Old) || !self.released.has(seen))
        });
        for seen in strangers {
            children.entry(seen.parent).or_default().push(seen);
            members.entry(seen.session).or_default().push(seen);
        }
        let mut parents: Vec<u32> = self.processes.keys().copied().collect();
        while let Some(parent) = parents.pop() {
            let Some(known) = self.processes.get(&parent) else { continue };
            let (program, own_session) = (known.program, known.own_session);
            let kin = children.remove(&parent).into_iter().flatten();
            let mates = own_session.and_then(|session| members.remove(&session));
            for seen in kin.chain(mates.into_iter().flatten()) {
                if !self.processes.contains_key(&seen.process) {
                    let process = self.add_seen(program, seen, hook);
                    match sessions {
                        Sessions::Old => {
                            (process.old_session, process.reaped) = (seen.session, None);
                        }
                        Sessions::New => {
                            let own = [Some(seen.process), own_session];
                            let session = Some(seen.session);
                            process.own_session = session.filter(|_| own.contains(&session));
                        }
                    }
                    parents.push(seen.process);
                    if let Some(parent) = self.processes.get_mut(&seen.parent) {
                        parent.forked = Some(self.epoch);
                    }
                }
            }
        }
    }

    /// Drops the processes that a complete scan did not see.
    pub fn retain_seen(&mut self, seen: &[Seen], hook: &mut dyn BirthHook) {
        let born: HashMap<u32, u64> = seen.iter().map(|seen| (seen.process, seen.born)).collect();
        let alive = |process: u32, known: &Process| {
            born.get(&process).is_some_and(|&born| known.born.is_none_or(|known| known == born))
        };
        self.retain(|process, known| alive(process, known), hook);
        self.released.retain(&born.keys().copied().collect());
    }

    /// Drops the processes whose number is not listed.
    pub fn retain_listed(&mut self, listed: &BTreeSet<u32>, hook: &mut dyn BirthHook) {
        self.retain(|process, _| listed.contains(&process), hook);
        self.released.retain(listed);
    }

    fn retain(&mut self, alive: impl Fn(u32, &Process) -> bool, hook: &mut dyn BirthHook) {
        let gone: Vec<u32> = self
            .processes
            .iter()
            .filter(|(process, known)| !alive(**process, known))
            .map(|(process, _)| *process)
            .collect();
        for process in gone {
            self.process_gone(process, hook);
        }
    }

    /// Makes a list of a process's threads the truth.
    pub fn set_threads(&mut self, process: u32, listed: &[u32], hook: &mut dyn BirthHook) {
        let Some(known) = self.processes.get(&process) else { return };
        let listed: BTreeSet<u32> = listed.iter().copied().collect();
        let gone: Vec<u32> =
            known.threads.keys().copied().filter(|thread| !listed.contains(thread)).collect();
        // First the new ones, so that the process is never without a thread.
        for thread in listed {
            self.thread_born(process, thread, None, hook);
        }
        for thread in gone {
            self.clear_owed(process, thread);
            self.exited(process, thread, hook);
        }
    }
}
