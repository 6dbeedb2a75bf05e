//! `symbiotic-online`: groups threads as `symbiotic` does, and corrects its predictions by what groups did.
//!
//! # Problem
//! A model errs, of programs that it was not trained on most of all. A policy that trusts it alone chooses
//! the same wrong group again and again, though it measures each quantum what that group does.
//!
//! # Approach
//! The six steps of `symbiotic`, with three parameters:
//! - [`SymbioticOnline::FEEDBACK`]: measured speeds of groups that ran correct what is predicted of them, with a
//!   half-life of ten quanta (`symbiont_model::CoRunObservation`). A group that was predicted too well is tried, and
//!   known from then on.
//! - [`SymbioticOnline::OBJECTIVE`]: schedules are judged by throughput.
//! - [`SymbioticOnline::FORM`]: what predicts a slowdown. `delta` are equations 1 to 3 as published, `linear` those
//!   without δ, `constant` the mean slowdown of training: a control, which shows what feedback does by itself.
//!
//! One campaign compares all of these, with two depths of the stack, on programs that the models do not
//! know (`symbiont reproduce symbiont-forms`). Feedback decides; forms with feedback differ less than their
//! intervals. Of these `delta` is the default, since it gains before there is feedback, too.
//!
//! A thread that always co-runs with the same threads measures nothing that could correct the model: its speed alone
//! is not known, and is taken to be such that predictions are right on average.
//!
//! Where some node has no memory and requests to memory are counted, groups that use memory most run near it,
//! as `symbiotic-numa` has it.
//!
//! # Properties
//! - What stacks do not show is learned from what groups did, with feedback only
//!   (`what_no_stack_shows_is_learned_from_what_groups_did`).
//! - Threads that interfere are kept apart and stay there
//!   (`threads_that_need_the_same_are_kept_apart_and_stay`), and new phases are followed
//!   (`a_new_phase_is_followed`).
//! - Groups run near memory where a node has none (`symbiotic_online_runs_groups_near_memory_too`).
//! - With stacks shuffled between threads the pairs are no better than chance
//!   (`shuffled_stacks_make_random_pairs`).

use std::time::Duration;

use symbiont_machine::{Ability, Placement, Signal, Support, ThreadId};
use symbiont_model::{Form, Inversion, Objective};
use symbiont_topology::Topology;

use crate::parameter::{Kind, Parameter, Parameters, Typed, Value};
use crate::symbiotic::{OBJECTIVES, Symbiosis};
use crate::symbiotic_numa::{lacks_memory, place_near_memory};
use crate::{Entry, Foresight, Policy, Requirements, Settings, Symbiotic, View};

#[cfg(test)]
mod tests;

pub(crate) const ENTRY: Entry = Entry {
    name: "symbiotic-online",
    summary: "as symbiotic, and predictions are corrected by what groups did when they ran",
    paper: None,
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: PARAMETERS,
    make: |settings| Box::new(SymbioticOnline::with(settings)),
};

pub(crate) const PARAMETERS: Parameters =
    &[&SymbioticOnline::FORM, &SymbioticOnline::FEEDBACK, &SymbioticOnline::OBJECTIVE];

/// The policy.
#[derive(Debug, Clone)]
pub struct SymbioticOnline {
    symbiotic: Symbiotic,
    /// Does a node have no memory, and are requests to memory counted?
    near_memory: bool,
}

impl SymbioticOnline {
    /// What predicts a slowdown.
    pub const FORM: Parameter<Form> = Parameter::new(
        "form",
        Kind::Choice(&["constant", "linear", "delta"]),
        Form::Delta,
        "terms of the model that predict a slowdown: the mean of training, equations 1 to 3 of Feliu et \
         al. without their delta, or with it",
    );
    /// Do measurements correct predictions?
    pub const FEEDBACK: Parameter<bool> = Parameter::new(
        "feedback",
        Kind::Choice(&["on", "off"]),
        true,
        "corrects what is predicted of groups by what they did when they ran",
    );
    /// What a schedule is judged by.
    pub const OBJECTIVE: Parameter<Objective> = Parameter::new(
        "objective",
        OBJECTIVES,
        Objective::Stp,
        "what a schedule is judged by: the sum of predicted slowdowns, system throughput, or mean \
         turnaround time",
    );

    /// With these settings; without models, everything is left to the OS.
    #[must_use]
    pub fn with(settings: &Settings) -> Self {
        let (form, feedback) = (settings.get(&Self::FORM), settings.get(&Self::FEEDBACK));
        let objective = settings.get(&Self::OBJECTIVE);
        let models = settings.models.clone();
        let symbiosis = models.map(|models| Symbiosis {
            models,
            form,
            inversion: Inversion::Regularised,
            objective,
            feedback,
        });
        Self { symbiotic: Symbiotic::new(symbiosis), near_memory: false }
    }
}

impl Typed for Form {
    fn of(value: &Value) -> Option<Self> {
        let text = String::of(value)?;
        Self::ALL.into_iter().find(|form| form.name().eq_ignore_ascii_case(&text))
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.name().to_owned()))
    }
}

impl Policy for SymbioticOnline {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn requirements(&self) -> Requirements {
        let mut requirements = self.symbiotic.requirements();
        requirements.alternatives.insert(Signal::MemoryRequests);
        if self.near_memory {
            requirements.required.insert(Signal::MemoryRequests);
        }
        requirements
    }

    fn offer(&mut self, offered: &Support, topology: &Topology) -> Option<String> {
        let counted = offered.signals.get(&Signal::MemoryRequests).is_some_and(Ability::exists);
        self.near_memory = counted && lacks_memory(topology);
        None
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        if self.near_memory {
            place_near_memory(&mut self.symbiotic, view)
        } else {
            self.symbiotic.place(view)
        }
    }

    fn achieved_slowdown(&self, thread: ThreadId) -> Option<f64> {
        self.symbiotic.achieved_slowdown(thread)
    }

    fn stack_alone(&self, thread: ThreadId) -> Option<Vec<(&str, f64)>> {
        self.symbiotic.stack_alone(thread)
    }

    fn foresight(&self, view: &View<'_>) -> Option<Box<dyn Foresight>> {
        self.symbiotic.foresight(view)
    }
}
