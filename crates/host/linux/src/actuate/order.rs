//! In which order threads are nudged.
//!
//! # Problem
//! A thread that arrives on a CPU which another one has still to leave may be pulled off again, by the CPU that
//! it has just left idle. If it stayed narrow until the other one has left, its program could read that mask
//! meanwhile.
//!
//! # Approach
//! Threads go one by one, each to where no other one has still to leave, and each leaves room for the next. What
//! remains are cycles; in each, the fewest that make room go early. Threads that go the same way follow each
//! other, so that what keeps them from running ([`super::standing`]) can stay where it is.
//!
//! ```text
//! while a thread is left:
//!     next := one whose target is free, if possible the same way as the last one
//!             else one of the CPU that the fewest threads have still to leave: it goes early
//! ```
//!
//! # Terms
//! A target is *free* if one of its CPUs runs none of the threads that have still to leave.
//!
//! # Properties
//! - Each goes once (`each_goes_once`), early or when its target is free
//!   (`none_goes_where_another_has_still_to_leave`).
//! - In a cycle, one thread goes early; elsewhere none does (`one_thread_of_a_cycle_goes_early`). Of two groups
//!   that change places, the smaller one goes early (`the_smaller_group_goes_early`), and those that go the same
//!   way go together (`those_that_go_the_same_way_go_together`).

use std::collections::BTreeMap;

use symbiont_topology::{CpuSet, PuId};

/// A thread that is to be nudged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mover {
    /// Where it runs; none: it sleeps.
    pub from: Option<PuId>,
    /// Where it is to run.
    pub to: CpuSet,
}

impl Mover {
    /// The CPU that it will leave.
    fn leaves(&self) -> Option<PuId> {
        self.from.filter(|cpu| !self.to.contains(*cpu))
    }
}

/// Their places among the movers, each once.
pub(super) fn order(movers: &[Mover]) -> Vec<usize> {
    let mut order = Order::new(movers);
    order.settle();
    while let Some(at) = order.next_early() {
        order.go(at);
        order.settle();
    }
    order.turns
}

struct Order<'a> {
    movers: &'a [Mover],
    gone: Vec<bool>,
    /// Threads that have still to leave a CPU; of those that have left it, some.
    still_on: BTreeMap<PuId, Vec<usize>>,
    /// How many threads have left a CPU.
    left: BTreeMap<PuId, usize>,
    /// Threads whose target has a CPU that others have still to leave.
    wait_for: BTreeMap<PuId, Vec<usize>>,
    /// Threads whose target is free; they are taken from the end.
    free: Vec<usize>,
    turns: Vec<usize>,
}

impl<'a> Order<'a> {
    fn new(movers: &'a [Mover]) -> Self {
        let mut by_way: Vec<usize> = (0..movers.len()).collect();
        by_way.sort_by_key(|at| std::cmp::Reverse((movers[*at].to.first(), movers[*at].from)));
        let mut still_on = BTreeMap::<PuId, Vec<usize>>::new();
        for at in &by_way {
            movers[*at]
                .leaves()
                .into_iter()
                .for_each(|cpu| still_on.entry(cpu).or_default().push(*at));
        }
        let mut wait_for = BTreeMap::<PuId, Vec<usize>>::new();
        let mut free = Vec::new();
        for at in by_way {
            let to = &movers[at].to;
            if to.iter().any(|cpu| !still_on.contains_key(&cpu)) {
                free.push(at);
            } else {
                to.iter().for_each(|cpu| wait_for.entry(cpu).or_default().push(at));
            }
        }
        let left = still_on.iter().map(|(cpu, movers)| (*cpu, movers.len())).collect();
        let gone = vec![false; movers.len()];
        Self { movers, gone, still_on, left, wait_for, free, turns: Vec::new() }
    }

    /// Lets all go that can, until none can.
    fn settle(&mut self) {
        while let Some(at) = self.free.pop() {
            self.go(at);
        }
    }

    /// One of those that make room soonest; none: all have gone.
    fn next_early(&mut self) -> Option<usize> {
        let (cpu, _) = self.left.iter().min_by_key(|(_, count)| **count)?;
        let movers = self.still_on.get_mut(cpu)?;
        while let Some(at) = movers.pop() {
            if !self.gone[at] {
                return Some(at);
            }
        }
        None
    }

    /// The thread leaves its CPU, unless it has already.
    fn go(&mut self, at: usize) {
        if std::mem::replace(&mut self.gone[at], true) {
            return;
        }
        self.turns.push(at);
        let Some(cpu) = self.movers[at].leaves() else { return };
        if let Some(count) = self.left.get_mut(&cpu) {
            *count -= 1;
            if *count == 0 {
                self.left.remove(&cpu);
                self.free.extend(self.wait_for.remove(&cpu).unwrap_or_default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mover(from: Option<u32>, to: &[u32]) -> Mover {
        Mover { from: from.map(PuId), to: to.iter().copied().map(PuId).collect() }
    }

    /// Threads of eight CPUs, with targets of one or two.
    fn movers() -> impl Strategy<Value = Vec<Mover>> {
        let one = (prop::option::of(0..8u32), prop::collection::vec(0..8u32, 1..3));
        prop::collection::vec(one.prop_map(|(from, to)| mover(from, &to)), 0..24)
    }

    /// The turns, and whether the target was not free yet.
    fn turns(movers: &[Mover]) -> Vec<(usize, bool)> {
        let mut left: Vec<Option<PuId>> = movers.iter().map(Mover::leaves).collect();
        let turn = |at: usize| {
            // It does not wait for itself: its target is not where it runs.
            let own = left[at].take();
            let is_free = movers[at].to.iter().any(|cpu| !left.contains(&Some(cpu)));
            (at, own.is_some() && !is_free)
        };
        order(movers).into_iter().map(turn).collect()
    }

    fn early(movers: &[Mover]) -> usize {
        turns(movers).iter().filter(|(_, early)| *early).count()
    }

    proptest! {
        #[test]
        fn each_goes_once(movers in movers()) {
            let mut turns = order(&movers);
            turns.sort_unstable();
            prop_assert_eq!(turns, (0..movers.len()).collect::<Vec<_>>());
        }

        #[test]
        fn none_goes_where_another_has_still_to_leave(movers in movers()) {
            let turns = turns(&movers);
            for (n, (at, early)) in turns.iter().enumerate() {
                let rest = &turns[n..];
                // Where one whose target is free could go, none goes early.
                let has_still_to_leave = |cpu| rest.iter().any(|(at, _)| movers[*at].leaves() == Some(cpu));
                let is_free = |(at, _): &(usize, bool)| movers[*at].to.iter().any(|cpu| !has_still_to_leave(cpu));
                prop_assert!(!early || !rest.iter().any(is_free), "{at}");
            }
        }

        #[test]
        fn one_thread_of_a_cycle_goes_early(
            to in Just((0..12u32).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let cycle: Vec<Mover> = (0..12).map(|n| mover(Some(n), &[(n + 1) % 12])).collect();
            prop_assert_eq!(early(&cycle), 1);
            // Others go to free CPUs: there is no cycle.
            let gone: Vec<Mover> = to.iter().map(|to| mover(Some(to + 12), &[*to])).collect();
            prop_assert_eq!(early(&gone), 0);
        }
    }

    #[test]
    fn the_smaller_group_goes_early() {
        let here = std::iter::repeat_n(mover(Some(0), &[1]), 5);
        let there = std::iter::repeat_n(mover(Some(1), &[0]), 3);
        let turns = turns(&here.chain(there).collect::<Vec<_>>());
        assert!(turns.iter().all(|(at, early)| *early == (*at >= 5)), "{turns:?}");
    }

    #[test]
    fn those_that_go_the_same_way_go_together() {
        let way = |n: usize| {
            [mover(Some(0), &[1]), mover(Some(1), &[0]), mover(Some(2), &[0])][n % 3].clone()
        };
        let movers: Vec<Mover> = (0..30).map(way).collect();
        let turns = order(&movers);
        let changes = turns.windows(2).filter(|pair| movers[pair[0]] != movers[pair[1]]);
        assert_eq!(changes.count(), 2);
    }

    #[test]
    fn a_chain_goes_from_its_free_end() {
        let chain = [mover(Some(0), &[1]), mover(Some(1), &[2]), mover(Some(2), &[3])];
        assert_eq!(turns(&chain), [2, 1, 0].map(|at| (at, false)));
        let swap = [mover(Some(0), &[1]), mover(Some(1), &[0])];
        assert_eq!(turns(&swap), [(0, true), (1, false)]);
    }
}
