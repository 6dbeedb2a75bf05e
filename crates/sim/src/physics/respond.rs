//! Who answers how a thread does in an environment.

use super::domains::Physics;
use super::local::Local;
use super::pipeline::{Company, Environment};
use super::prepared::Prepared;
use super::response::{Response, ResponseTable};
use super::tasks::Task;
use super::window::{Outcome, Window};

/// Answers how a thread does in an environment.
pub trait Respond {
    /// In short, for a round.
    fn respond(&mut self, task: &Task<'_>, environment: &Environment) -> Response;
    /// In short, with what follows from it nearby, where that can be told.
    fn around(&mut self, task: &Task<'_>, environment: &Environment) -> (Response, Option<Local>) {
        (self.respond(task, environment), None)
    }
    /// In full, once all is settled.
    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome;
    /// In full, with what follows from it nearby, where that can be told.
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
        phase.table(task.mode, task.pipeline.company, || {
            let sort = &physics.sorts[task.sort];
            ResponseTable::new(phase, task.facts.written, task.pipeline, sort, &physics.memory)
        })
    }
}

impl Physics {
    /// Makes the table of a phase on a sort of core in an SMT mode, if it is not made
    /// yet: that takes some tenths of a second, better spent ahead of time, and by
    /// several threads. None if there is no such sort.
    pub fn prepare<'p>(
        &self,
        prepared: &'p Prepared,
        sort: usize,
        mode: u32,
        company: Company,
    ) -> Option<&'p ResponseTable> {
        let (phase, place) = (prepared.cores.get(sort)?, self.sorts.get(sort)?);
        let pipeline = self.pipeline(sort, mode, company)?;
        Some(phase.table(pipeline.mode, company, || {
            let written = prepared.facts.written;
            ResponseTable::new(phase, written, pipeline, place, &self.memory)
        }))
    }
}

impl Physics {
    /// All that a table follows from on this side: what a sort of core in a mode, and memory, are
    /// like, value by value. None if there is no such sort.
    #[must_use]
    pub fn table_basis(&self, sort: usize, mode: u32, company: Company) -> Option<String> {
        let (pipeline, place) = (self.pipeline(sort, mode, company)?, self.sorts.get(sort)?);
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
