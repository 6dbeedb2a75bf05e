//! Steps 1 and 2: each thread's stack alone, throttled to the SMT mode of its group, from the SMT stacks of a
//! quantum; and, for feedback, what it did with each group of co-runners.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_machine::ThreadId;
use symbiont_model::{CoRunObservation, CpiStack, Form, Shares, SmtMode};
use symbiont_topology::{Core, CoreId, CoreKind};

use super::co_runs::CoRuns;
use super::{Symbiosis, ran};
use crate::{ThreadView, View};

/// What is known of each thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Estimates {
    /// Throttled stacks.
    known: BTreeMap<ThreadId, Shares>,
    /// What they did with co-runners, where that corrects predictions.
    co_runs: BTreeMap<ThreadId, CoRuns>,
    /// Threads that were measured in the last quantum.
    measured: BTreeSet<ThreadId>,
    /// Slowdowns over the last quantum, where they were estimated.
    achieved: BTreeMap<ThreadId, f64>,
}

/// Stacks of some threads.
#[derive(Debug, Clone)]
pub(super) struct Stacks {
    /// Throttled.
    pub throttled: Vec<Shares>,
    /// What they did with each other, if that corrects predictions.
    pub observations: Vec<CoRunObservation>,
}

impl Estimates {
    /// Was no thread measured yet?
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Slowdown of a thread over the last quantum (time together / time alone), which the inverse
    /// model estimates from the stacks of the threads that shared its core.
    pub fn achieved(&self, thread: ThreadId) -> Option<f64> {
        self.achieved.get(&thread).copied()
    }

    /// The throttled stack of a thread that was measured in the last quantum.
    pub fn measured(&self, thread: ThreadId) -> Option<&Shares> {
        self.measured.get(&thread).and_then(|thread| self.known.get(thread))
    }

    /// Takes the quantum that has just ended. A thread that did not run, or
    /// could not be measured, keeps what was known of it.
    pub fn take(&mut self, symbiosis: &Symbiosis, view: &View<'_>) {
        let here: BTreeSet<ThreadId> = view.threads.iter().map(|thread| thread.id).collect();
        self.known.retain(|id, _| here.contains(id));
        self.co_runs.retain(|id, _| here.contains(id));
        self.measured.clear();
        self.achieved.clear();
        let read: Vec<Option<CpiStack>> =
            view.threads.iter().map(|thread| read(symbiosis, thread)).collect();
        let measured: Vec<Option<Shares>> =
            read.iter().map(|stack| stack.as_ref().map(CpiStack::shares)).collect();
        let Some(mean) = mean(measured.iter().flatten()) else { return };
        let mut alone = Vec::new();
        let mut cores: BTreeMap<CoreId, (&Core, Vec<usize>)> = BTreeMap::new();
        for (index, thread) in view.threads.iter().enumerate().filter(|(_, t)| ran(t)) {
            match thread.cpu.and_then(|cpu| view.topology.core_of(cpu)) {
                Some(core) => cores.entry(core.id).or_insert((core, Vec::new())).1.push(index),
                None => alone.push(vec![index]),
            }
        }
        let crowds = cores.values().map(|(core, group)| (group, core.kind, core.cpus.len()));
        let alone = alone.iter().map(|group| (group, CoreKind::default(), 1));
        for (group, core_type, places) in crowds.chain(alone) {
            let together: Vec<&Shares> = (group.iter())
                .map(|&at| measured.get(at).and_then(Option::as_ref).unwrap_or(&mean))
                .collect();
            let inverted = invert(symbiosis, core_type, &together, places);
            for (&at, (stack, slowdown)) in group.iter().zip(inverted) {
                let was_measured = measured.get(at).is_some_and(Option::is_some);
                if let Some(thread) = view.threads.get(at).filter(|_| was_measured) {
                    self.known.insert(thread.id, stack);
                    self.measured.insert(thread.id);
                    self.achieved.extend(slowdown.map(|slowdown| (thread.id, slowdown)));
                }
            }
            if symbiosis.feedback && group.len() <= places.max(1) {
                self.note(view, (core_type, group), &read);
            }
        }
    }

    /// Notes how fast threads were that shared a core, all at once.
    fn note(
        &mut self,
        view: &View<'_>,
        (kind, group): (CoreKind, &[usize]),
        measured: &[Option<CpiStack>],
    ) {
        let id = |at: usize| view.threads.get(at).map(|thread| thread.id);
        for &at in group {
            let Some((thread, stack)) = id(at).zip(measured.get(at).and_then(Option::as_ref))
            else {
                continue;
            };
            let others = group.iter().filter(|&&other| other != at);
            let mut others: Vec<ThreadId> = others.filter_map(|&other| id(other)).collect();
            others.sort_unstable();
            let runs = self.co_runs.entry(thread).or_default();
            runs.age(kind);
            if !others.is_empty() {
                runs.add(others, stack.cpi().recip());
            }
        }
    }

    /// The stacks of some threads of the view. A thread that is not known is taken for the mean of all.
    pub fn of(&self, symbiosis: &Symbiosis, view: &View<'_>, threads: &[usize]) -> Stacks {
        let mean = mean(self.known.values());
        let mean = mean.unwrap_or_else(|| Shares::uniform(&symbiosis.models.first.components));
        let known = |&at: &usize| self.known.get(&view.threads.get(at)?.id).cloned();
        let throttled =
            threads.iter().map(|at| known(at).unwrap_or_else(|| mean.clone())).collect();
        let observations =
            if symbiosis.feedback { self.observations(view, threads) } else { Vec::new() };
        Stacks { throttled, observations }
    }

    /// What some threads of the view did with each other, numbered by their place among them.
    fn observations(&self, view: &View<'_>, threads: &[usize]) -> Vec<CoRunObservation> {
        let ids = threads.iter().filter_map(|&at| view.threads.get(at)).map(|thread| thread.id);
        let places: BTreeMap<ThreadId, usize> = ids.zip(0..).collect();
        let mut all = Vec::new();
        for (id, &victim) in &places {
            let Some(runs) = self.co_runs.get(id) else { continue };
            for (others, quanta, ipc) in runs.all() {
                let others: Option<Vec<usize>> =
                    others.iter().map(|other| places.get(other).copied()).collect();
                all.extend(others.map(|others| CoRunObservation { victim, others, quanta, ipc }));
            }
        }
        all
    }
}

/// The SMT stack of a thread that ran; none if it was not measured.
fn read(symbiosis: &Symbiosis, thread: &ThreadView<'_>) -> Option<CpiStack> {
    let measured = thread.measured.filter(|_| ran(thread))?;
    symbiosis.models.first.components.read(measured).ok()
}

/// Throttled stacks of threads that shared a core, and the slowdown of each against running alone.
/// Groups of a mode that the model does not know, or of more threads than the core has places, keep
/// their stacks as they are, and their slowdowns stay unknown.
fn invert(
    symbiosis: &Symbiosis,
    core_type: CoreKind,
    together: &[&Shares],
    places: usize,
) -> Vec<(Shares, Option<f64>)> {
    let as_they_are = || together.iter().map(|&shares| (shares.clone(), None)).collect();
    let mode = SmtMode::of(together.len()).filter(|_| together.len() <= places.max(1));
    let trained = mode.and_then(|mode| symbiosis.models.of(core_type)?.modes.get(&mode));
    let Some(trained) = trained else {
        return as_they_are();
    };
    let model = &trained.fit.model;
    let Ok(inverted) = model.invert(symbiosis.inversion, together) else {
        return as_they_are();
    };
    let Ok(slowdowns) = model.slowdowns(Form::Delta, &inverted.stacks) else {
        return as_they_are();
    };
    let against_alone = |(stack, slowdown): (Shares, f64)| {
        let ratio = trained.throttling.as_ref().map_or(1.0, |t| t.ratio(&stack));
        (stack, Some(slowdown * ratio).filter(|slowdown| slowdown.is_finite()))
    };
    inverted.stacks.into_iter().zip(slowdowns).map(against_alone).collect()
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
