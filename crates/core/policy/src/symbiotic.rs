//! `symbiotic`: puts threads together that an interference model predicts to disturb each other least (Feliu
//! et al., section 4).
//!
//! # Problem
//! Which threads should share a core shows only once they do; there are too many combinations to try.
//!
//! # Approach
//! The six steps of section 4.2, once a quantum: stacks of the last quantum, with co-runners, and the inverse
//! model (`estimate`); slowdowns of all pairs, cheapest matching, pairs of pairs, and groups rearranged where
//! that pays (`choose`); the best schedule runs, its groups on the cores in increasing order (section 6.2), or where
//! most of each is already (`crate::core_slots`).
//! A thread may be alone on its core: costs of different SMT modes are compared by estimated ratios of throttled
//! to isolated speed (`symbiont_model::Throttling`). Each core type has a model of its own, and threads stay on
//! theirs (`core_types`; section 7).
//!
//! Threads that take turns on a hardware thread are grouped as if they ran together. A thread that did not run
//! is left to the OS; one that ran but was not measured is taken for the mean of those that were.
//!
//! # What the paper leaves open
//! - Steps 3 to 5 use equations 1 to 3 with δ, for without it every schedule has the same sum of slowdowns; the
//!   inverse goes without, as the paper says.
//! - What is least: the sum of slowdowns against throttled speed (section 3.2); throughput or turnaround time
//!   can be set ([`Symbiotic::OBJECTIVE`]). The stack is that of the model; the paper's is the coarse one, with its
//!   five components and, ours, what they leave of the cycles. Small eigenvalues may be regularised
//!   ([`Symbiotic::INVERSE`]).
//! - Section 4.3 lets the OS place threads while a decision is computed; here they stay.
//!
//! # Properties
//! - Slowdowns are predicted from co-running stacks alone (`predicted_slowdowns_come_true`), those of the last
//!   quantum estimated from the same (`achieved_slowdowns_are_the_true_ones`), other placements alike
//!   (`what_is_foreseen_is_what_was_predicted_and_no_other_placement_is_better`).
//! - Threads that interfere are kept apart (`threads_that_need_the_same_are_kept_apart`), on each core type by
//!   its own model (`each_core_type_has_its_own_model`); one is alone where that pays
//!   (`a_thread_is_alone_where_that_pays`); none moves when nothing changes
//!   (`no_thread_moves_when_nothing_changes`).
//! - Whatever is measured, every thread gets an assignment (`degenerate_stacks_are_survived`,
//!   `measurements_that_are_none_are_taken_for_the_mean`, `where_no_thread_is_measured_nothing_is_decided`),
//!   however many there are (`any_number_of_threads_is_assigned`).
//! - With stacks shuffled between threads the pairs are no better than chance
//!   (`shuffled_stacks_make_random_pairs`).

mod choose;
mod co_runs;
mod core_types;
#[cfg(test)]
mod degenerate_tests;
mod estimate;
mod foresee;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use symbiont_machine::{Placement, Signal, ThreadId};
use symbiont_model::{Form, Inversion, Model, Objective};
use symbiont_topology::{CoreId, CoreKind};

use crate::core_slots::{CoreSlots, Filling, Group, Pool, pools};
use crate::parameter::{Kind, Parameter, Parameters, Typed, Value};
use crate::{Entry, Foresight, MissingInput, Policy, Requirements, Settings, ThreadView, View};
use choose::{Chosen, choose};
pub(crate) use core_types::{Part, parts};
use estimate::Estimates;
use foresee::Foreseen;

pub(crate) const ENTRY: Entry = Entry {
    name: "symbiotic",
    summary: "groups threads that an interference model predicts to slow each other down least, as published",
    paper: Some(
        "Feliu et al., Improving IBM POWER8 performance through symbiotic job scheduling, section 4",
    ),
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: PARAMETERS,
    make: |settings| Box::new(Symbiotic::published(settings)),
};

pub(crate) const PARAMETERS: Parameters =
    &[&Symbiotic::OBJECTIVE, &Symbiotic::INVERSE, &Filling::PUBLISHED];

/// The model that symbiotic policies cannot do without.
pub(crate) const MODEL: MissingInput = MissingInput::trained("an interference model", "--model");

/// Interference models of a machine, all of the same stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Models {
    /// Of one core type.
    pub first: Model,
    /// Of the other core types, where the machine has several.
    pub others: Vec<Model>,
}

impl Models {
    /// The model of a core type.
    #[must_use]
    pub fn of(&self, kind: CoreKind) -> Option<&Model> {
        self.all().find(|model| model.core == kind)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Model> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<Model> for Models {
    fn from(first: Model) -> Self {
        Self { first, others: Vec::new() }
    }
}

/// How a symbiotic policy predicts slowdowns and judges schedules.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Symbiosis {
    /// The models.
    pub models: Arc<Models>,
    /// Which terms of a model predict slowdowns.
    pub form: Form,
    /// How stacks alone are estimated.
    pub inversion: Inversion,
    /// What a schedule is judged by.
    pub objective: Objective,
    /// Does what groups did correct what is predicted of them ([`symbiont_model::Interference::corrected_by`])?
    pub feedback: bool,
}

impl Typed for Objective {
    fn of(value: &Value) -> Option<Self> {
        let text = String::of(value)?;
        Self::ALL.into_iter().find(|objective| objective.name().eq_ignore_ascii_case(&text))
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.name().to_owned()))
    }
}

impl Typed for Inversion {
    fn of(value: &Value) -> Option<Self> {
        let text = String::of(value)?;
        Self::ALL.into_iter().find(|inversion| inversion.name().eq_ignore_ascii_case(&text))
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.name().to_owned()))
    }
}

/// The words of the inversions.
const INVERSIONS: Kind = Kind::Choice(&["published", "regularised", "normalised"]);

/// The words of the objectives.
pub(crate) const OBJECTIVES: Kind = Kind::Choice(&["slowdown", "stp", "antt"]);

/// The policy.
#[derive(Debug, Clone)]
pub struct Symbiotic {
    symbiosis: Option<Arc<Symbiosis>>,
    filling: Filling,
    estimates: Estimates,
}

impl Symbiotic {
    /// What a schedule is judged by.
    pub const OBJECTIVE: Parameter<Objective> = Parameter::new(
        "objective",
        OBJECTIVES,
        Objective::Slowdown,
        "what a schedule is judged by: the sum of predicted slowdowns, system throughput, or mean \
         turnaround time",
    );

    /// How stacks alone are estimated.
    pub const INVERSE: Parameter<Inversion> = Parameter::new(
        "inverse",
        INVERSIONS,
        Inversion::Published,
        "how stacks of threads alone are estimated from those together: by the inverse model as \
         published, with small eigenvalues regularised (ours), or not at all (normalised)",
    );

    /// As published, with these settings; without models, everything is left to the OS.
    #[must_use]
    pub fn published(settings: &Settings) -> Self {
        let objective = settings.get(&Self::OBJECTIVE);
        let models = settings.models.clone();
        let symbiosis = models.map(|models| Symbiosis {
            models,
            form: Form::Delta,
            inversion: settings.get(&Self::INVERSE),
            objective,
            feedback: false,
        });
        Self { filling: settings.get(&Filling::PUBLISHED), ..Self::new(symbiosis) }
    }

    /// Predicts by this and keeps groups on their cores; without it, everything is left to the OS.
    pub(crate) fn new(symbiosis: Option<Symbiosis>) -> Self {
        let (symbiosis, estimates) = (symbiosis.map(Arc::new), Estimates::default());
        Self { symbiosis, filling: Filling::Keep, estimates }
    }

    /// Decides; `load` puts the groups of a pool on cores.
    pub(crate) fn decide(
        &mut self,
        view: &View<'_>,
        mut load: impl FnMut(&mut CoreSlots, &Pool, &[Group], &mut Placement),
    ) -> Placement {
        let Some(symbiosis) = self.symbiosis.clone() else {
            return pools(view, |_, _| Some(MODEL.to_string().into())).1;
        };
        self.estimates.take(&symbiosis, view);
        let none = self.estimates.is_empty();
        let (pools, mut placement) = pools(view, |_, thread| {
            let why = if none { "no thread was measured yet" } else { "asleep" };
            (none || !ran(thread)).then(|| why.into())
        });
        let mut slots = CoreSlots::new(view.topology).filling(self.filling);
        for Part { core_type, pool } in pools.into_iter().flat_map(|pool| parts(view, pool)) {
            let pool = &by_core(view, pool);
            let stacks = self.estimates.of(&symbiosis, view, &pool.threads);
            let (cores, width) = (slots.cores(pool), slots.width(pool));
            match choose(&symbiosis, core_type, &stacks, (cores, width), &together(view, pool)) {
                Ok(chosen) => {
                    let (groups, predicted) = groups_with_predictions(view, pool, &chosen);
                    load(&mut slots, pool, &groups, &mut placement);
                    for (thread, slowdown) in predicted {
                        if let Some(assignment) = placement.get_mut(&thread) {
                            assignment.predicted_slowdown = Some(slowdown);
                        }
                    }
                }
                Err(why) => {
                    let left = ids(view, &pool.threads);
                    let os = symbiont_machine::Assignment::os(why.to_string());
                    placement.extend(left.map(|id| (id, os.clone())));
                }
            }
        }
        placement
    }
}

/// The same with threads that share a core next to each other, so that what is looked up of them together
/// is together in memory.
fn by_core(view: &View<'_>, mut pool: Pool) -> Pool {
    let core = |&at: &usize| {
        let cpu = view.threads.get(at).and_then(|thread| thread.cpu);
        cpu.and_then(|cpu| view.topology.core_of(cpu)).map(|core| core.id)
    };
    pool.threads.sort_by_cached_key(core);
    pool
}

impl Policy for Symbiotic {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        let stack = self.symbiosis.as_ref().map(|by| by.models.first.components.signal());
        Requirements {
            missing_input: self.symbiosis.is_none().then_some(MODEL),
            ..Requirements::of([Signal::RunStates, stack.unwrap_or(Signal::CpiStack)])
        }
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        self.decide(view, |slots, pool, groups, placement| {
            slots.assign(view, pool, groups, placement);
        })
    }

    fn achieved_slowdown(&self, thread: ThreadId) -> Option<f64> {
        self.estimates.achieved(thread)
    }

    fn stack_alone(&self, thread: ThreadId) -> Option<Vec<(&str, f64)>> {
        let names = self.symbiosis.as_ref()?.models.first.components.names();
        let stack = self.estimates.measured(thread)?;
        Some(names.zip(stack.parts().iter().copied()).collect())
    }

    fn foresight(&self, view: &View<'_>) -> Option<Box<dyn Foresight>> {
        let symbiosis = self.symbiosis.as_ref()?;
        Some(Box::new(Foreseen::new(symbiosis, &self.estimates, view)))
    }
}

/// Did it run in the last quantum, or may it now?
pub(crate) fn ran(thread: &ThreadView<'_>) -> bool {
    thread.state == symbiont_machine::RunState::Runnable
        || thread.did.is_some_and(|did| did.running > 0.0)
}

/// The threads of a pool that share a core now, by position in the pool.
pub(crate) fn together(view: &View<'_>, pool: &Pool) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<CoreId, Vec<usize>> = BTreeMap::new();
    for (at, &index) in pool.threads.iter().enumerate() {
        let cpu = view.threads.get(index).and_then(|thread| thread.cpu);
        if let Some(core) = cpu.and_then(|cpu| view.topology.core_of(cpu)) {
            cores.entry(core.id).or_default().push(at);
        }
    }
    cores.into_values().collect()
}

fn ids<'v>(view: &'v View<'_>, indices: &'v [usize]) -> impl Iterator<Item = ThreadId> + 'v {
    indices.iter().filter_map(|&index| Some(view.threads.get(index)?.id))
}

/// Groups with their reasons, by index in the view, and each thread's
/// predicted slowdown against running alone.
fn groups_with_predictions(
    view: &View<'_>,
    pool: &Pool,
    chosen: &Chosen,
) -> (Vec<Group>, Vec<(ThreadId, f64)>) {
    let mut groups = Vec::with_capacity(chosen.groups.len());
    let mut predicted = Vec::with_capacity(pool.threads.len());
    for (members, slowdowns) in &chosen.groups {
        let indices: Vec<usize> =
            members.iter().filter_map(|&at| pool.threads.get(at).copied()).collect();
        let reason = match slowdowns.as_slice() {
            [_] => format!("alone on its core; {}", chosen.by),
            several => {
                let each: Vec<String> = several.iter().map(|s| format!("{s:.2}")).collect();
                let stp: f64 = several.iter().map(|slowdown| 1.0 / slowdown).sum();
                let each = each.join(", ");
                format!("predicted slowdowns {each}: throughput {stp:.2}; {}", chosen.by)
            }
        };
        predicted.extend(ids(view, &indices).zip(slowdowns.iter().copied()));
        groups.push(Group { members: indices, reason: reason.into() });
    }
    (groups, predicted)
}
