//! Perfect matchings: least weight, proof, ties, odd cases.

use proptest::prelude::*;
use symbiont_matching::{Matching, OddVertices, WeightError, Weights, perfect_matching};

use crate::brute_force::lightest;
use crate::families::{FAMILIES, instance};
use crate::instances::{Random, Stacks};

fn weights(cells: &[Vec<i64>]) -> Weights {
    Weights::from_integers(cells.len(), |i, j| cells[i][j]).unwrap()
}

fn weight_of(matching: &Matching, cells: &[Vec<i64>]) -> i128 {
    matching.pairs().map(|(i, j)| i128::from(cells[i][j])).sum()
}

fn assert_perfect(matching: &Matching) {
    for (i, &j) in matching.mates.iter().enumerate() {
        assert!(i != j && matching.mates[j] == i, "{:?}", matching.mates);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn weight_equals_brute_force(family in 0..FAMILIES.len(), half in 0_usize..=6, seed: u64) {
        let cells = instance(family, 2 * half, seed);
        let found = perfect_matching(&weights(&cells), []).unwrap();
        assert_perfect(&found);
        let (best, _) = lightest(2 * half, |i, j| cells[i][j], |_, _| false);
        prop_assert_eq!(weight_of(&found, &cells), best);
        prop_assert_eq!(found.lower_bound, best as f64);
        prop_assert_eq!(found.weight, best as f64);
    }

    #[test]
    fn ties_keep_as_many_previous_pairs_as_brute_force(
        family in 0..FAMILIES.len(), half in 1_usize..=6, seed: u64,
    ) {
        let cells = instance(family, 2 * half, seed);
        let mut random = Random::new(seed);
        let mut mates = vec![None; 2 * half];
        for _ in 0..half {
            let (i, j) = (random.below(2 * half), random.below(2 * half));
            if i != j && mates[i].is_none() && mates[j].is_none() {
                (mates[i], mates[j]) = (Some(j), Some(i));
            }
        }
        let preferred = |i: usize, j: usize| mates[i] == Some(j);
        let pairs = mates.iter().enumerate().filter_map(|(i, mate)| Some((i, (*mate)?)));
        let found = perfect_matching(&weights(&cells), pairs).unwrap();
        let best = lightest(2 * half, |i, j| cells[i][j], preferred);
        let kept = found.pairs().filter(|&(i, j)| preferred(i, j)).count() as i32;
        prop_assert_eq!((weight_of(&found, &cells), -kept), best);
    }

    /// Larger than brute force can do: the checked dual is the proof.
    #[test]
    fn weight_equals_the_lower_bound(family in 0..FAMILIES.len(), half in 7_usize..=40, seed: u64) {
        let cells = instance(family, 2 * half, seed);
        let found = perfect_matching(&weights(&cells), []).unwrap();
        assert_perfect(&found);
        prop_assert_eq!(weight_of(&found, &cells) as f64, found.lower_bound);
    }

    #[test]
    fn floats_are_matched_within_the_stated_rounding(half in 1_usize..=6, seed: u64) {
        let mut random = Random::new(seed);
        let scale = 10_f64.powf(580.0 * random.unit() - 280.0);
        let cells: Vec<Vec<f64>> =
            (0..2 * half).map(|_| (0..2 * half).map(|_| scale * (random.unit() - 0.5)).collect()).collect();
        let at = |i: usize, j: usize| cells[i.min(j)][i.max(j)];
        let weights = Weights::from_floats(2 * half, at).unwrap();
        let found = perfect_matching(&weights, []).unwrap();
        // On a grid 2⁵⁰ times finer than the range, by brute force.
        let fine = |i: usize, j: usize| (at(i, j) / scale * (1_u64 << 50) as f64) as i64;
        let (best, _) = lightest(2 * half, fine, |_, _| false);
        let best = best as f64 / (1_u64 << 50) as f64 * scale;
        let sum: f64 = found.pairs().map(|(i, j)| at(i, j)).sum();
        prop_assert!(sum <= best + weights.rounding() + 1e-14 * scale * half as f64);
        prop_assert!((sum - found.weight).abs() <= weights.rounding() + 1e-14 * scale * half as f64);
        prop_assert!(weights.rounding() <= 1e-11 * scale);
    }
}

/// A vertex that has many partners that are nearly as good.
#[test]
fn copies_of_few_programs_are_matched_at_least_cost() {
    for (threads, programs) in [(40, 1), (150, 3), (300, 14)] {
        let stacks = Stacks::copies(threads, programs, 1);
        let cost = |i, j| (stacks.loss(&[i, j]) * 8192.0).round();
        let weights = Weights::from_floats(threads, cost).unwrap();
        let found = perfect_matching(&weights, []).unwrap();
        assert_perfect(&found);
        let sum: f64 = found.pairs().map(|(i, j)| cost(i, j)).sum();
        assert!((sum - found.lower_bound).abs() <= weights.rounding());
    }
}

/// Floats that are whole numbers are held exactly.
#[test]
fn whole_floats_equal_integers() {
    for (family, name) in FAMILIES.iter().enumerate() {
        if *name == "large range" {
            continue;
        }
        let cells = instance(family, 30, 5);
        let whole = Weights::from_floats(30, |i, j| cells[i][j] as f64).unwrap();
        let found = perfect_matching(&whole, []).unwrap();
        let exact = perfect_matching(&weights(&cells), []).unwrap();
        assert_eq!(weight_of(&found, &cells), weight_of(&exact, &cells), "{name}");
        assert_eq!(found.weight, exact.weight, "{name}");
    }
}

#[test]
fn adding_to_all_weights_changes_nothing() {
    let cells = instance(0, 24, 3);
    let found = perfect_matching(&weights(&cells), []).unwrap();
    for shift in [-1_i64 << 60, -7, 1 << 60] {
        let shifted = Weights::from_integers(24, |i, j| cells[i][j] + shift).unwrap();
        assert_eq!(perfect_matching(&shifted, []).unwrap().mates, found.mates);
    }
}

#[test]
fn no_vertices_have_the_empty_matching() {
    let none = Weights::from_floats(0, |_, _| unreachable!()).unwrap();
    let found = perfect_matching(&none, []).unwrap();
    assert_eq!((found.mates.len(), found.weight, found.lower_bound), (0, 0.0, 0.0));
}

#[test]
fn two_vertices_are_mates() {
    for weight in [0.0, -3.5, 1e300] {
        let weights = Weights::from_floats(2, |_, _| weight).unwrap();
        let found = perfect_matching(&weights, []).unwrap();
        assert_eq!((found.mates, found.weight), (vec![1, 0], weight));
    }
}

#[test]
fn an_odd_number_of_vertices_is_refused() {
    for vertices in [1, 3, 15] {
        let weights = Weights::from_integers(vertices, |_, _| 1).unwrap();
        let refused = perfect_matching(&weights, []);
        assert_eq!(refused, Err(OddVertices { vertices }));
    }
}

#[test]
fn weights_that_are_no_numbers_are_refused_with_their_pair() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = Weights::from_floats(5, |i, j| if (i, j) == (2, 4) { value } else { 1.0 });
        let Err(WeightError::NotFinite { i: 2, j: 4, value: given }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(given.to_bits(), value.to_bits());
    }
}

#[test]
fn weights_too_far_apart_are_refused() {
    let limit = Weights::max_range(4);
    let far =
        |range: i64| Weights::from_integers(4, move |i, _| if i == 0 { 5 } else { 5 + range });
    assert!(perfect_matching(&far(limit).unwrap(), []).is_ok());
    assert!(matches!(far(limit + 1), Err(WeightError::RangeTooLarge { .. })));
    let whole = Weights::from_integers(4, |i, _| if i == 0 { i64::MIN } else { i64::MAX });
    assert!(matches!(whole, Err(WeightError::RangeTooLarge { .. })));
    let floats = Weights::from_floats(4, |i, _| if i == 0 { -f64::MAX } else { f64::MAX });
    assert!(matches!(floats, Err(WeightError::RangeTooLarge { .. })));
}

/// The largest weights that are let in, where duals go furthest.
#[test]
fn the_whole_range_is_matched_without_overflow() {
    for vertices in [4, 16, 64, 200] {
        let limit = Weights::max_range(vertices);
        let mut random = Random::new(9);
        let cells: Vec<Vec<bool>> =
            (0..vertices).map(|_| (0..vertices).map(|_| random.below(6) > 0).collect()).collect();
        let weights =
            Weights::from_integers(vertices, |i, j| if cells[i][j] { limit } else { 0 }).unwrap();
        let found = perfect_matching(&weights, []).unwrap();
        assert_eq!(found.weight, found.lower_bound);
    }
}
