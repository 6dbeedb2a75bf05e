//! One round of the loop.

use symbiont_counters::{Characterizations, Measurements};
use symbiont_machine::{Move, Outcome, Placement, Sample};
use symbiont_planner::Plan;

/// All that one round of the loop saw and did.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The machine at the start of the round.
    pub sample: Sample,
    /// What the threads did since the sample before.
    pub characterizations: Characterizations,
    /// What was measured of them by counting events, as far as it was needed.
    pub measurements: Measurements,
    /// The decision of the policy.
    pub placement: Placement,
    /// The moves and withheld moves that follow from it.
    pub plan: Plan,
    /// The outcome of each move of the plan, in order.
    pub outcomes: Vec<Outcome>,
}

impl Step {
    /// The moves that the machine was asked for, with their outcomes.
    pub fn moves(&self) -> impl Iterator<Item = (&Move, &Outcome)> {
        self.plan.moves.iter().zip(&self.outcomes)
    }
}
