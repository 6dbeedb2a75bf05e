//! Programs that run already: taken in and released, as a client asks.
//!
//! # Approach
//! Of several processes those are taken in that no program has, as one program, and those released that are managed;
//! notes name the others. Where the client gives a program no name, it has the names of the processes that were taken
//! in.
//!
//! # Properties
//! - What exists and is managed is released, and the others are named
//!   (`those_that_exist_are_attached_and_detached_and_named` among the tests of the command line).
//! - A program of several processes has the names of all (`a_program_of_several_processes_has_the_names_of_all`).

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use symbiont_machine::ProgramId;
use symbiont_topology::counted;
use symbiont_wire::{Attached, Failure, Released};

use super::{
    MachineController, ProgramRequest, Service, each_process, not_managed, owners, processes,
};
use crate::log::Kind;
use crate::{OwnedProcess, Peer};

/// Names in the name of a program of several processes.
const MOST_NAMES: usize = 3;
/// Numbers of processes in a note.
const MOST_NUMBERS: usize = 8;

impl Service {
    pub(super) fn attach(
        &mut self,
        managed: &mut MachineController,
        peer: Peer,
        wanted: ProgramRequest<'_>,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Attached, Failure> {
        let (roots, mut notes) = self.unmanaged(managed, peer, processes(peer, descriptors)?)?;
        let of_processes = name_of(&roots);
        let name = if wanted.name.is_empty() { &of_processes } else { wanted.name };
        let wanted = ProgramRequest { name, ..wanted };
        let (id, more) = self.take_in(managed, peer, wanted, roots)?;
        notes.extend(more);
        let (processes, threads) = managed.machine().count(id);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let name = self.programs.get(id).map(|program| program.name.clone()).unwrap_or_default();
        Ok(Attached {
            program: id.0,
            name,
            processes: count(processes),
            threads: count(threads),
            notes,
        })
    }

    /// Those of some processes that no program has, and notes on the others.
    ///
    /// # Errors
    /// When all are managed already.
    fn unmanaged(
        &self,
        managed: &MachineController,
        peer: Peer,
        processes: Vec<OwnedProcess>,
    ) -> Result<(Vec<OwnedProcess>, Vec<String>), Failure> {
        let program = |process: &OwnedProcess| {
            self.programs.get(managed.machine().program_of(process.pid())?)
        };
        let (known, free): (Vec<_>, Vec<_>) =
            processes.into_iter().partition(|process| program(process).is_some());
        let whose = |process: &OwnedProcess| match program(process) {
            Some(program) if peer.may_see(program.owner) => format!("{} is", program.name),
            _ => format!("process {} is", process.pid()),
        };
        let named: BTreeSet<String> = known.iter().map(whose).collect();
        let mut notes: Vec<String> = named
            .into_iter()
            .map(|it| format!("{it} managed already, and stays as it is"))
            .collect();
        match (free.is_empty(), notes.pop()) {
            (true, Some(last)) => {
                notes.push(format!("{last}: `symbiont detach` it first, to have it managed anew"));
                Err(Failure::Refused { reason: notes.join("; ") })
            }
            (_, last) => Ok((free, notes.into_iter().chain(last).collect())),
        }
    }

    pub(super) fn detach(
        &mut self,
        managed: &mut MachineController,
        peer: Peer,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Released, Failure> {
        let (mut ids, mut unmanaged) = (BTreeSet::new(), Vec::new());
        let mut refused: Vec<Failure> = Vec::new();
        for process in each_process(peer, descriptors)? {
            let process = match process {
                Ok(process) => process.pid(),
                Err(failure) => {
                    refused.push(failure);
                    continue;
                }
            };
            match self.program_of(managed, peer, process) {
                Some(id) => drop(ids.insert(id)),
                None => unmanaged.push(process),
            }
        }
        ids.retain(|id| match self.may_release(managed, peer, *id) {
            Ok(()) => true,
            Err(failure) => {
                refused.push(failure);
                false
            }
        });
        if ids.is_empty() {
            let unmanaged = unmanaged.first().map(|first| not_managed(*first));
            return Err(refused.into_iter().next().or(unmanaged).unwrap_or_else(|| not_managed(0)));
        }
        let notes = unmanaged_note(&unmanaged).into_iter();
        let notes = refused.iter().map(ToString::to_string).chain(notes).collect();
        let mut released = Released { processes: 0, restored: 0, failed: Vec::new(), notes };
        for id in ids {
            self.release(managed, peer, id, &mut released);
        }
        Ok(released)
    }

    /// The program of a process, if the peer may see it.
    fn program_of(
        &self,
        managed: &MachineController,
        peer: Peer,
        process: u32,
    ) -> Option<ProgramId> {
        let id = managed.machine().program_of(process)?;
        self.programs.get(id).filter(|program| peer.may_see(program.owner)).map(|_| id)
    }

    /// One that another user had managed: its processes may have become another user's since the last step.
    fn may_release(
        &self,
        managed: &MachineController,
        peer: Peer,
        id: ProgramId,
    ) -> Result<(), Failure> {
        if self.programs.get(id).is_some_and(|program| program.enrolled_by != peer.uid) {
            for (process, owner) in owners(managed.machine().processes_of(id)) {
                peer.may_manage(process, owner)?;
            }
        }
        Ok(())
    }

    fn release(
        &mut self,
        managed: &mut MachineController,
        peer: Peer,
        id: ProgramId,
        released: &mut Released,
    ) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let processes = managed.machine().processes_of(id);
        released.processes += count(processes.len());
        self.detached.extend(processes);
        let report = managed.machine_mut().release_program(id);
        released.restored += count(report.restored);
        released.failed.extend(report.failed.iter().map(ToString::to_string));
        let name = self.programs.get(id).map_or("", |program| program.name.as_str());
        let (uid, restored) = (peer.uid, counted(report.restored, "thread"));
        let line = format!("{name} is released, as user {uid} asks: {restored} restored");
        self.log.add(Kind::Released, line);
        self.programs.remove(id);
    }
}

/// The names of processes, each once.
fn name_of(roots: &[OwnedProcess]) -> String {
    let name = |root: &OwnedProcess| {
        let name = std::fs::read(format!("/proc/{}/comm", root.pid())).unwrap_or_default();
        match String::from_utf8_lossy(&name).trim_end() {
            "" => format!("process {}", root.pid()),
            name => name.to_owned(),
        }
    };
    joined(roots.iter().map(name))
}

fn joined(names: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let more = match all.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    all.truncate(MOST_NAMES);
    all.join(", ") + &more
}

/// Names processes that no program of the client has.
fn unmanaged_note(processes: &[u32]) -> Option<String> {
    let numbers: Vec<String> =
        processes.iter().take(MOST_NUMBERS).map(ToString::to_string).collect();
    match (processes, processes.len() - numbers.len()) {
        ([], _) => None,
        ([one], _) => Some(format!("process {one} was not managed")),
        (_, 0) => Some(format!("processes {} were not managed", numbers.join(", "))),
        (_, more) => {
            Some(format!("processes {} and {more} more were not managed", numbers.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_several_processes_has_the_names_of_all() {
        let name = |names: &[&str]| joined(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(name(&["sleep"]), "sleep");
        assert_eq!(name(&["sleep", "sleep"]), "sleep");
        assert_eq!(name(&["sleep", "cat", "sleep", "sh"]), "sleep, cat, sh");
        assert_eq!(name(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }

    #[test]
    fn what_was_not_managed_is_named_in_a_note() {
        assert_eq!(unmanaged_note(&[]), None);
        assert_eq!(unmanaged_note(&[7]).unwrap(), "process 7 was not managed");
        assert_eq!(unmanaged_note(&[7, 9]).unwrap(), "processes 7, 9 were not managed");
        let many: Vec<u32> = (1..=10).collect();
        let note = unmanaged_note(&many).unwrap();
        assert_eq!(note, "processes 1, 2, 3, 4, 5, 6, 7, 8 and 2 more were not managed");
    }
}
