//! Slowdowns from the best of what is known of programs.
//!
//! ```text
//! the program and all its co-runners have CPI stacks, and there is a model
//!     →  by the model
//! it was learned what each of the co-runners does to the program on a core
//!     →  next to average co-runners by run times, × what was learned of these against the average
//! else  →  by run times
//! ```
//!
//! What was learned on cores says how co-runners differ for a program, not how fast it is alone: hence the average by
//! run times.

use symbiont_model::{Model, Shares};

use crate::{
    Numbering, Observations, Predict, ProgramNumber, RunTimeModel, SharedCores, Stack,
    StackPredictor,
};

/// A stack of less CPU time says too little, seconds.
const LEAST_COUNTED_S: f64 = 1.0;

/// Predicts from CPI stacks, shared cores or run times: see the module.
#[derive(Debug, Clone, PartialEq)]
pub struct CombinedPredictor {
    modelled: Option<StackPredictor>,
    shared_cores: SharedCores,
    learned: RunTimeModel,
}

/// What a slowdown was predicted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The CPI stacks of all of them.
    Stacks,
    /// What was learned of them on shared cores.
    SharedCores,
    /// How long runs took, and next to what.
    RunTimes,
}

impl CombinedPredictor {
    /// From run times alone.
    #[must_use]
    pub fn of_run_times(learned: RunTimeModel) -> Self {
        Self { modelled: None, shared_cores: SharedCores::default(), learned }
    }

    /// Also from what was learned on shared cores.
    #[must_use]
    pub fn with_shared_cores(self, shared_cores: SharedCores) -> Self {
        Self { shared_cores, ..self }
    }

    /// Also from the stacks of numbered programs, by a model, on nodes on whose cores `width` programs run at a time.
    /// Stacks of another processor, or of other components than the model's, are not used.
    #[must_use]
    pub fn new(
        learned: RunTimeModel,
        model: &Model,
        width: usize,
        observations: &Observations,
        numbering: &Numbering,
    ) -> Self {
        let record = |key| observations.records().get(key);
        let stack = |key| shares(record(key)?.stack.as_ref()?, model);
        let stacks = numbering.keys().iter().map(stack).collect();
        // Each stack has the model's components.
        let modelled = StackPredictor::new(model, stacks, width).ok();
        Self { modelled, ..Self::of_run_times(learned) }
    }

    /// What the slowdown of a program next to others is predicted from.
    #[must_use]
    pub fn basis(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> Basis {
        if self.by_stacks(victim, co_runners).is_some() {
            Basis::Stacks
        } else if self.shared_cores.against_average(victim, co_runners).is_some() {
            Basis::SharedCores
        } else {
            Basis::RunTimes
        }
    }

    fn by_stacks(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> Option<f64> {
        self.modelled.as_ref()?.slowdown(victim, co_runners)
    }
}

impl Predict for CombinedPredictor {
    fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> f64 {
        if let Some(slowdown) = self.by_stacks(victim, co_runners) {
            return slowdown;
        }
        match self.shared_cores.against_average(victim, co_runners) {
            Some(ln) => self.learned.next_to_average(victim, co_runners) * ln.exp(),
            None => self.learned.slowdown(victim, co_runners),
        }
    }
}

/// A stack as the model takes it; none: it is of another processor, of other components, or of too little time.
fn shares(stack: &Stack, model: &Model) -> Option<Shares> {
    let names = model.components.names();
    let parts: Option<Vec<f64>> = names.map(|name| stack.components.get(name).copied()).collect();
    let fits = stack.processor == model.machine
        && stack.components.len() == model.components.len()
        && stack.counted_s >= LEAST_COUNTED_S;
    Shares::new(parts.filter(|_| fits)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack_predictor::tests::model;
    use crate::{Demand, NextTo, ProgramKey};

    fn key(digest: &str) -> ProgramKey {
        ProgramKey { user: 0, digest: digest.to_owned() }
    }

    fn stack(memory: f64, processor: &str) -> Stack {
        let components = [("base".to_owned(), 1.0 - memory), ("memory".to_owned(), memory)].into();
        Stack { processor: processor.to_owned(), components, counted_s: 5.0 }
    }

    /// Program 0 and 1 have stacks, 2 that of another processor, 3 one of other components, 4 one of little
    /// CPU time, 5 none.
    fn combined() -> CombinedPredictor {
        let mut all = Observations::default();
        all.add_stack(&key("a0"), "a", 1, &stack(0.75, "A processor"));
        all.add_stack(&key("a1"), "b", 1, &stack(0.25, "A processor"));
        all.add_stack(&key("a2"), "c", 1, &stack(0.5, "Another processor"));
        let mut odd = stack(0.5, "A processor");
        odd.components.insert("branches".to_owned(), 0.1);
        all.add_stack(&key("a3"), "d", 1, &odd);
        let short = Stack { counted_s: 0.5, ..stack(0.5, "A processor") };
        all.add_stack(&key("a4"), "e", 1, &short);
        let mut numbering = Numbering::of(&all);
        numbering.number(&key("a5"));
        // Two programs that use two CPUs share them.
        let demand = Demand { used: vec![Some(2.0); 6], cpus: 2.0 };
        CombinedPredictor::new(RunTimeModel::fit(&[], demand), &model(), 2, &all, &numbering)
    }

    #[test]
    fn the_model_predicts_where_all_have_stacks_and_run_times_elsewhere() {
        let combined = combined();
        let of = |victim, others: &[u32]| {
            let others: Vec<ProgramNumber> =
                others.iter().map(|&other| ProgramNumber(other)).collect();
            let slowdown = combined.slowdown(ProgramNumber(victim), &others);
            (combined.basis(ProgramNumber(victim), &others), (slowdown * 1e6).round() / 1e6)
        };
        assert_eq!(of(0, &[1]), (Basis::Stacks, 1.15));
        for other in 2..=5 {
            assert_eq!(of(0, &[other]), (Basis::RunTimes, 2.0), "{other}");
            assert_eq!(of(other, &[0]), (Basis::RunTimes, 2.0), "{other}");
        }
        assert_eq!(of(0, &[1, 5]), (Basis::RunTimes, 3.0));
    }

    #[test]
    fn without_a_model_run_times_predict() {
        let learned = RunTimeModel::fit(&[], Demand { used: vec![Some(2.0)], cpus: 2.0 });
        let combined = CombinedPredictor::of_run_times(learned);
        let (one, others) = (ProgramNumber(0), [ProgramNumber(0)]);
        assert_eq!(combined.basis(one, &others), Basis::RunTimes);
        assert_eq!(combined.slowdown(one, &others), 2.0);
    }

    #[test]
    fn what_was_learned_on_cores_predicts_where_it_is_known_of_all() {
        let mut all = Observations::default();
        for (other, ln) in [("b", -0.3), ("c", -0.1)] {
            let next = NextTo { processor: "P".to_owned(), ln, together_s: 10.0 };
            all.add_next_to((&key("a"), "a"), &key(other), 1, &next);
        }
        let mut numbering = Numbering::of(&all);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|one| numbering.number(&key(one)));
        // Two of four programs use more CPUs than there are: 2 instead of 1.6.
        let demand = Demand { used: vec![Some(1.0); 4], cpus: 1.6 };
        let shared_cores = SharedCores::new(&all, &numbering, "P", 2);
        let combined = CombinedPredictor::of_run_times(RunTimeModel::fit(&[], demand))
            .with_shared_cores(shared_cores);
        let close = |slowdown: f64, ln: f64| (slowdown - 1.25 * ln.exp()).abs() < 1e-9;
        assert!(close(combined.slowdown(a, &[b]), 0.1) && close(combined.slowdown(a, &[c]), -0.1));
        assert_eq!(combined.basis(a, &[b]), Basis::SharedCores);
        for (victim, other) in [(a, d), (b, a)] {
            assert!(close(combined.slowdown(victim, &[other]), 0.0));
            assert_eq!(combined.basis(victim, &[other]), Basis::RunTimes);
        }
    }
}
