use proptest::prelude::*;
use symbiont_topology::{CpuSet, NodeId};

use super::tests::{SMT4, all, balanced, count, map};
use super::*;

/// Equal threads that take turns, tick by tick.
struct Played<'a> {
    map: &'a Map,
    allowed: &'a CpuSet,
    balancer: LoadBalancer,
    at: Vec<usize>,
    /// Ticks that each ran.
    run_time: Vec<u64>,
    now: u64,
}

impl<'a> Played<'a> {
    fn new(map: &'a Map, at: Vec<usize>, allowed: &'a CpuSet, seed: u64) -> Self {
        Self::under(Generation::Today, map, at, allowed, seed)
    }

    fn under(
        generation: Generation,
        map: &'a Map,
        at: Vec<usize>,
        allowed: &'a CpuSet,
        seed: u64,
    ) -> Self {
        let (balancer, run_time) = (LoadBalancer::new(map, generation, seed), vec![0; at.len()]);
        Self { map, allowed, balancer, at, run_time, now: 0 }
    }

    fn queue(&self, at: usize) -> Vec<usize> {
        (0..self.at.len()).filter(|&one| self.at[one] == at).collect()
    }

    /// The thread that runs on each hardware thread: the one that ran least.
    fn runners(&self) -> Vec<usize> {
        let queues = (0..self.map.len()).map(|at| self.queue(at));
        queues.filter_map(|queue| queue.into_iter().min_by_key(|&one| self.run_time[one])).collect()
    }

    fn tick(&mut self) {
        let runners = self.runners();
        runners.iter().for_each(|&one| self.run_time[one] += 1);
        self.now += 1;
        let (after, _) = balanced(self.map, &self.at, self.allowed, NodeId(0));
        self.at = after;
        let ready = |(one, &at): (usize, &usize)| ReadyThread {
            task: Task { at, allowed: self.allowed, home: NodeId(0) },
            weight: 1024,
            used: 1.0 / self.queue(at).len() as f64,
            runs: runners.contains(&one),
            turn: self.run_time[one] as f64,
        };
        let ready: Vec<ReadyThread<'_>> = self.at.iter().enumerate().map(ready).collect();
        let shifts = self.balancer.tick(self.map, &ready, &vec![1.0; self.map.len()], self.now);
        for (one, to) in shifts {
            let joins = self.queue(to).into_iter().map(|one| self.run_time[one]).min();
            self.run_time[one] = joins.unwrap_or(self.run_time[one]);
            self.at[one] = to;
        }
    }
}

/// One pass of the idler of two siblings after the other, in ticks: when it takes a thread.
fn taken(used: f64) -> Vec<u64> {
    let map = map("core:1 smt:2");
    let allowed = all(&map);
    let mut balancer = LoadBalancer::new(&map, Generation::Today, 1);
    let ready = |at, runs, turn| {
        let task = Task { at, allowed: &allowed, home: NodeId(0) };
        ReadyThread { task, weight: 1024, used: 0.5, runs, turn }
    };
    let ready = [ready(0, true, 0.0), ready(0, false, 1.0), ready(1, true, 0.0)];
    let moves = |tick: &u64| !balancer.tick(&map, &ready, &[1.0, used], *tick).is_empty();
    (1..=200).filter(moves).collect()
}

/// A pass is due after 2 ms × 16 less a tick of 4 ms; the first never moves a thread, as a
/// thread weighs twice what is missing to the mean.
#[test]
fn one_of_two_changes_over_at_the_second_look() {
    let taken = taken(1.0);
    let apart: Vec<u64> = taken.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(apart.len() > 10 && apart.iter().all(|ticks| *ticks == 14), "{taken:?}");
}

#[test]
fn a_queue_that_was_not_full_lately_takes_none_back() {
    // 1024 / 110 % is 931: full above.
    assert!(!taken(0.92).is_empty());
    assert!(taken(0.90).is_empty());
}

#[test]
fn an_average_catches_up_by_half_in_32_periods() {
    let half = left_after(32.0 * 1_048_576.0);
    assert!((half - 0.5).abs() < 1e-12);
    assert!((follow(0.5, half, true) - 0.75).abs() < 1e-12);
    assert!((follow(0.5, half, false) - 0.25).abs() < 1e-12);
}

/// A thread goes away from the node of its memory only when looking has failed for a while.
#[test]
fn a_thread_that_would_leave_its_memory_stays_for_a_while() {
    let map = map("node:2 core:1");
    let allowed = all(&map);
    let first = |home: u32| {
        let mut balancer = LoadBalancer::new(&map, Generation::Today, 1);
        let ready = |at, runs, home| {
            let task = Task { at, allowed: &allowed, home: NodeId(home) };
            ReadyThread { task, weight: 1024, used: 0.5, runs, turn: 0.0 }
        };
        let stranger = ready(0, true, 1);
        let ready = [stranger, ready(0, false, home), ready(1, true, 1)];
        (1..).find(|&tick| !balancer.tick(&map, &ready, &[1.0, 1.0], tick).is_empty()).unwrap()
    };
    // A thread that nothing holds goes at the second pass, the other at the fourth.
    assert_eq!(first(0) - first(1), 2 * 7);
}

#[test]
fn a_fast_core_takes_two_threads_before_a_slow_one_does() {
    let map = map("core:1 | core:3 capacity:512");
    let allowed = all(&map);
    let mut balancer = Played::new(&map, vec![1, 1, 2, 3, 3], &allowed, 1);
    (0..250).for_each(|_| balancer.tick());
    assert_eq!(count(&balancer.at, |at| at == 0), 2);
}

proptest! {
    #[test]
    fn no_thread_that_runs_or_may_not_is_moved(
        threads in proptest::collection::vec((0_usize..24, 1_u32..1 << 24), 1..60), seed: u64,
    ) {
        let map = map(SMT4);
        let set = |mask: u32| -> CpuSet {
            map.iter().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, place)| place.pu).collect()
        };
        let allowed: Vec<CpuSet> = threads.iter().map(|(at, mask)| set(mask | 1 << at)).collect();
        let mut balancer = LoadBalancer::new(&map, Generation::Today, seed);
        let first = |one: usize| threads.iter().position(|(at, _)| *at == threads[one].0);
        let ready: Vec<ReadyThread<'_>> = (0..threads.len())
            .map(|one| ReadyThread {
                task: Task { at: threads[one].0, allowed: &allowed[one], home: NodeId(0) },
                weight: 1024,
                used: 0.5,
                runs: first(one) == Some(one),
                // The thread that runs is next, too.
                turn: one as f64,
            })
            .collect();
        for tick in 1..200 {
            for (one, to) in balancer.tick(&map, &ready, &[1.0; 24], tick) {
                prop_assert!(!ready[one].runs);
                prop_assert!(allowed[one].contains(map.place(to).pu));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn waiting_threads_end_about_even(at in proptest::collection::vec(0_usize..24, 1..60), seed: u64) {
        let map = map(SMT4);
        let allowed = all(&map);
        let mut balancer = Played::new(&map, at, &allowed, seed);
        let even = |counts: &[usize]| {
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            most - least <= 1 || 100 * most <= 117 * least
        };
        let uneven = |balancer: &Played<'_>| -> Option<Vec<usize>> {
            let sets = |key: fn(CpuLocation) -> usize, sets: usize| -> Vec<usize> {
                (0..sets).map(|set| count(&balancer.at, |at| key(map.place(at)) == set)).collect()
            };
            let (cores, nodes) = (sets(|p| p.core, 6), sets(|p| p.node.0 as usize, 2));
            let queues = (0..6).map(|core| map.core(core).iter().map(|&at| balancer.queue(at).len()));
            let few = nodes.iter().sum::<usize>() <= 24;
            let nodes = if few { Vec::new() } else { nodes };
            let all = queues.map(Iterator::collect).chain([cores[..3].into(), cores[3..].into(), nodes]);
            all.into_iter().find(|counts: &Vec<usize>| !counts.is_empty() && !even(counts))
        };
        (0..1500).for_each(|_| balancer.tick());
        // While threads change over it may be less even for some ticks.
        let off = (0..2000).filter_map(|_| {
            balancer.tick();
            uneven(&balancer)
        });
        let off: Vec<Vec<usize>> = off.collect();
        prop_assert!(off.len() < 200, "at {} of 2000 ticks, for instance {:?}", off.len(), off.last());
    }
}

#[test]
fn waiting_threads_stay_under_the_older_scheduler() {
    let map = map("core:2");
    let allowed = all(&map);
    let ran = |generation| {
        let mut played = Played::under(generation, &map, vec![0, 0, 1], &allowed, 1);
        (0..2000).for_each(|_| played.tick());
        played.run_time
    };
    assert_eq!(ran(Generation::Older), [1000, 1000, 2000]);
    let today = ran(Generation::Today);
    assert!(today.iter().all(|ticks| (1150..1600).contains(ticks)), "{today:?}");
    // It moves what makes queues more even.
    let mut played = Played::under(Generation::Older, &map, vec![0, 0, 0, 1], &allowed, 1);
    (0..2000).for_each(|_| played.tick());
    assert_eq!((played.queue(0).len(), played.queue(1).len()), (2, 2));
}

#[test]
fn the_older_scheduler_moves_a_thread_where_weights_become_more_even() {
    let map = map("core:2");
    let allowed = all(&map);
    // Two threads on each of two hardware threads.
    let moved = |weights: [u64; 4]| {
        let mut balancer = LoadBalancer::new(&map, Generation::Older, 1);
        let ready = |(one, weight): (usize, &u64)| ReadyThread {
            task: Task { at: one / 2, allowed: &allowed, home: NodeId(0) },
            weight: *weight,
            used: 0.5,
            runs: one % 2 == 0,
            turn: one as f64,
        };
        let ready: Vec<ReadyThread<'_>> = weights.iter().enumerate().map(ready).collect();
        (1..2000).flat_map(|tick| balancer.tick(&map, &ready, &[1.0; 2], tick)).next()
    };
    assert_eq!(moved([1024; 4]), None);
    assert_eq!(moved([2048, 1024, 1024, 1024]), None, "half of what a thread weighs is no reason");
    assert_eq!(moved([9548, 9548, 1024, 1024]).map(|(_, to)| to), Some(1));
}
