//! Many threads are split into slices by lot, each of which is grouped by itself.
//!
//! # Problem
//! Scores of all pairs of a thousand threads are a million numbers, and their exact matching takes tens of
//! milliseconds. Where lots are drawn anew in each quantum, the best grouping of all threads need not be found in
//! each: the next quantum goes on from this one.
//!
//! # Approach
//! Groups that are together now stay in one slice (but for at most one a slice), so that keeping them costs nothing;
//! which slice is drawn anew in each quantum, so that any two threads are soon in one. Slices are of equally many
//! cores, and of as many threads as fill them alike.
//!
//! Properties: slices are a partition within cores (`slices_are_a_partition_that_fits`), and few groups are split
//! (`few_groups_are_split`).

use std::collections::VecDeque;

use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// Threads that are grouped at once.
const MOST: usize = 128;

/// Threads that are grouped by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slice {
    /// By number.
    pub threads: Vec<usize>,
    /// As many cores they get.
    pub cores: usize,
}

/// Slices of threads that are numbered from 0, of which these are together now.
pub(super) fn slices(
    threads: usize,
    cores: usize,
    present: &[Vec<usize>],
    random: &mut Pcg64Mcg,
) -> Vec<Slice> {
    let many = threads.div_ceil(MOST).min(cores).max(1);
    if many == 1 {
        return vec![Slice { threads: (0..threads).collect(), cores }];
    }
    let mut groups = with_those_alone(threads, present);
    groups.shuffle(random);
    let mut left: VecDeque<Vec<usize>> = groups.into();
    // Of as many cores, this many threads.
    let of = |cores_before: usize| threads * cores_before / cores;
    let slice = |at: usize| {
        let [from, to] = [at, at + 1].map(|at| cores * at / many);
        Slice { threads: take(&mut left, of(to) - of(from)), cores: to - from }
    };
    (0..many).map(slice).collect()
}

/// Groups, and threads in none of them as groups of one.
fn with_those_alone(threads: usize, present: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut is_alone = vec![true; threads];
    for at in present.iter().flatten() {
        if let Some(is_alone) = is_alone.get_mut(*at) {
            *is_alone = false;
        }
    }
    let alone = (0..threads).filter(|at| is_alone[*at]).map(|at| vec![at]);
    present.iter().cloned().chain(alone).collect()
}

/// Takes so many threads: whole groups while they fit, then a part of the next one.
fn take(left: &mut VecDeque<Vec<usize>>, many: usize) -> Vec<usize> {
    let mut taken = Vec::with_capacity(many);
    left.retain(|group| {
        let fits = taken.len() + group.len() <= many;
        if fits {
            taken.extend(group);
        }
        !fits
    });
    if let Some(next) = left.front_mut() {
        taken.extend(next.drain(..(many - taken.len()).min(next.len())));
    }
    taken.sort_unstable();
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    /// Groups of up to as many threads, some of them empty, made from lots.
    fn groups(threads: usize, width: usize, lots: &[usize]) -> Vec<Vec<usize>> {
        let mut left: Vec<usize> = (0..threads).rev().collect();
        let mut groups = Vec::new();
        for lot in lots.iter().cycle() {
            let mut group: Vec<usize> = (0..lot % width + 1).filter_map(|_| left.pop()).collect();
            if group.is_empty() {
                return groups;
            }
            // Some threads are in no group.
            if lot % 7 != 0 {
                group.sort_unstable();
                groups.push(group);
            }
        }
        groups
    }

    proptest! {
        #[test]
        fn slices_are_a_partition_that_fits(
            threads in 0_usize..1500,
            width in 1_usize..9,
            more_cores in 0_usize..600,
            lots in proptest::collection::vec(0_usize..100, 1..50),
            seed: u64,
        ) {
            let cores = threads.div_ceil(width) + more_cores;
            let present = groups(threads, width, &lots);
            let all = slices(threads, cores, &present, &mut Pcg64Mcg::seed_from_u64(seed));
            let mut here: Vec<usize> = all.iter().flat_map(|slice| slice.threads.clone()).collect();
            here.sort_unstable();
            prop_assert_eq!(here, (0..threads).collect::<Vec<_>>());
            prop_assert_eq!(all.iter().map(|slice| slice.cores).sum::<usize>(), cores);
            for slice in &all {
                prop_assert!(slice.threads.len() <= slice.cores * width);
                prop_assert!(slice.threads.len() <= MOST + width);
            }
        }
    }

    #[test]
    fn few_groups_are_split() {
        let mut random = Pcg64Mcg::seed_from_u64(3);
        for (threads, width) in [(1024, 2), (1001, 2), (1030, 4)] {
            let present = groups(threads, width, &[7, 1, 1, 3, 1]);
            let all = slices(threads, threads.div_ceil(width) + 3, &present, &mut random);
            let is_whole = |group: &&Vec<usize>| {
                all.iter().any(|slice| group.iter().all(|at| slice.threads.contains(at)))
            };
            let split = present.len() - present.iter().filter(is_whole).count();
            assert!(all.len() > 3 && split < all.len(), "{split} of {}", all.len());
        }
    }
}
