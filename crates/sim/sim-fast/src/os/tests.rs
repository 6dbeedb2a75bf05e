use proptest::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use symbiont_topology::{CpuSet, NodeId, Topology};

use super::*;

pub(super) fn map(line: &str) -> Map {
    Map::new(&Topology::synthetic(line).unwrap(), Generation::Today)
}

/// Places `count` new threads one after the other; gives their places.
fn fill(map: &Map, count: usize, allowed: &CpuSet, home: NodeId, seed: u64) -> Vec<usize> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut queues = Queues::new(map, std::iter::empty());
    let mut placed = Vec::new();
    for _ in 0..count {
        let at = place(map, &queues, &Task { at: 0, allowed, home }, &mut random).unwrap();
        queues.add(map, at);
        placed.push(at);
    }
    placed
}

pub(super) fn all(map: &Map) -> CpuSet {
    map.iter().map(|(_, place)| place.pu).collect()
}

pub(super) fn count(placed: &[usize], is: impl Fn(usize) -> bool) -> usize {
    placed.iter().filter(|at| is(**at)).count()
}

pub(super) const SMT4: &str = "node:1 llc:3 smt:4 memory:8G | node:1 llc:3 smt:4 memory:0";

#[test]
fn idle_cores_fill_before_siblings_share() {
    let map = map(SMT4);
    for seed in 0..20 {
        let mut cores: Vec<usize> = fill(&map, 6, &all(&map), NodeId(0), seed)
            .iter()
            .map(|&at| map.place(at).core)
            .collect();
        cores.sort_unstable();
        assert_eq!(cores, [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn cores_near_the_memory_fill_first() {
    let map = map(SMT4);
    let placed = fill(&map, 3, &all(&map), NodeId(0), 1);
    assert_eq!(count(&placed, |at| map.place(at).node == NodeId(0)), 3);
}

#[test]
fn fast_cores_fill_before_slow_ones() {
    let map = map("core:2 smt:2 | core:4 kind:efficiency capacity:600");
    let fast = |at: usize| map.place(at).capacity == 1024;
    assert_eq!(count(&fill(&map, 2, &all(&map), NodeId(0), 3), fast), 2);
    // Then the slow cores, before the siblings of the fast ones.
    assert_eq!(count(&fill(&map, 6, &all(&map), NodeId(0), 3), fast), 2);
    assert_eq!(count(&fill(&map, 8, &all(&map), NodeId(0), 3), fast), 4);
}

#[test]
fn a_thread_that_wakes_goes_where_it_was_or_to_an_idle_core_nearby() {
    let map = map("llc:2 core:2 smt:2");
    let allowed = all(&map);
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut wakes = |busy: &[usize], was| {
        let queues = Queues::new(&map, busy.iter().copied());
        wake(&map, &queues, &Task { at: was, allowed: &allowed, home: NodeId(0) }, &mut random)
    };
    assert_eq!(wakes(&[], 1), Some(1));
    let moved = wakes(&[0], 1).unwrap();
    assert_eq!(map.place(moved).core, 1);
    assert_eq!(wakes(&[0, 2], 1), Some(1));
    assert_eq!(wakes(&[0, 1, 2, 3], 1), Some(1), "the other LLC domain is left to balancing");
}

pub(super) fn balanced(
    map: &Map,
    at: &[usize],
    allowed: &CpuSet,
    home: NodeId,
) -> (Vec<usize>, usize) {
    let tasks: Vec<Task<'_>> = at.iter().map(|&at| Task { at, allowed, home }).collect();
    let shifts = balance(map, &tasks);
    let mut after = at.to_vec();
    for (task, to) in &shifts {
        after[*task] = *to;
    }
    (after, shifts.len())
}

#[test]
fn a_busy_thread_leaves_a_slow_core_for_an_idle_fast_one() {
    let map = map("core:1 | core:3 capacity:512");
    let (after, _) = balanced(&map, &[1], &all(&map), NodeId(0));
    assert_eq!(after, [0]);
}

#[test]
fn nodes_are_evened_but_for_a_few_threads() {
    // Eight hardware threads on each of two nodes.
    let map = map("package:2 core:4 smt:2");
    let allowed = all(&map);
    let node = |at: usize| map.place(at).node == NodeId(1);
    for (begun, expected) in [
        (vec![0, 2, 8], 1),
        (vec![0, 2], 0),
        (vec![0, 2, 4], 1),
        (vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5),
        (vec![2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], 7),
    ] {
        let (after, _) = balanced(&map, &begun, &allowed, NodeId(0));
        assert_eq!(count(&after, node), expected, "{begun:?}: {after:?}");
        assert_eq!(balanced(&map, &after, &allowed, NodeId(0)).1, 0);
    }
    // A thread goes back to its memory.
    let (after, _) = balanced(&map, &[15], &allowed, NodeId(0));
    assert_eq!(count(&after, node), 0);
}

proptest! {
    #[test]
    fn threads_stay_where_they_may_run(
        mask in 1_u32..1 << 24, count in 1_usize..40, seed: u64,
    ) {
        let map = map(SMT4);
        let allowed: CpuSet =
            map.iter().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, place)| place.pu).collect();
        let placed = fill(&map, count, &allowed, NodeId(0), seed);
        prop_assert!(placed.iter().all(|at| allowed.contains(map.place(*at).pu)));
        let (after, _) = balanced(&map, &placed, &allowed, NodeId(0));
        prop_assert!(after.iter().all(|at| allowed.contains(map.place(*at).pu)));
    }

    #[test]
    fn balancing_reaches_a_state_that_it_leaves_alone(
        at in proptest::collection::vec(0_usize..24, 1..40),
    ) {
        let map = map(SMT4);
        let mut at = at;
        let mut rounds = 0;
        loop {
            let (after, shifts) = balanced(&map, &at, &all(&map), NodeId(0));
            at = after;
            if shifts == 0 {
                break;
            }
            rounds += 1;
            prop_assert!(rounds < 10);
        }
        let queues = Queues::new(&map, at.iter().copied());
        let lengths: Vec<u32> = (0..map.len()).map(|at| queues.len(at)).collect();
        let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        prop_assert!(*least > 0 || *most < 2, "{lengths:?}");
    }
}
