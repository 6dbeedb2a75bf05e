//! Costs of groups of any size: what matching asks for.
//!
//! Groups of two, of four and of eight run in different SMT modes, each with a
//! table of its own ([`Interference`]); a thread alone runs at isolated speed.
//! Their costs may be compared only where each mode knows how much it
//! throttles ([`Costs::comparable`]).

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{CoRunObservation, Form, Interference, Model, Objective, Shares, SmtMode, StackError};

/// Predicted costs of all groups that a set of threads can form.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    objective: Objective,
    tables: BTreeMap<SmtMode, Interference>,
    comparable: bool,
}

impl Costs {
    /// Predicts for the modes that are asked for and that the model knows, from throttled stacks.
    ///
    /// # Errors
    /// [`StackError::Length`] when a stack has another number of components
    /// than the model.
    pub fn predict(
        model: &Model,
        (form, objective): (Form, Objective),
        modes: &[SmtMode],
        stacks: &[Shares],
    ) -> Result<Self, StackError> {
        let mut tables = BTreeMap::new();
        let mut comparable = true;
        for (&mode, trained) in model.modes.iter().filter(|(mode, _)| modes.contains(mode)) {
            let mut table = Interference::predict(trained.fit.model.form(form), stacks)?;
            match &trained.throttling {
                Some(throttling) => {
                    let ratios: Vec<f64> = stacks.iter().map(|s| throttling.ratio(s)).collect();
                    table = table.throttled_by(&ratios);
                }
                None => comparable = false,
            }
            tables.insert(mode, table);
        }
        Ok(Self { objective, tables, comparable })
    }

    /// The same, corrected by measurements of groups that ran, in the table of each one's mode.
    #[must_use]
    pub fn corrected_by(self, observations: &[CoRunObservation]) -> Self {
        let correct = |(mode, table): (SmtMode, Interference)| {
            let of_mode = |observation: &&CoRunObservation| {
                SmtMode::of(observation.others.len() + 1) == Some(mode)
            };
            (mode, table.corrected_by(observations.iter().filter(of_mode)))
        };
        Self { tables: self.tables.into_iter().map(correct).collect(), ..self }
    }

    /// May groups of different SMT modes, and threads alone, be compared? If
    /// not, only groups of one mode may.
    #[must_use]
    pub fn comparable(&self) -> bool {
        self.comparable
    }

    /// The table of a mode, if the model knows it.
    #[must_use]
    pub fn table(&self, mode: SmtMode) -> Option<&Interference> {
        self.tables.get(&mode)
    }

    /// Cost of a group on one core; lower is better. Infinite where nothing is
    /// known about groups of that size.
    #[must_use]
    pub fn cost(&self, group: &[usize]) -> f64 {
        let mode = match *group {
            [] => return 0.0,
            [_] => return self.objective.cost(1.0, 1.0),
            [a, b] => return self.pair(a, b),
            _ => SmtMode::of(group.len()),
        };
        let table = mode.and_then(|mode| self.table(mode));
        table.map_or(f64::INFINITY, |table| table.cost(self.objective, group))
    }

    /// Cost of a pair.
    #[must_use]
    pub fn pair(&self, a: usize, b: usize) -> f64 {
        let table = self.table(SmtMode::Smt2);
        table.map_or(f64::INFINITY, |table| table.pair_cost(self.objective, a, b))
    }

    /// Writes the costs of pairs of a thread with some others.
    pub fn pairs(&self, thread: usize, others: Range<usize>, costs: &mut [f64]) {
        match self.table(SmtMode::Smt2) {
            Some(table) => table.pair_costs(self.objective, thread, others, costs),
            None => costs.fill(f64::INFINITY),
        }
    }

    /// Costs of parts of a union of at most eight different threads, all of `size` threads; the same as
    /// [`Costs::cost`] of each, but for rounding. Masks name their threads, a bit for each of the union.
    pub fn parts(&self, union: &[usize], size: usize, masks: &[u8], costs: &mut Vec<f64>) {
        if let Some(table) = SmtMode::of(size).and_then(|mode| self.table(mode)) {
            return table.parts(self.objective, union, masks, costs);
        }
        let each = match size {
            0 => 0.0,
            1 => self.objective.cost(1.0, 1.0),
            _ => f64::INFINITY,
        };
        costs.clear();
        costs.resize(masks.len(), each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{close, model};

    fn stacks() -> Vec<Shares> {
        let stack = |at: u32| Shares::new((0..6).map(|i| f64::from(1 + (i * at) % 5)).collect());
        (1..=5).map(|at| stack(at).unwrap()).collect()
    }

    fn costs(model: &Model, modes: &[SmtMode]) -> Costs {
        let stacks = stacks();
        Costs::predict(model, (Form::Delta, Objective::Antt), modes, &stacks).unwrap()
    }

    #[test]
    fn groups_are_costed_by_the_table_of_their_mode() {
        let mut model = model();
        let mut wider = model.modes[&SmtMode::Smt2].clone();
        wider.throttling = Some(crate::Throttling { weights: vec![1.5; 6], error: 0.0 });
        model.modes.insert(SmtMode::Smt4, wider);
        let costs = costs(&model, &SmtMode::ALL);
        assert!(costs.comparable());
        let table = |mode| costs.table(mode).unwrap();
        assert_eq!(costs.pair(0, 1), table(SmtMode::Smt2).pair_cost(Objective::Antt, 0, 1));
        for group in [&[0, 1, 2][..], &[0, 1, 2, 3]] {
            assert_eq!(costs.cost(group), table(SmtMode::Smt4).cost(Objective::Antt, group));
        }
        let [two, four] = [SmtMode::Smt2, SmtMode::Smt4].map(|m| table(m).slowdown(0, &[0, 1]));
        assert!(close(two, four));
        let [two, four] =
            [SmtMode::Smt2, SmtMode::Smt4].map(|mode| table(mode).pair_cost(Objective::Antt, 0, 1));
        assert!(close(four, two * 1.5 / 1.1));
    }

    #[test]
    fn what_was_measured_corrects_the_table_of_its_mode() {
        let mut model = model();
        model.modes.insert(SmtMode::Smt4, model.modes[&SmtMode::Smt2].clone());
        let pair =
            |other, ipc| CoRunObservation { victim: 0, others: vec![other], quanta: 9.0, ipc };
        let plain = costs(&model, &SmtMode::ALL);
        let corrected = plain.clone().corrected_by(&[pair(1, 1.0), pair(2, 3.0)]);
        assert!(corrected.pair(0, 1) > plain.pair(0, 1) && corrected.pair(0, 2) < plain.pair(0, 2));
        assert_eq!(corrected.pair(0, 3), plain.pair(0, 3));
        assert_eq!(corrected.cost(&[0, 1, 2]), plain.cost(&[0, 1, 2]));
    }

    #[test]
    fn parts_of_a_union_cost_what_they_cost_one_by_one() {
        let mut model = model();
        model.modes.insert(SmtMode::Smt4, model.modes[&SmtMode::Smt2].clone());
        let costs = costs(&model, &SmtMode::ALL);
        let union = [4, 0, 2, 1, 3];
        for size in 1..=union.len() {
            let masks: Vec<u8> =
                (0..32_u8).filter(|mask| mask.count_ones() as usize == size).collect();
            let mut reported = Vec::new();
            costs.parts(&union, size, &masks, &mut reported);
            for (reported, mask) in reported.iter().zip(&masks) {
                let named = (0..union.len()).filter(|at| mask >> at & 1 == 1);
                let part: Vec<usize> = named.map(|at| union[at]).collect();
                let cost = costs.cost(&part);
                assert!(*reported == cost || close(*reported, cost), "{part:?} {reported} {cost}");
            }
            assert_eq!(reported.len(), masks.len());
        }
    }

    #[test]
    fn a_thread_alone_runs_at_isolated_speed_and_an_empty_core_costs_nothing() {
        let costs = costs(&model(), &[SmtMode::Smt2]);
        assert_eq!((costs.cost(&[0]), costs.cost(&[])), (1.0, 0.0));
    }

    #[test]
    fn groups_that_nothing_is_known_about_are_infinitely_dear() {
        let model = model();
        let costs = costs(&model, &[SmtMode::Smt2, SmtMode::Smt4]);
        for group in [&[0, 1, 2][..], &[0; 9]] {
            assert_eq!(costs.cost(group), f64::INFINITY);
        }
        assert!(
            Costs::predict(&model, (Form::Delta, Objective::Stp), &[], &stacks())
                .is_ok_and(|none| none.pair(0, 1) == f64::INFINITY)
        );
    }

    #[test]
    fn without_throttling_ratios_groups_of_different_modes_are_not_comparable() {
        let mut model = model();
        model.modes.get_mut(&SmtMode::Smt2).unwrap().throttling = None;
        assert!(!costs(&model, &[SmtMode::Smt2]).comparable());
    }

    #[test]
    fn a_stack_of_another_length_is_refused() {
        let odd = [Shares::new(vec![1.0; 3]).unwrap()];
        let by = (Form::Delta, Objective::Stp);
        let refused = Costs::predict(&model(), by, &[SmtMode::Smt2], &odd);
        assert_eq!(refused, Err(StackError::Length { got: 3, want: 6 }));
    }
}
