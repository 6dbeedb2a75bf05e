//! What the policy predicts of other groups than those that it chose.

use std::collections::BTreeMap;

use symbiont_machine::ThreadId;
use symbiont_model::{Objective, SmtMode};
use symbiont_topology::CoreKind;

use super::choose::Predictions;
use super::estimate::Estimates;
use super::{Symbiosis, ran};
use crate::{Foresight, View};

/// Predictions from what was known at the last decision.
#[derive(Debug)]
pub(super) struct Foreseen {
    objective: Objective,
    places: BTreeMap<ThreadId, usize>,
    by_kind: BTreeMap<CoreKind, Predictions>,
}

impl Foreseen {
    /// Of the threads that ran, in the view that was decided on last.
    pub fn new(symbiosis: &Symbiosis, estimates: &Estimates, view: &View<'_>) -> Self {
        let chosen = |(_, thread): &(usize, &crate::ThreadView<'_>)| {
            !estimates.is_empty() && thread.lifecycle.is_settled() && ran(thread)
        };
        let (threads, ids): (Vec<usize>, Vec<ThreadId>) = (view.threads.iter().enumerate())
            .filter(chosen)
            .map(|(at, thread)| (at, thread.id))
            .unzip();
        let stacks = estimates.of(symbiosis, view, &threads);
        let predicted = symbiosis.models.all().filter_map(|model| {
            let predictions = Predictions::new(symbiosis, model, &SmtMode::ALL, &stacks);
            Some((model.core, predictions.ok()?))
        });
        let by_kind = predicted.collect();
        Self { objective: symbiosis.objective, places: ids.into_iter().zip(0..).collect(), by_kind }
    }
}

impl Foresight for Foreseen {
    fn objective(&self) -> Objective {
        self.objective
    }

    fn slowdowns(&self, kind: CoreKind, group: &[ThreadId]) -> Option<Vec<f64>> {
        let members: Option<Vec<usize>> =
            group.iter().map(|id| self.places.get(id).copied()).collect();
        self.by_kind.get(&kind)?.slowdowns(&members?)
    }
}
