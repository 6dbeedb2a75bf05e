//! The core model that the fixed point evaluates: how a thread performs in a given environment.
//!
//! # Approach
//! Two implementations: [`Direct`] runs the window model each time; [`Tables`] interpolates in tables
//! ([`ResponseTable`]) that are made by the window model when first needed. Each evaluation comes as a
//! [`Summary`], enough for a round of the fixed point, or in full as an [`Outcome`]; a table adds its
//! gradient to either ([`Linearization`]).
//!
//! # Properties
//! `tables_meet_the_direct_solve`

use super::domains::Physics;
use super::linearization::Linearization;
use super::pipeline::{CoreSharing, Environment};
use super::prepared::Prepared;
use super::response_table::{ResponseTable, Summary};
use super::tasks::Task;
use super::window::{Outcome, Window};

/// How a thread performs in an environment.
pub trait CoreModel {
    /// The summary, for a round of the fixed point.
    fn summary(&mut self, task: &Task<'_>, environment: &Environment) -> Summary;
    /// The summary, with its linearization where there is one.
    fn linearized_summary(
        &mut self,
        task: &Task<'_>,
        environment: &Environment,
    ) -> (Summary, Option<Linearization>) {
        (self.summary(task, environment), None)
    }
    /// In full, once the fixed point has settled.
    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome;
    /// In full, with its linearization where there is one.
    fn linearized_detail(
        &mut self,
        task: &Task<'_>,
        environment: &Environment,
    ) -> (Outcome, Option<Linearization>) {
        (self.detail(task, environment), None)
    }
    /// The inputs that affect the thread, one bit each.
    fn inputs(&mut self, task: &Task<'_>) -> u32;
}

/// Runs the window model each time: the direct solve.
#[derive(Debug, Clone, Default)]
pub struct Direct {
    window: Window,
}

impl CoreModel for Direct {
    fn summary(&mut self, task: &Task<'_>, environment: &Environment) -> Summary {
        Summary::from(&self.detail(task, environment))
    }

    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome {
        self.window.run(task.pipeline, &task.phase.trace, environment)
    }

    fn inputs(&mut self, _: &Task<'_>) -> u32 {
        u32::MAX
    }
}

/// Interpolates in tables, which are made when first needed.
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

impl CoreModel for Tables<'_> {
    fn summary(&mut self, task: &Task<'_>, environment: &Environment) -> Summary {
        self.table(task).summary(environment)
    }

    fn linearized_summary(
        &mut self,
        task: &Task<'_>,
        environment: &Environment,
    ) -> (Summary, Option<Linearization>) {
        let (summary, linear) = self.table(task).linearized_summary(environment);
        (summary, Some(linear))
    }

    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome {
        self.linearized_detail(task, environment).0
    }

    fn linearized_detail(
        &mut self,
        task: &Task<'_>,
        environment: &Environment,
    ) -> (Outcome, Option<Linearization>) {
        let (outcome, linear) = self.table(task).detail(environment, task.pipeline.width);
        (outcome, Some(linear))
    }

    fn inputs(&mut self, task: &Task<'_>) -> u32 {
        self.table(task).inputs()
    }
}
