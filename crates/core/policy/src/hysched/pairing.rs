//! Algorithm 1 of Navarro et al.: pairs of different categories, then of
//! balanced IPC.
//!
//! # Approach
//! The list of the paper holds the applications by category, those of one
//! category in ascending order of IPC (section 5, second step). Its first loop
//! takes the application at the tail and walks towards the head to the first
//! one of another category; both leave the list. That is the last application
//! of the category before. When only one category is left, the second loop
//! pairs tail with head.
//!
//! Two things the paper leaves open. *The order of the categories*: here the
//! category with the most applications comes last, so that what dominates is
//! paired with others as long as there are any; equally large ones in the order
//! of their numbers. *A tail without a partner*: it is of the last category
//! that is left, and the second loop pairs it within that.
//!
//! # Properties
//! - Each application is in exactly one pair, but one if their number is odd
//!   (`each_application_is_in_one_pair`).
//! - The order of the input does not matter beyond ties
//!   (`the_order_of_reading_does_not_matter`).

use std::collections::BTreeMap;

/// What the algorithm knows of an application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Application {
    /// Its dominant category, by number.
    pub category: usize,
    /// Instructions per cycle.
    pub ipc: f64,
}

/// Which of the two criteria made a pair (section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// The applications are of different categories.
    CombineCategories,
    /// They are of one category and their IPC balances.
    BalanceIpc,
}

/// Pairs, by index into the applications.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairing {
    /// Which parties share a core, and why, in the order in which they were made.
    pub pairs: Vec<(usize, usize, Criterion)>,
    /// The party that is left over, if their number is odd.
    pub alone: Option<usize>,
}

impl Pairing {
    /// Pairs of one category.
    #[must_use]
    pub fn same_category(&self) -> usize {
        self.pairs.iter().filter(|(.., criterion)| *criterion == Criterion::BalanceIpc).count()
    }
}

/// Makes pairs.
#[must_use]
pub fn pair(applications: &[Application]) -> Pairing {
    let mut list = by_category(applications);
    let mut pairing = Pairing::default();
    // Criterion 1, as long as there are two categories.
    while let [.., partners, tails] = &mut list[..] {
        if let (Some(tail), Some(partner)) = (tails.pop(), partners.pop()) {
            pairing.pairs.push((tail, partner, Criterion::CombineCategories));
        }
        list.retain(|category| !category.is_empty());
    }
    // Criterion 2.
    let mut rest: &[usize] = list.first().map_or(&[], Vec::as_slice);
    while let [head, middle @ .., tail] = rest {
        pairing.pairs.push((*tail, *head, Criterion::BalanceIpc));
        rest = middle;
    }
    pairing.alone = rest.first().copied();
    pairing
}

/// The fewest pairs of one category that any `pairs` pairs of these have: only
/// the largest category can be too large for the others.
#[must_use]
pub fn fewest_same_category(applications: &[Application], pairs: usize) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for application in applications {
        *counts.entry(application.category).or_default() += 1;
    }
    let largest = counts.into_values().max().unwrap_or(0);
    pairs.saturating_sub(applications.len() - largest)
}

/// Indices by category in ascending order of IPC; the largest category last.
fn by_category(applications: &[Application]) -> Vec<Vec<usize>> {
    let mut categories: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, application) in applications.iter().enumerate() {
        categories.entry(application.category).or_default().push(index);
    }
    let ipc = |index: &usize| applications[*index].ipc;
    let mut list: Vec<Vec<usize>> = categories.into_values().collect();
    for category in &mut list {
        category.sort_by(|a, b| ipc(a).total_cmp(&ipc(b)));
    }
    list.sort_by_key(Vec::len);
    list
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Criterion::{BalanceIpc, CombineCategories};
    use super::*;

    fn applications(list: &[(usize, f64)]) -> Vec<Application> {
        list.iter().map(|&(category, ipc)| Application { category, ipc }).collect()
    }

    #[test]
    fn two_categories_pair_from_their_ends() {
        // List of the paper: 0: [1, 0], 1: [3, 2].
        let pairing = pair(&applications(&[(0, 1.5), (0, 0.5), (1, 2.0), (1, 1.0)]));
        assert_eq!(pairing.pairs, [(2, 0, CombineCategories), (3, 1, CombineCategories)]);
        assert_eq!((pairing.alone, pairing.same_category()), (None, 0));
    }

    #[test]
    fn one_category_balances_ipc() {
        let pairing = pair(&applications(&[(3, 0.4), (3, 1.9), (3, 1.0), (3, 1.2), (3, 0.1)]));
        assert_eq!(pairing.pairs, [(1, 4, BalanceIpc), (3, 0, BalanceIpc)]);
        assert_eq!(pairing.alone, Some(2));
    }

    #[test]
    fn what_dominates_is_paired_with_others_first() {
        // Four of category 0, one of 1, one of 2: only one pair must be of 0 alone.
        let list = applications(&[(0, 0.1), (0, 0.2), (0, 0.3), (0, 0.4), (1, 1.0), (2, 2.0)]);
        let pairing = pair(&list);
        assert_eq!(pairing.pairs[0], (3, 5, CombineCategories));
        assert_eq!(pairing.pairs[1], (2, 4, CombineCategories));
        assert_eq!(pairing.pairs[2], (1, 0, BalanceIpc));
        assert_eq!(fewest_same_category(&list, 3), 1);
    }

    #[test]
    fn the_algorithm_may_make_more_equal_pairs_than_it_must() {
        // 3, 3 and 2: it empties the two large categories against each other.
        let list: Vec<_> = [0, 0, 0, 1, 1, 1, 2, 2].map(|category| (category, 1.0)).to_vec();
        let pairing = pair(&applications(&list));
        assert_eq!(pairing.same_category(), 1);
        assert_eq!(fewest_same_category(&applications(&list), 4), 0);
    }

    #[test]
    fn all_different_pairs_neighbours_and_one_stays_alone() {
        let pairing = pair(&applications(&[(0, 1.0), (1, 1.0), (2, 1.0)]));
        assert_eq!(pairing.pairs, [(2, 1, CombineCategories)]);
        assert_eq!(pairing.alone, Some(0));
        assert_eq!(pair(&[]), Pairing::default());
        assert_eq!(pair(&applications(&[(5, 1.0)])).alone, Some(0));
    }

    fn any_applications() -> impl Strategy<Value = Vec<Application>> {
        let any = (0usize..5, 0.0..4.0).prop_map(|(category, ipc)| Application { category, ipc });
        prop::collection::vec(any, 0..40)
    }

    proptest! {
        #[test]
        fn each_application_is_in_one_pair(list in any_applications()) {
            let pairing = pair(&list);
            let mut seen: Vec<usize> =
                pairing.pairs.iter().flat_map(|(a, b, _)| [*a, *b]).chain(pairing.alone).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..list.len()).collect::<Vec<_>>());
            prop_assert_eq!(pairing.alone.is_some(), list.len() % 2 == 1);
            for (a, b, criterion) in &pairing.pairs {
                let same = list[*a].category == list[*b].category;
                prop_assert_eq!(same, *criterion == BalanceIpc);
            }
            let fewest = fewest_same_category(&list, pairing.pairs.len());
            prop_assert!(pairing.same_category() >= fewest);
        }

        #[test]
        fn the_order_of_reading_does_not_matter(list in any_applications(), by in 0usize..40) {
            let mut turned = list.clone();
            turned.rotate_left(by % list.len().max(1));
            let made = |list: &[Application]| {
                let of = |i: usize| (list[i].category, list[i].ipc.to_bits());
                let mut pairs: Vec<_> =
                    pair(list).pairs.iter().map(|(a, b, _)| (of(*a), of(*b))).collect();
                pairs.sort_unstable();
                pairs
            };
            prop_assert_eq!(made(&list), made(&turned));
        }
    }
}
