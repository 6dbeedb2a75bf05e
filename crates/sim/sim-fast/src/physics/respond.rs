//! What answers how a thread does in an environment.

use super::domains::Physics;
use super::local::Local;
use super::pipeline::{CoreSharing, Environment};
use super::prepared::Prepared;
use super::response::{Response, ResponseTable};
use super::tasks::Task;
use super::window::{Outcome, Window};

/// Answers how a thread does in an environment.
pub trait Respond {
    /// In short, for a round.
    fn respond(&mut self, task: &Task<'_>, environment: &Environment) -> Response;
    /// In short, with what follows from it nearby, where that is known.
    fn around(&mut self, task: &Task<'_>, environment: &Environment) -> (Response, Option<Local>) {
        (self.respond(task, environment), None)
    }
    /// In full, once all is settled.
    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome;
    /// In full, with what follows from it nearby, where that is known.
    fn detail_around(
        &mut self,
        task: &Task<'_>,
        environment: &Environment,
    ) -> (Outcome, Option<Local>) {
        (self.detail(task, environment), None)
    }
    /// Inputs that do anything to the thread, one bit each.
    fn cares(&mut self, task: &Task<'_>) -> u32;
}

/// Runs the window model for each answer: the direct solve.
#[derive(Debug, Clone, Default)]
pub struct Direct {
    window: Window,
}

impl Respond for Direct {
    fn respond(&mut self, task: &Task<'_>, environment: &Environment) -> Response {
        Response::from(&self.detail(task, environment))
    }

    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome {
        self.window.run(task.pipeline, &task.phase.trace, environment)
    }

    fn cares(&mut self, _: &Task<'_>) -> u32 {
        u32::MAX
    }
}

/// Looks answers up in tables, made when first asked for.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// The machine.
    pub physics: &'a Physics,
}

impl Tables<'_> {
    fn table<'t>(&self, task: &Task<'t>) -> &'t ResponseTable {
        let (phase, physics) = (task.phase, self.physics);
        task.tables.get_or_make(task.mode, task.pipeline.sharing, || {
            let core_type = &physics.core_types[task.core_type];
            ResponseTable::new(phase, task.facts.written, task.pipeline, core_type, &physics.memory)
        })
    }
}

impl Physics {
    /// Makes the table of a phase on a core type in an SMT mode, if it is not made
    /// yet: that takes some tenths of a second, better spent ahead of time, and by
    /// several threads. None if there is no such core type.
    pub fn prepare<'p>(
        &self,
        prepared: &'p Prepared,
        core_type: usize,
        mode: u32,
        sharing: CoreSharing,
    ) -> Option<&'p ResponseTable> {
        let (phase, kept) = (prepared.cores.get(core_type)?, prepared.tables.get(core_type)?);
        let place = self.core_types.get(core_type)?;
        let pipeline = self.pipeline(core_type, mode, sharing)?;
        Some(kept.get_or_make(pipeline.mode, sharing, || {
            let written = prepared.facts.written;
            ResponseTable::new(phase, written, pipeline, place, &self.memory)
        }))
    }
}

impl Physics {
    /// All that a table follows from on this side: what a core type in a mode, and memory, are
    /// like, value by value. None if there is no such core type.
    #[must_use]
    pub fn table_basis(&self, core_type: usize, mode: u32, sharing: CoreSharing) -> Option<String> {
        let (pipeline, place) =
            (self.pipeline(core_type, mode, sharing)?, self.core_types.get(core_type)?);
        Some(format!("{pipeline:?} {place:?} {:?}", self.memory))
    }
}

impl Respond for Tables<'_> {
    fn respond(&mut self, task: &Task<'_>, environment: &Environment) -> Response {
        self.table(task).respond(environment)
    }

    fn around(&mut self, task: &Task<'_>, environment: &Environment) -> (Response, Option<Local>) {
        let (response, local) = self.table(task).around(environment);
        (response, Some(local))
    }

    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome {
        self.detail_around(task, environment).0
    }

    fn detail_around(
        &mut self,
        task: &Task<'_>,
        environment: &Environment,
    ) -> (Outcome, Option<Local>) {
        let (outcome, local) = self.table(task).detail(environment, task.pipeline.width);
        (outcome, Some(local))
    }

    fn cares(&mut self, task: &Task<'_>) -> u32 {
        self.table(task).cares()
    }
}
