//! The interference table: what every thread would cost every other.
//!
//! Co-runners only add up in equations 1 to 3 ([`Coefficients`]), so n² numbers give the
//! slowdown of every thread in every group: own + Σ impact of the co-runners.
//! Making the table takes n² r multiplications for r factors; a pair's cost is
//! two look-ups then, and a group of g threads g (g − 1). A search that splits a union of threads in all ways
//! asks for all of its parts at once ([`Interference::parts`]). What was measured of groups that ran
//! corrects what is predicted of them ([`Interference::corrected_by`]).

mod correction;

use std::ops::Range;

pub use correction::CoRunObservation;

use crate::forward::{Coefficients, LEAST_SLOWDOWN, Terms, check};
use crate::{Objective, Shares, StackError};

/// Slowdowns that a set of threads would cause each other on a core.
#[derive(Debug, Clone, PartialEq)]
pub struct Interference {
    own: Vec<f64>,
    /// Row: victim; column: co-runner.
    impact: Vec<f64>,
    /// CPI throttled over CPI isolated.
    throttling: Vec<f64>,
}

impl Interference {
    /// Predicts all slowdowns among threads from their throttled stacks.
    ///
    /// # Errors
    /// [`StackError::Length`] when a stack has another number of components
    /// than the form.
    pub fn predict(coefficients: &Coefficients, stacks: &[Shares]) -> Result<Self, StackError> {
        let terms = coefficients.terms();
        let all: Vec<&Shares> = stacks.iter().collect();
        check(&all, terms.len())?;
        let sum = |stack: &Shares, of: fn(&Terms) -> f64| -> f64 {
            terms.iter().zip(stack.parts()).map(|(terms, share)| of(terms) * share).sum()
        };
        let constant: f64 = terms.iter().map(|terms| terms.alpha).sum();
        let own = stacks.iter().map(|stack| constant + sum(stack, |terms| terms.beta)).collect();
        let given: Vec<f64> = stacks.iter().map(|stack| sum(stack, |terms| terms.gamma)).collect();
        // Component by component over all co-runners, so that no sum waits for the one before.
        let interacting = || terms.iter().enumerate().filter(|(_, terms)| terms.delta != 0.0);
        let column = |at: usize| -> Vec<f64> {
            stacks.iter().map(|stack| stack.parts().get(at).copied().unwrap_or(0.0)).collect()
        };
        let columns: Vec<(f64, Vec<f64>)> =
            interacting().map(|(at, terms)| (terms.delta, column(at))).collect();
        let mut impact = Vec::with_capacity(stacks.len() * stacks.len());
        for victim in 0..stacks.len() {
            let row = impact.len();
            impact.extend_from_slice(&given);
            for (delta, column) in &columns {
                let suffered = delta * column.get(victim).copied().unwrap_or(0.0);
                for (impact, share) in impact[row..].iter_mut().zip(column) {
                    *impact += suffered * share;
                }
            }
        }
        let throttling = vec![1.0; stacks.len()];
        Ok(Self { own, impact, throttling })
    }

    /// From measured slowdowns of pairs, victim by co-runner, as an oracle
    /// has them. A table that is not square, or not finite, gives none.
    #[must_use]
    pub fn measured(slowdowns: &[Vec<f64>]) -> Option<Self> {
        let n = slowdowns.len();
        let square = slowdowns.iter().all(|row| row.len() == n);
        let impact: Vec<f64> = slowdowns.iter().flatten().copied().collect();
        let finite = impact.iter().all(|slowdown| slowdown.is_finite());
        let (own, throttling) = (vec![0.0; n], vec![1.0; n]);
        (square && finite).then_some(Self { own, impact, throttling })
    }

    /// Refers costs to each thread's isolated speed: `ratios` are CPI
    /// throttled over CPI isolated, by thread. Needed to compare groups of
    /// different SMT modes. Ratios that are not positive and finite, or
    /// missing, leave 1.
    #[must_use]
    pub fn throttled_by(mut self, ratios: &[f64]) -> Self {
        for (throttling, &ratio) in self.throttling.iter_mut().zip(ratios) {
            if ratio > 0.0 && ratio.is_finite() {
                *throttling = ratio;
            }
        }
        self
    }

    /// Number of threads.
    #[must_use]
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Are there no threads?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Co-running CPI over throttled CPI of a thread in a group. Members that
    /// are not in the table count for nothing; a thread alone has slowdown 1.
    #[must_use]
    pub fn slowdown(&self, thread: usize, group: &[usize]) -> f64 {
        let Some(own) = self.own.get(thread) else { return 1.0 };
        let row = self.impact.get(thread * self.len()..).unwrap_or_default();
        let row = row.get(..self.len()).unwrap_or_default();
        let others = group.iter().filter(|&&other| other != thread);
        let impacts = others.filter_map(|&other| row.get(other));
        let (sum, count) = impacts.fold((*own, 0), |(sum, count), one| (sum + one, count + 1));
        if count == 0 { 1.0 } else { sum.max(LEAST_SLOWDOWN) }
    }

    /// Cost of running a group on a core; lower is better. A group of one is
    /// a thread alone on its core, at isolated speed.
    #[must_use]
    pub fn cost(&self, objective: Objective, group: &[usize]) -> f64 {
        if let [_] = group {
            return objective.cost(1.0, 1.0);
        }
        let one = |&thread: &usize| {
            let throttling = self.throttling.get(thread).copied().unwrap_or(1.0);
            objective.cost(self.slowdown(thread, group), throttling)
        };
        group.iter().map(one).sum()
    }

    /// Cost of a pair; the same as [`Interference::cost`] of the two.
    #[must_use]
    pub fn pair_cost(&self, objective: Objective, a: usize, b: usize) -> f64 {
        if a == b || a.max(b) >= self.len() {
            return self.cost(objective, &[a, b]);
        }
        let one = |victim: usize, other: usize| {
            let sum = self.own[victim] + self.impact[victim * self.len() + other];
            objective.cost(sum.max(LEAST_SLOWDOWN), self.throttling[victim])
        };
        one(a, b) + one(b, a)
    }

    /// Writes the costs of pairs of a thread with some others: each the same as
    /// [`Interference::pair_cost`], but for rounding.
    pub fn pair_costs(
        &self,
        objective: Objective,
        thread: usize,
        others: Range<usize>,
        costs: &mut [f64],
    ) {
        let n = self.len();
        let fits = thread < n && others.start <= others.end && others.end <= n;
        if !fits || others.contains(&thread) {
            for (cost, other) in costs.iter_mut().zip(others) {
                *cost = self.pair_cost(objective, thread, other);
            }
            return;
        }
        let (own, throttling) = (self.own[thread], self.throttling[thread]);
        let suffered = &self.impact[thread * n..][others.clone()];
        for (cost, impact) in costs.iter_mut().zip(suffered) {
            *cost = objective.cost((own + impact).max(LEAST_SLOWDOWN), throttling);
        }
        for (cost, other) in costs.iter_mut().zip(others) {
            let sum = self.own[other] + self.impact[other * n + thread];
            *cost += objective.cost(sum.max(LEAST_SLOWDOWN), self.throttling[other]);
        }
    }

    /// Costs of parts of a union of at most eight different threads; the same as
    /// [`Interference::cost`] of each, but for rounding. Each part has two threads or more, which its
    /// mask names: a bit for each thread of the union.
    ///
    /// What each thread suffers is looked up once and added up for four others at a time, so that
    /// all 70 halves of eight threads take about as long as a few of them do one by one.
    pub fn parts(&self, objective: Objective, union: &[usize], masks: &[u8], costs: &mut Vec<f64>) {
        let mut suffered = [([0.0; 16], [0.0; 16], 1.0); 8];
        for ((at, &victim), (low, high, throttling)) in union.iter().enumerate().zip(&mut suffered)
        {
            let row = self.impact.get(victim * self.len()..).unwrap_or_default();
            let mut impacts = [0.0; 8];
            for (impact, &other) in impacts.iter_mut().zip(union) {
                *impact = row.get(other).copied().unwrap_or(0.0);
            }
            if let Some(own) = impacts.get_mut(at) {
                *own = self.own.get(victim).copied().unwrap_or(1.0);
            }
            *low = subsets(&impacts[..4]);
            *high = subsets(&impacts[4..]);
            *throttling = self.throttling.get(victim).copied().unwrap_or(1.0);
        }
        let cost = |&mask: &u8| {
            let (mut left, mut sum) = (mask, 0.0);
            while left != 0 {
                let (low, high, throttling) = &suffered[left.trailing_zeros() as usize];
                let slowdown = low[usize::from(mask & 15)] + high[usize::from(mask >> 4)];
                sum += objective.cost(slowdown.max(LEAST_SLOWDOWN), *throttling);
                left &= left - 1;
            }
            sum
        };
        costs.clear();
        costs.extend(masks.iter().map(cost));
    }
}

/// Sums of all subsets of four numbers, by the bits that name them.
fn subsets(of: &[f64]) -> [f64; 16] {
    let mut sums = [0.0; 16];
    for mask in 1..16_usize {
        let last = of.get(mask.trailing_zeros() as usize).copied().unwrap_or(0.0);
        sums[mask] = sums[mask & (mask - 1)] + last;
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stacks() -> impl Strategy<Value = Vec<Shares>> {
        let shares = prop::collection::vec(0.01..1.0_f64, 5).prop_map(|v| Shares::new(v).unwrap());
        prop::collection::vec(shares, 2..9)
    }

    fn terms(delta: f64) -> impl Strategy<Value = Coefficients> {
        let one = (0.0..0.1_f64, 0.8..1.2_f64, 0.0..0.4_f64)
            .prop_map(move |(alpha, beta, gamma)| Terms { alpha, beta, gamma, delta });
        prop::collection::vec(one, 5).prop_map(|terms| Coefficients::new(terms).unwrap())
    }

    proptest! {
        #[test]
        fn the_table_says_what_the_equations_say(c in terms(0.3), stacks in stacks()) {
            let table = Interference::predict(&c, &stacks).unwrap();
            let group: Vec<&Shares> = stacks.iter().collect();
            let all: Vec<usize> = (0..stacks.len()).collect();
            for (at, prediction) in c.forward(&group).unwrap().iter().enumerate() {
                prop_assert!((table.slowdown(at, &all) - prediction.slowdown).abs() < 1e-12);
            }
        }

        /// Without δ the sum of slowdowns is the same for every coschedule.
        #[test]
        fn without_interaction_no_pairing_is_better_than_another(
            c in terms(0.0),
            stacks in stacks(),
            (one, other) in (Just((0..8).collect::<Vec<usize>>()), Just((0..8).collect::<Vec<_>>()))
                .prop_flat_map(|(a, b)| (Just(a).prop_shuffle(), Just(b).prop_shuffle())),
            size in prop::sample::select(vec![2_usize, 4]),
        ) {
            let stacks: Vec<Shares> = stacks.iter().cycle().take(8).cloned().collect();
            let table = Interference::predict(&c, &stacks).unwrap();
            let total = |order: &[usize], objective| -> f64 {
                order.chunks(size).map(|group| table.cost(objective, group)).sum()
            };
            for objective in [Objective::Slowdown, Objective::Antt] {
                prop_assert!((total(&one, objective) - total(&other, objective)).abs() < 1e-9);
            }
        }

        #[test]
        fn predictions_are_finite_and_positive(
            parts in prop::collection::vec(prop::array::uniform4(-5.0..5.0_f64), 5),
            stacks in stacks(),
        ) {
            let terms = parts.iter().map(|&[alpha, beta, gamma, delta]| {
                Terms { alpha, beta, gamma, delta }
            });
            let c = Coefficients::new(terms.collect()).unwrap();
            let group: Vec<&Shares> = stacks.iter().collect();
            for prediction in c.forward(&group).unwrap() {
                prop_assert!(prediction.slowdown.is_finite());
                prop_assert!(prediction.slowdown >= LEAST_SLOWDOWN);
                prop_assert!(prediction.parts.iter().all(|p| p.is_finite() && *p >= 0.0));
            }
            let table = Interference::predict(&c, &stacks).unwrap();
            for objective in Objective::ALL {
                prop_assert!(table.pair_cost(objective, 0, 1).is_finite());
            }
        }
    }

    proptest! {
        #[test]
        fn parts_of_a_union_cost_what_they_cost_one_by_one(
            // Large ones of either sign bring slowdowns below the least.
            c in (-5.0..5.0_f64).prop_flat_map(terms),
            stacks in stacks(),
            ratios in prop::collection::vec(1.0..2.0_f64, 8),
        ) {
            let n = stacks.len();
            let made = Interference::predict(&c, &stacks).unwrap();
            let table = made.throttled_by(&ratios);
            let union: Vec<usize> = (0..n).rev().collect();
            let masks: Vec<u8> = (0..=u8::MAX >> (8 - n)).filter(|m| m.count_ones() > 1).collect();
            for objective in Objective::ALL {
                let mut costs = vec![7.0];
                table.parts(objective, &union, &masks, &mut costs);
                prop_assert_eq!(costs.len(), masks.len());
                for (cost, mask) in costs.iter().zip(&masks) {
                    let named = (0..n).filter(|at| mask >> at & 1 == 1).map(|at| union[at]);
                    let part: Vec<usize> = named.collect();
                    prop_assert!((cost - table.cost(objective, &part)).abs() < 1e-9);
                    if let [a, b] = part[..] {
                        let pair = table.pair_cost(objective, a, b);
                        prop_assert!((pair - table.cost(objective, &part)).abs() < 1e-12);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn pairs_cost_together_what_they_cost_one_by_one(
            c in (-5.0..5.0_f64).prop_flat_map(terms), stacks in stacks(), thread in 0..10_usize,
            (start, end) in (0..10_usize, 0..10_usize),
        ) {
            let table = Interference::predict(&c, &stacks).unwrap().throttled_by(&[1.5]);
            for objective in Objective::ALL {
                let mut costs = vec![7.0; end.saturating_sub(start)];
                table.pair_costs(objective, thread, start..end, &mut costs);
                for (cost, other) in costs.iter().zip(start..end) {
                    let one = table.pair_cost(objective, thread, other);
                    prop_assert!((cost - one).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn with_interaction_unlike_threads_go_together() {
        let c = Coefficients::new(vec![Terms { alpha: 0.0, beta: 1.0, gamma: 0.1, delta: 0.5 }; 2]);
        let stack = |a: f64| Shares::new(vec![a, 1.0 - a]).unwrap();
        let stacks = [stack(0.9), stack(0.9), stack(0.1), stack(0.1)];
        let table = Interference::predict(&c.unwrap(), &stacks).unwrap();
        for objective in Objective::ALL {
            let pair = |a, b| table.pair_cost(objective, a, b);
            assert!(pair(0, 2) + pair(1, 3) < pair(0, 1) + pair(2, 3), "{objective:?}");
        }
    }

    #[test]
    fn a_thread_alone_suffers_nothing() {
        let table = Interference::measured(&[vec![9.0, 2.0], vec![3.0, 9.0]]).unwrap();
        assert_eq!(table.slowdown(0, &[0]), 1.0);
        assert_eq!(table.slowdown(0, &[0, 7]), 1.0);
        assert_eq!(table.cost(Objective::Stp, &[1]), -1.0);
        assert_eq!(table.cost(Objective::Slowdown, &[]), 0.0);
        assert_eq!(table.slowdown(1, &[0, 1]), 3.0);
        assert_eq!(table.pair_cost(Objective::Slowdown, 0, 1), 5.0);
    }

    #[test]
    fn throttling_makes_being_alone_worth_more() {
        let table = Interference::measured(&[vec![1.0, 1.5], vec![1.5, 1.0]]).unwrap();
        let free = table.pair_cost(Objective::Stp, 0, 1);
        let table = table.throttled_by(&[1.25, f64::NAN]);
        let paid = table.pair_cost(Objective::Stp, 0, 1);
        assert!((free + 2.0 / 1.5).abs() < 1e-12);
        assert!((paid + 1.0 / (1.5 * 1.25) + 1.0 / 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_table_that_is_not_square_is_refused() {
        assert_eq!(Interference::measured(&[vec![1.0], vec![1.0, 1.0]]), None);
        assert_eq!(Interference::measured(&[vec![f64::NAN]]), None);
    }
}
