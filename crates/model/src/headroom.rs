//! How much of what pairing can gain a predictor captures.
//!
//! # Problem
//! Low error alone is worth little: victim's mean plus aggressor's mean may
//! explain nearly all of the slowdown, and still say nothing about who should
//! go with whom. What counts is the throughput of the coschedule that a
//! prediction leads to.
//!
//! # Approach
//! Match on the prediction, and rate the matching by the true slowdowns:
//! captured = (STP − STP of random) / (STP of oracle − STP of random). Random
//! is the mean over all perfect matchings, in which every pair is equally
//! likely; the oracle matches on the true slowdowns. The matching itself comes
//! from the caller, so this room does not depend on one.

use crate::{Interference, Objective};

/// STP of a whole coschedule under three deciders.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headroom {
    /// Mean over all matchings.
    pub random: f64,
    /// Matched on the truth.
    pub oracle: f64,
    /// Matched on the prediction.
    pub achieved: f64,
}

impl Headroom {
    /// Share of the headroom that was captured: 0 at random, 1 at the oracle;
    /// none where there is no headroom.
    #[must_use]
    pub fn captured(&self) -> Option<f64> {
        let room = self.oracle - self.random;
        (room > 1e-12 * self.random.abs()).then(|| (self.achieved - self.random) / room)
    }

    /// STP of the oracle over that of random.
    #[must_use]
    pub fn gain_of_oracle(&self) -> f64 {
        self.oracle / self.random
    }
}

/// Headroom that matching on `predicted` for `objective` captures of `truth`.
///
/// `matching` gets the number of threads and the cost of a pair, and gives
/// pairs. None if the tables differ in size, or have fewer than two threads.
pub fn headroom(
    truth: &Interference,
    predicted: &Interference,
    objective: Objective,
    mut matching: impl FnMut(usize, &dyn Fn(usize, usize) -> f64) -> Vec<(usize, usize)>,
) -> Option<Headroom> {
    let n = truth.len();
    if n < 2 || predicted.len() != n {
        return None;
    }
    let stp = |pairs: &[(usize, usize)]| -> f64 {
        pairs.iter().map(|&(a, b)| -truth.pair_cost(Objective::Stp, a, b)).sum()
    };
    let oracle = stp(&matching(n, &|a, b| truth.pair_cost(Objective::Stp, a, b)));
    let achieved = stp(&matching(n, &|a, b| predicted.pair_cost(objective, a, b)));
    let all: Vec<(usize, usize)> = (0..n).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let random = stp(&all) / all.len() as f64 * (n / 2) as f64;
    Some(Headroom { random, oracle, achieved })
}

#[cfg(test)]
mod variants;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{best_matching, close};

    fn table(n: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
        prop::collection::vec(prop::collection::vec(1.0..2.0_f64, n), n)
    }

    #[test]
    fn random_is_the_mean_over_all_matchings() {
        let slowdowns = [
            [1.0, 1.2, 1.5, 1.1],
            [1.3, 1.0, 1.4, 2.0],
            [1.1, 1.9, 1.0, 1.6],
            [1.2, 1.3, 1.7, 1.0],
        ];
        let slowdowns: Vec<Vec<f64>> = slowdowns.iter().map(|row| row.to_vec()).collect();
        let stp = |pairs: [(usize, usize); 2]| -> f64 {
            pairs.iter().map(|&(a, b)| 1.0 / slowdowns[a][b] + 1.0 / slowdowns[b][a]).sum()
        };
        let all = [stp([(0, 1), (2, 3)]), stp([(0, 2), (1, 3)]), stp([(0, 3), (1, 2)])];
        let truth = Interference::measured(&slowdowns).unwrap();
        let room = headroom(&truth, &truth, Objective::Stp, best_matching).unwrap();
        assert!(close(room.random, all.iter().sum::<f64>() / 3.0));
        assert!(close(room.oracle, all.into_iter().fold(0.0, f64::max)));
        assert!(close(room.captured().unwrap(), 1.0));
    }

    #[test]
    fn where_all_pairs_are_alike_there_is_no_headroom() {
        let truth = Interference::measured(&vec![vec![1.5; 4]; 4]).unwrap();
        let room = headroom(&truth, &truth, Objective::Stp, best_matching).unwrap();
        assert_eq!(room.captured(), None);
    }

    #[test]
    fn tables_of_different_size_have_no_headroom() {
        let two = Interference::measured(&vec![vec![1.5; 2]; 2]).unwrap();
        let four = Interference::measured(&vec![vec![1.5; 4]; 4]).unwrap();
        assert_eq!(headroom(&two, &four, Objective::Stp, best_matching), None);
    }

    proptest! {
        #[test]
        fn no_prediction_captures_more_than_the_oracle(truth in table(6), guess in table(6)) {
            let truth = Interference::measured(&truth).unwrap();
            let guess = Interference::measured(&guess).unwrap();
            for objective in Objective::ALL {
                let room = headroom(&truth, &guess, objective, best_matching).unwrap();
                prop_assert!(room.achieved <= room.oracle + 1e-12);
                prop_assert!(room.random <= room.oracle + 1e-12);
            }
        }
    }
}
