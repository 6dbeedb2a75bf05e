//! Steps 1 and 2: each thread's stack alone, throttled to the SMT mode of its
//! group, from the stacks of a quantum in company.

use std::collections::BTreeMap;

use symbiont_machine::ThreadId;
use symbiont_model::{Shares, SmtMode};
use symbiont_topology::CoreId;

use super::{Symbiosis, ran};
use crate::{ThreadView, View};

/// What is known of each thread's throttled stack.
#[derive(Debug, Clone, Default)]
pub(super) struct Estimates {
    known: BTreeMap<ThreadId, Shares>,
}

impl Estimates {
    /// Was nobody measured yet?
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Takes the quantum that has just ended. A thread that did not run, or
    /// could not be measured, keeps what was known of it.
    pub fn take(&mut self, symbiosis: &Symbiosis, view: &View<'_>) {
        self.known.retain(|id, _| view.threads.iter().any(|thread| thread.id == *id));
        let measured: Vec<Option<Shares>> =
            view.threads.iter().map(|thread| read(symbiosis, thread)).collect();
        let Some(mean) = mean(measured.iter().flatten()) else { return };
        let mut alone = Vec::new();
        let mut cores: BTreeMap<CoreId, Vec<usize>> = BTreeMap::new();
        for (index, thread) in view.threads.iter().enumerate().filter(|(_, t)| ran(t)) {
            match thread.cpu.and_then(|cpu| view.topology.core_of(cpu)) {
                Some(core) => cores.entry(core.id).or_default().push(index),
                None => alone.push(vec![index]),
            }
        }
        let places = |core: &CoreId| view.topology.core(*core).map_or(1, |core| core.cpus.len());
        let crowds = cores.iter().map(|(core, group)| (group, places(core)));
        for (group, places) in crowds.chain(alone.iter().map(|group| (group, 1))) {
            let company: Vec<&Shares> = (group.iter())
                .map(|&at| measured.get(at).and_then(Option::as_ref).unwrap_or(&mean))
                .collect();
            let stacks = invert(symbiosis, &company, places);
            for (&at, stack) in group.iter().zip(stacks) {
                let was_measured = measured.get(at).is_some_and(Option::is_some);
                if let Some(thread) = view.threads.get(at).filter(|_| was_measured) {
                    self.known.insert(thread.id, stack);
                }
            }
        }
    }

    /// The throttled stacks of some threads of the view. Who is not known is
    /// taken for the mean of all.
    pub fn of(&self, symbiosis: &Symbiosis, view: &View<'_>, threads: &[usize]) -> Vec<Shares> {
        let all = mean(self.known.values());
        let mean = all.unwrap_or_else(|| Shares::uniform(&symbiosis.model.components));
        let known = |&at: &usize| self.known.get(&view.threads.get(at)?.id).cloned();
        threads.iter().map(|at| known(at).unwrap_or_else(|| mean.clone())).collect()
    }
}

/// The stack in company of a thread that ran; none if it was not measured.
fn read(symbiosis: &Symbiosis, thread: &ThreadView<'_>) -> Option<Shares> {
    let measured = thread.measured.filter(|_| ran(thread))?;
    symbiosis.model.components.read(measured).ok().map(|stack| stack.shares())
}

/// Throttled stacks of threads that shared a core. Groups of a mode that the
/// model does not know, or of more threads than the core has places, keep their
/// stacks as they are.
fn invert(symbiosis: &Symbiosis, company: &[&Shares], places: usize) -> Vec<Shares> {
    let as_they_are = || company.iter().map(|&shares| shares.clone()).collect();
    let mode = SmtMode::of(company.len()).filter(|_| company.len() <= places.max(1));
    let Some(trained) = mode.and_then(|mode| symbiosis.model.modes.get(&mode)) else {
        return as_they_are();
    };
    let inverted = trained.fit.model.invert(symbiosis.inversion, company);
    inverted.map_or_else(|_| as_they_are(), |inverted| inverted.stacks)
}

/// The mean of some stacks; none of none.
fn mean<'s>(stacks: impl Iterator<Item = &'s Shares>) -> Option<Shares> {
    let mut sums: Vec<f64> = Vec::new();
    for stack in stacks {
        sums.resize(stack.parts().len(), 0.0);
        for (sum, part) in sums.iter_mut().zip(stack.parts()) {
            *sum += part;
        }
    }
    Shares::new(sums).ok()
}
