//! Programs that are added and removed while the machine is managed.

use std::collections::BTreeSet;

use symbiont_machine::{Class, Program, ProgramId};

use super::{LinuxError, LinuxMachine, Wait};
use crate::actuate::RestoreReport;

impl<W: Wait> LinuxMachine<W> {
    /// Begins a program without processes.
    pub fn add_program(&mut self, name: &str) -> ProgramId {
        let id = ProgramId(self.next_program);
        self.next_program += 1;
        self.programs.push(Program::new(id, name));
        id
    }

    /// Notes what a program is run for.
    pub fn set_class(&mut self, program: ProgramId, class: Class) {
        if let Some(known) = self.programs.iter_mut().find(|known| known.id == program) {
            known.class = class;
        }
    }

    /// Notes the user that a program belongs to.
    pub fn set_user(&mut self, program: ProgramId, user: u32) {
        if let Some(known) = self.programs.iter_mut().find(|known| known.id == program) {
            known.user = Some(user);
        }
    }

    /// Notes what a program is known by from one run to the next.
    pub fn set_identity(&mut self, program: ProgramId, identity: &str) {
        if let Some(known) = self.programs.iter_mut().find(|known| known.id == program) {
            known.identity = Some(identity.to_owned());
        }
    }

    /// Enrols a process with all its threads and descendants in a program.
    ///
    /// # Errors
    /// When there is no such process, or it belongs to another program.
    pub fn enrol_in(&mut self, program: ProgramId, process: u32) -> Result<(), LinuxError> {
        self.watcher.enrol(program, process)?;
        self.releases.begins(program, process);
        Ok(())
    }

    /// The program that a process belongs to.
    #[must_use]
    pub fn program_of(&self, process: u32) -> Option<ProgramId> {
        self.watcher.program_of(process)
    }

    /// How many processes and threads a program has now.
    #[must_use]
    pub fn count(&self, program: ProgramId) -> (usize, usize) {
        (self.processes_of(program).len(), self.threads_of(program).count())
    }

    /// The processes of a program now, without those that were released.
    #[must_use]
    pub fn processes_of(&self, program: ProgramId) -> BTreeSet<u32> {
        self.threads_of(program).map(|(process, _)| process).collect()
    }

    fn threads_of(&self, program: ProgramId) -> impl Iterator<Item = (u32, u32)> {
        let threads = self.watcher.threads_of(program).into_iter();
        threads.filter(|(process, _)| !self.releases.is_leaving(*process))
    }

    /// Restores a program's threads and forgets the program.
    pub fn release_program(&mut self, program: ProgramId) -> RestoreReport {
        let report = self.release(&self.processes_of(program));
        self.programs.retain(|known| known.id != program);
        self.releases.forget(program);
        report
    }
}
