//! The state that the reader and the watcher share, behind one lock.

use rustix::io::Errno;
use symbiont_machine::ProgramId;

use super::connector::Connector;
use super::hook::BirthHook;
use super::scan::{Proc, Scanner};
use super::tree::Tree;

/// More reports than a buffer of ordinary size can hold; a bound only against
/// a storm that outruns us.
const MANY: usize = 1 << 16;

/// What reader and watcher share.
pub(crate) struct State {
    pub tree: Tree,
    pub hook: Box<dyn BirthHook>,
    pub connector: Option<Connector>,
    /// Why no reports come any more, once.
    pub broken: Option<String>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// What became of an enrolment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enrolment {
    Done,
    /// It was enrolled before, in this program.
    Known(ProgramId),
    NoSuchProcess,
}

impl State {
    /// Applies the reports that have come, as many as there can be at once.
    pub fn drain(&mut self) {
        self.drain_some(MANY);
    }

    /// Applies the reports that have come, about this many at most; false if
    /// none can come any more.
    pub fn drain_some(&mut self, most: usize) -> bool {
        let (tree, hook) = (&mut self.tree, &mut *self.hook);
        let Some(connector) = &mut self.connector else { return false };
        if let Err(error) = connector.drain(most, |event| tree.apply(event, hook)) {
            self.broken = Some(error.to_string());
        }
        self.broken.is_none()
    }

    /// Was any report lost since this was last asked?
    pub fn lost(&mut self) -> bool {
        self.connector.as_mut().is_some_and(Connector::take_lost)
    }

    /// Finds new processes by a scan of this quantum.
    pub fn find(&mut self, proc: &Proc, scanner: &mut Scanner) -> Result<(), Errno> {
        let (tree, hook) = (&mut self.tree, &mut *self.hook);
        let found = scanner.scan(proc, |process| tree.program(process).is_some())?;
        tree.retain_listed(&found.listed, hook);
        tree.adopt(&found.unknown, hook);
        Ok(())
    }

    /// Makes losses good by a complete scan.
    ///
    /// Reports wait in the socket meanwhile and are applied after it: what
    /// they report again does no harm, and they report what the scan missed.
    pub fn rescan(&mut self, proc: &Proc) -> Result<(), Errno> {
        let seen = proc.processes()?;
        let (tree, hook) = (&mut self.tree, &mut *self.hook);
        tree.retain_seen(&seen, hook);
        for seen in &seen {
            tree.note(seen.process, seen.born, seen.stack, seen.session, hook);
        }
        tree.adopt(&seen, hook);
        let all = self.tree.processes().collect();
        self.list_threads(proc, all);
        Ok(())
    }

    /// Enrols a process and its descendants.
    pub fn enrol(
        &mut self,
        proc: &Proc,
        program: ProgramId,
        process: u32,
    ) -> Result<Enrolment, Errno> {
        if let Some(known) = self.tree.program(process) {
            return Ok(Enrolment::Known(known));
        }
        let seen = proc.family(process)?;
        let Some(root) = seen.iter().find(|seen| seen.process == process) else {
            return Ok(Enrolment::NoSuchProcess);
        };
        self.tree.enrol(program, root, &seen, &mut *self.hook);
        // The reports of the others are read without a gap.
        let is_new = |seen: &u32| self.tree.program(*seen) == Some(program);
        let new = seen.iter().map(|seen| seen.process).filter(is_new).collect();
        self.list_threads(proc, new);
        Ok(Enrolment::Done)
    }

    /// Lists the threads of these enrolled processes, then applies the reports
    /// that waited meanwhile.
    fn list_threads(&mut self, proc: &Proc, processes: Vec<u32>) {
        for process in processes {
            self.tree.set_threads(process, &proc.threads(process), &mut *self.hook);
        }
        self.tree.catch_up();
        self.drain();
        self.tree.caught_up();
    }
}
