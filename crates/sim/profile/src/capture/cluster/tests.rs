//! Grouping of intervals.

use proptest::prelude::*;

use super::{Cluster, MOST, cluster};
use crate::raw::{BUCKETS, Signature};

/// An interval in one group of blocks, with some misses to memory.
fn signature(bucket: usize, misses: u64) -> Signature {
    let instructions = 50_000_000;
    let mut blocks = vec![0; BUCKETS];
    blocks[bucket] = instructions;
    let events = [0, 15_000_000, 5_000_000, 0, misses, misses, misses, misses, 0];
    Signature { thread: 0, instructions, before_exec: false, blocks, events }
}

fn grouped(signatures: &[Signature]) -> Vec<Cluster> {
    cluster(&signatures.iter().collect::<Vec<_>>())
}

#[test]
fn intervals_of_equal_code_and_behaviour_are_one_phase() {
    let all: Vec<Signature> = (0..50).map(|i| signature(1, 1_000 * i)).collect();
    assert_eq!(grouped(&all).len(), 1);
}

#[test]
fn other_code_is_another_phase() {
    let all: Vec<Signature> = (0..30).map(|i| signature(i % 3, 0)).collect();
    let clusters = grouped(&all);
    assert_eq!(clusters.len(), 3);
    for cluster in clusters {
        let first = cluster.members[0] % 3;
        assert!(cluster.members.iter().all(|member| member % 3 == first));
    }
}

#[test]
fn equal_code_with_other_misses_is_another_phase() {
    let all: Vec<Signature> = (0..20).map(|i| signature(1, (i % 2) * 2_000_000)).collect();
    assert_eq!(grouped(&all).len(), 2);
}

#[test]
fn the_largest_group_comes_first_and_never_are_there_too_many() {
    let mut all: Vec<Signature> = (0..60).map(|i| signature(i, 0)).collect();
    all.extend((0..60).map(|_| signature(63, 0)));
    let clusters = grouped(&all);
    assert!(clusters.len() <= MOST);
    assert!(clusters.windows(2).all(|pair| pair[0].members.len() >= pair[1].members.len()));
    assert!(clusters[0].members.len() >= 60);
}

#[test]
fn nothing_has_no_groups() {
    assert_eq!(grouped(&[]), []);
}

proptest! {
    #[test]
    fn every_interval_is_in_exactly_one_group(kinds in proptest::collection::vec((0_usize..BUCKETS, 0_u64..5_000_000), 1..60)) {
        let all: Vec<Signature> = kinds.iter().map(|(bucket, misses)| signature(*bucket, *misses)).collect();
        let clusters = grouped(&all);
        let mut members: Vec<usize> = clusters.iter().flat_map(|c| c.members.clone()).collect();
        members.sort_unstable();
        prop_assert_eq!(members, (0..all.len()).collect::<Vec<_>>());
        prop_assert!(clusters.len() <= MOST && clusters.iter().all(|c| !c.members.is_empty()));
        prop_assert_eq!(clusters, grouped(&all), "equal input gives equal groups");
    }
}
