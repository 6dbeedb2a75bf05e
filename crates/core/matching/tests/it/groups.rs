//! Groupings: partitions, least cost, threads alone, ties, refusals.

use std::ops::Range;

use proptest::prelude::*;
use symbiont_matching::{GroupCosts, GroupError, Request, group, group_by};

use crate::brute_force::{assert_partition, least_cost};
use crate::instances::{Random, Stacks};

/// A cost for any group that has no structure: the same for the same threads.
fn arbitrary(seed: u64, values: u64) -> impl Fn(&[usize]) -> f64 {
    move |group| {
        let key = group.iter().fold(seed, |key, &thread| {
            Random::new(key ^ (thread as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d)).bits()
        });
        (key % values) as f64 - (values / 2) as f64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_grouping_is_a_partition(
        threads in 0_usize..=24, spare in 0_usize..=10, level in 0_u32..=3,
        values in prop::sample::select(vec![1_u64, 3, 1000]), seed: u64, sweeps in 0_usize..=3,
    ) {
        let width = 1 << level;
        let cores = threads.div_ceil(width) + spare;
        let cost = arbitrary(seed, values);
        let request = Request { sweeps, ..Request::new(threads, cores, width) };
        let found = group(&request, &cost).unwrap();
        assert_partition(&found.groups, threads, cores, width);
        let sum: f64 = found.groups.iter().map(|g| cost(g)).sum();
        prop_assert_eq!(found.cost, sum);
    }

    /// With threads alone where that costs less, and where they must be.
    #[test]
    fn groups_of_two_cost_what_brute_force_finds(
        threads in 0_usize..=9, spare in 0_usize..=10,
        values in prop::sample::select(vec![1_u64, 3, 1000]), seed: u64,
    ) {
        let cores = threads.div_ceil(2) + spare;
        let cost = arbitrary(seed, values);
        let found = group(&Request::new(threads, cores, 2), &cost).unwrap();
        assert_partition(&found.groups, threads, cores, 2);
        let excess = found.excess.unwrap();
        prop_assert!((found.cost - least_cost(threads, cores, 2, &cost)).abs() <= excess);
        prop_assert!(excess < 1e-6);
    }

    /// Asked again, nothing moves, whatever else would have been as cheap.
    /// (Wider groups than two may be found cheaper from another start.)
    #[test]
    fn a_grouping_that_is_no_dearer_stays(
        threads in 0_usize..=20, spare in 0_usize..=6, level in 0_u32..=3,
        values in prop::sample::select(vec![1_u64, 2, 4]), seed: u64,
    ) {
        let width = 1 << level;
        let cores = threads.div_ceil(width) + spare;
        let cost = arbitrary(seed, values);
        let request = Request::new(threads, cores, width);
        let first = group(&request, &cost).unwrap();
        let again = group(&Request { previous: &first.groups, ..request }, &cost).unwrap();
        let cheaper = width > 2 && again.cost < first.cost;
        prop_assert!(again == first || cheaper, "{first:?}, then {again:?}");
    }

    #[test]
    fn equal_costs_keep_any_previous_grouping(
        threads in 0_usize..=20, spare in 0_usize..=6, level in 0_u32..=3, seed: u64,
    ) {
        let width = 1 << level;
        let cores = threads.div_ceil(width) + spare;
        let mut random = Random::new(seed);
        let mut previous = vec![Vec::new(); cores];
        for thread in 0..threads {
            let free: Vec<usize> = (0..cores).filter(|&k| previous[k].len() < width).collect();
            previous[free[random.below(free.len())]].push(thread);
        }
        let request = Request { previous: &previous, ..Request::new(threads, cores, width) };
        // Each thread costs one, wherever it is.
        let found = group(&request, |group| group.len() as f64).unwrap();
        previous.retain(|group| !group.is_empty());
        previous.sort();
        prop_assert_eq!(found.groups, previous);
    }
}

/// A previous grouping that names threads that are gone, twice or not at all is
/// used as far as it goes.
#[test]
fn a_previous_grouping_need_not_fit() {
    let previous = [vec![0, 5], vec![2, 9], vec![5, 1], vec![], vec![77]];
    for width in [1, 2, 4, 8] {
        let request = Request { previous: &previous, ..Request::new(8, 8, width) };
        let found = group(&request, |group| group.len() as f64).unwrap();
        assert_partition(&found.groups, 8, 8, width);
        assert_eq!(found.groups.contains(&vec![0, 5]), width > 1, "{:?}", found.groups);
    }
}

#[test]
fn costs_are_asked_of_threads_in_order_and_within_the_width() {
    for width in [1, 2, 4, 8] {
        let cores = 19_usize.div_ceil(width) + 4;
        let request = Request { sweeps: 2, ..Request::new(19, cores, width) };
        let found = group(&request, |group| {
            assert!(!group.is_empty() && group.len() <= width && group.is_sorted(), "{group:?}");
            group.iter().map(|&thread| (thread % 5) as f64).product()
        });
        assert_partition(&found.unwrap().groups, 19, cores, width);
    }
}

#[test]
fn threads_are_alone_when_sharing_costs_more() {
    let shared = |price: f64| move |group: &[usize]| price * (group.len() as f64 - 1.0);
    for width in [2, 4, 8] {
        let apart = group(&Request::new(5, 9, width), shared(1.0)).unwrap();
        assert_eq!(apart.groups, [[0], [1], [2], [3], [4]]);
        let packed = group(&Request::new(5, 9, width), shared(-1.0)).unwrap();
        assert_eq!(packed.groups.len(), 5_usize.div_ceil(width), "{:?}", packed.groups);
    }
}

#[test]
fn an_odd_thread_is_the_one_that_suffers_most() {
    let found = group(&Request::new(5, 3, 2), |group| match group {
        [_] => 0.0,
        _ => group.iter().map(|&thread| if thread == 3 { 9.0 } else { 1.0 }).sum(),
    });
    assert!(found.unwrap().groups.contains(&vec![3]));
}

#[test]
fn no_thread_and_one_thread_are_grouped() {
    for width in [1, 2, 4, 8] {
        for cores in [0, 1, 3] {
            let none = group(&Request::new(0, cores, width), |_| unreachable!()).unwrap();
            assert!(none.groups.is_empty() && none.cost == 0.0);
        }
        for cores in [1, 100] {
            let one = group(&Request::new(1, cores, width), |_| 2.5).unwrap();
            assert_eq!((one.groups, one.cost), (vec![vec![0]], 2.5));
        }
    }
}

#[test]
fn more_threads_than_places_are_refused() {
    for (threads, cores, width) in [(1, 0, 4), (5, 2, 2), (17, 4, 4)] {
        let refused = group(&Request::new(threads, cores, width), |_| 0.0);
        assert_eq!(refused, Err(GroupError::NoRoom { threads, cores, width }));
    }
}

#[test]
fn widths_that_pairs_cannot_build_are_refused() {
    for width in [0, 3, 6] {
        assert_eq!(group(&Request::new(4, 4, width), |_| 0.0), Err(GroupError::Width { width }));
    }
}

#[test]
fn costs_that_are_no_numbers_are_refused_with_their_group() {
    for width in [1, 2, 4, 8] {
        for bad in [f64::NAN, f64::INFINITY] {
            let found =
                group(
                    &Request::new(16, 16, width),
                    |group| {
                        if group.len() == width { bad } else { 1e3 }
                    },
                );
            let Err(GroupError::NotFinite { group, cost }) = found else { panic!("{found:?}") };
            assert_eq!((group.len(), cost.to_bits()), (width, bad.to_bits()));
        }
    }
}

#[test]
fn equal_requests_give_equal_groupings() {
    let stacks = Stacks::new(48, 4);
    for (width, cores) in [(2, 24), (4, 12), (8, 6), (4, 17)] {
        let request = Request::new(48, cores, width);
        let first = group(&request, |g| stacks.loss(g)).unwrap();
        assert_eq!(group(&request, |g| stacks.loss(g)).unwrap(), first);
    }
}

/// Costs that compute all parts of a union at once, and the number of such calls.
struct AtOnce<'s> {
    stacks: &'s Stacks,
    /// Added to the cost of a part that holds all of these.
    worse: (Vec<usize>, f64),
    asked: usize,
    asked_for_pairs: usize,
}

impl<'s> AtOnce<'s> {
    fn new(stacks: &'s Stacks, worse: (Vec<usize>, f64)) -> Self {
        Self { stacks, worse, asked: 0, asked_for_pairs: 0 }
    }
}

impl GroupCosts for &mut AtOnce<'_> {
    fn cost(&mut self, group: &[usize]) -> f64 {
        self.stacks.loss(group)
    }

    fn pairs(&mut self, thread: usize, others: Range<usize>, costs: &mut [f64]) {
        assert_eq!(costs.len(), others.len());
        self.asked_for_pairs += 1;
        for (cost, other) in costs.iter_mut().zip(others) {
            let group = [thread, other];
            let held = self.worse.0 == group;
            *cost = self.stacks.loss(&group) + if held { self.worse.1 } else { 0.0 };
        }
    }

    fn parts(&mut self, union: &[usize], size: usize, masks: &[u8], costs: &mut Vec<f64>) {
        self.asked += 1;
        costs.clear();
        for mask in masks {
            let named = (0..union.len()).filter(|k| mask >> k & 1 == 1);
            let part: Vec<usize> = named.map(|k| union[k]).collect();
            assert_eq!(part.len(), size);
            let held = self.worse.0.iter().all(|thread| part.contains(thread));
            costs.push(self.stacks.loss(&part) + if held { self.worse.1 } else { 0.0 });
        }
    }
}

#[test]
fn parts_computed_at_once_make_the_same_groups() {
    let stacks = Stacks::new(30, 5);
    for (width, cores) in [(2, 15), (4, 8), (4, 11), (8, 5)] {
        let request = Request::new(30, cores, width);
        let mut costs = AtOnce::new(&stacks, (vec![99], 0.0));
        let found = group_by(&request, &mut costs).unwrap();
        assert_eq!(found, group(&request, |g| stacks.loss(g)).unwrap());
        assert!(width != 4 || costs.asked > 0, "groups of four are split in all ways");
        assert!(costs.asked_for_pairs > 0, "pairs are asked for together");
    }
}

#[test]
fn a_part_whose_cost_is_no_number_is_named() {
    let stacks = Stacks::new(8, 5);
    let request = Request::new(8, 2, 4);
    let worse = (vec![0, 1, 2, 3], f64::NAN);
    let found = group_by(&request, &mut AtOnce::new(&stacks, worse));
    let Err(GroupError::NotFinite { group, cost }) = found else { panic!("{found:?}") };
    assert!(group == [0, 1, 2, 3] && cost.is_nan());
}

#[test]
fn a_pair_whose_cost_is_no_number_is_named() {
    let stacks = Stacks::new(8, 5);
    let worse = (vec![2, 7], f64::INFINITY);
    let found = group_by(&Request::new(8, 4, 2), &mut AtOnce::new(&stacks, worse));
    let Err(GroupError::NotFinite { group, .. }) = found else { panic!("{found:?}") };
    assert_eq!(group, [2, 7]);
}
