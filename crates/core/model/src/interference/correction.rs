//! Online correction: measurements of groups that ran, in place of predictions.
//!
//! # Problem
//! A model predicts what threads would do on one core. Of groups that ran it is known what they did, and
//! a model that errs on a group would choose it again and again. But what is known is how many
//! instructions a cycle gave, not how many it would give alone.
//!
//! # Approach
//! A thread's instructions per cycle alone are taken to be so many that its predicted speeds are right on
//! average over the co-runners with which it was measured. What it did beyond what is predicted of co-runners is
//! shared alike among the co-runners, and counts the more the longer they were together: w/(w + 1) of it
//! after w quanta, as if the prediction had been seen for one quantum ([`PREDICTED`]).
//!
//! So what ran is judged by what it did, and what did not by the model; a group of which too much was
//! hoped is tried, and known from then on. Snavely and Tullsen (*Symbiotic jobscheduling for a
//! simultaneous multithreading processor*, ASPLOS 2000) try groups at random in a phase of their own;
//! here the model says which are worth a try, and nothing but that is tried.
//!
//! # Properties
//! - A pair that was together for long costs what it did (`a_pair_that_ran_is_judged_by_what_it_did`),
//!   in whatever unit that was counted (`only_ratios_of_measurements_matter`). Of wider groups those
//!   are blamed that were there when it was slow (`a_group_that_ran_is_judged_by_what_it_did`).
//! - An observation that does not fit changes nothing (`an_observation_that_does_not_fit_changes_nothing`).

use std::collections::BTreeMap;

use super::Interference;

/// Quanta that a prediction counts for.
const PREDICTED: f64 = 1.0;

/// A measurement of a thread that co-ran with others.
#[derive(Debug, Clone, PartialEq)]
pub struct CoRunObservation {
    /// The thread, by its number in the table.
    pub victim: usize,
    /// Its co-runners.
    pub others: Vec<usize>,
    /// For how many quanta; old ones may count less.
    pub quanta: f64,
    /// Instructions per cycle, mean over them.
    pub ipc: f64,
}

impl Interference {
    /// The same, corrected by what was measured. An observation of threads that are not in the table,
    /// or of no co-runners, or with figures that are not positive, counts for nothing.
    #[must_use]
    pub fn corrected_by<'e>(mut self, all: impl IntoIterator<Item = &'e CoRunObservation>) -> Self {
        let mut by_victim: BTreeMap<usize, Vec<&CoRunObservation>> = BTreeMap::new();
        for observation in all.into_iter().filter(|observation| self.fits(observation)) {
            by_victim.entry(observation.victim).or_default().push(observation);
        }
        for (victim, observed) in by_victim {
            let of = |figure: &dyn Fn(&CoRunObservation) -> f64| -> f64 {
                observed.iter().map(|observation| observation.quanta * figure(observation)).sum()
            };
            let measured = of(&|observation| observation.ipc);
            let alone = measured / of(&|e| self.slowdown(victim, &e.others).recip());
            let mut beyond: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
            for CoRunObservation { others, quanta, ipc, .. } in observed {
                let more = alone / ipc - self.sum(victim, others);
                for &other in others {
                    let (sum, weight) = beyond.entry(other).or_default();
                    *sum += quanta * more / others.len() as f64;
                    *weight += quanta;
                }
            }
            let row = victim * self.len();
            for (other, (sum, weight)) in beyond {
                self.impact[row + other] += sum / (weight + PREDICTED);
            }
        }
        self
    }

    fn fits(&self, observation: &CoRunObservation) -> bool {
        let &CoRunObservation { victim, ref others, quanta, ipc } = observation;
        let known = |&other: &usize| other < self.len() && other != victim;
        let positive = |figure: f64| figure > 0.0 && figure.is_finite();
        let there = victim < self.len() && !others.is_empty() && others.iter().all(known);
        there && positive(quanta) && positive(ipc)
    }

    /// What own and impacts add up to with these co-runners.
    fn sum(&self, victim: usize, others: &[usize]) -> f64 {
        let row = victim * self.len();
        self.own[victim] + others.iter().map(|other| self.impact[row + other]).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Objective;

    const LONG: f64 = 1e9;

    /// Four threads that the model takes for equal.
    fn equal() -> Interference {
        Interference::measured(&vec![vec![1.5; 4]; 4]).unwrap()
    }

    fn pair(victim: usize, other: usize, quanta: f64, ipc: f64) -> CoRunObservation {
        CoRunObservation { victim, others: vec![other], quanta, ipc }
    }

    #[test]
    fn a_pair_that_ran_is_judged_by_what_it_did() {
        // Thread 0 is half as fast again with 2 as with 1.
        let ran = [pair(0, 1, LONG, 1.0), pair(0, 2, LONG, 1.5)];
        let table = equal().corrected_by(&ran);
        let speed = |other: usize| table.slowdown(0, &[0, other]).recip();
        assert!((speed(2) / speed(1) - 1.5).abs() < 1e-6);
        // On average it is as fast as was predicted.
        assert!((speed(1) + speed(2) - 2.0 / 1.5).abs() < 1e-6);
        assert_eq!(table.slowdown(0, &[0, 3]), 1.5, "a pair that did not run is predicted");
        assert_eq!(table.slowdown(1, &[1, 0]), 1.5);
        // One quantum counts for half.
        let once = equal().corrected_by(&ran.map(|ran| CoRunObservation { quanta: 1.0, ..ran }));
        let want = (1.5 + speed(2).recip()) / 2.0;
        assert!((once.slowdown(0, &[0, 2]) - want).abs() < 1e-6);
    }

    #[test]
    fn a_group_that_ran_is_judged_by_what_it_did() {
        let group = |others: [usize; 2], ipc: f64| CoRunObservation {
            victim: 0,
            others: others.into(),
            quanta: LONG,
            ipc,
        };
        let table = equal().corrected_by(&[group([1, 2], 1.0), group([1, 3], 2.0)]);
        let speed = |others: [usize; 2]| table.slowdown(0, &others).recip();
        // Of the two the one that both met is not to blame.
        assert!(speed([1, 3]) > speed([2, 3]) && speed([2, 3]) > speed([1, 2]));
    }

    #[test]
    fn an_observation_that_does_not_fit_changes_nothing() {
        let odd = [
            pair(0, 9, 1.0, 1.0),
            pair(9, 0, 1.0, 1.0),
            pair(0, 0, 1.0, 1.0),
            pair(0, 1, 0.0, 1.0),
            pair(0, 1, 1.0, f64::NAN),
            pair(0, 1, f64::INFINITY, 1.0),
            pair(0, 1, 1.0, -1.0),
            CoRunObservation { victim: 0, others: Vec::new(), quanta: 1.0, ipc: 1.0 },
        ];
        assert_eq!(equal().corrected_by(&odd), equal());
    }

    proptest! {
        #[test]
        fn only_ratios_of_measurements_matter(
            ipcs in prop::collection::vec(0.1..4.0_f64, 3), unit in 0.01..100.0_f64,
        ) {
            let reported = |unit: f64| -> Vec<CoRunObservation> {
                ipcs.iter().enumerate().map(|(at, ipc)| pair(0, at + 1, 3.0, unit * ipc)).collect()
            };
            let [one, other] =
                [1.0, unit].map(|unit| equal().corrected_by(&reported(unit)));
            for at in 1..4 {
                let cost = |table: &Interference| table.pair_cost(Objective::Stp, 0, at);
                prop_assert!((cost(&one) - cost(&other)).abs() < 1e-9);
                prop_assert!(cost(&one).is_finite());
            }
        }
    }
}
