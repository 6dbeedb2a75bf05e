//! In which order threads are nudged, and for how long each is narrow.
//!
//! # Problem
//! A thread that arrives where another one has still to leave is pulled off again, by the CPU that it left idle,
//! unless it is narrow until the other one has left. But what is narrow may be read, and moving a
//! running thread takes some twenty microseconds: were all narrow until the last has moved, the first of a hundred
//! would be so for two milliseconds.
//!
//! # Approach
//! Threads go one by one to where no other one has still to leave, and are widened at once; each leaves room
//! for the next. So do those that leave another one behind where they ran. Where there is no such thread, the rest
//! are in cycles: one is narrowed and stays so until the one that it waits for has left.
//!
//! ```text
//! while a thread is left:
//!     if the target of one is free, or one shares its CPU: narrow it, widen it
//!     else: narrow any, to be widened once its target is free
//!     where it ran is free
//! ```
//!
//! # Terms
//! *Free*: of a target's CPUs there is one on which none of the threads runs that have still to leave. *Shares its
//! CPU*: another one has still to leave that CPU, or has gone there.
//!
//! # Properties
//! - Each is narrowed once, and widened once after that (`each_is_narrowed_and_then_widened`), when its
//!   target is free or its CPU was not left idle (`none_is_widened_while_an_idle_cpu_could_pull_it`).
//! - Of threads in a cycle one is narrow meanwhile, of others none (`only_one_thread_of_a_cycle_stays_narrow`), nor
//!   where each CPU has several (`threads_that_share_their_cpus_go_one_by_one`).

use std::collections::{BTreeMap, BTreeSet};

use symbiont_topology::{CpuSet, PuId};

/// A thread that is to be nudged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mover {
    /// Where it runs; none: it sleeps.
    pub from: Option<PuId>,
    /// Where it shall.
    pub to: CpuSet,
}

impl Mover {
    /// The CPU that it will leave.
    fn leaves(&self) -> Option<PuId> {
        self.from.filter(|cpu| !self.to.contains(*cpu))
    }
}

/// What is done to a thread, by its place among the movers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Narrow(usize),
    Widen(usize),
}

/// What is done to all of them, in turn.
pub(super) fn order(movers: &[Mover]) -> Vec<Act> {
    let mut order = Order::new(movers);
    for next in 0..movers.len() {
        order.settle();
        while order.free_one_of_several() {
            order.settle();
        }
        if order.state[next] == State::Waits {
            order.narrow(next);
        }
    }
    order.settle();
    order.acts
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    Narrow,
    Done,
}

struct Order<'a> {
    movers: &'a [Mover],
    state: Vec<State>,
    /// How many have still to leave a CPU.
    still_on: BTreeMap<PuId, usize>,
    /// Where some have gone.
    gone_to: BTreeSet<PuId>,
    /// Whose target holds a CPU that some have still to leave.
    wait_for: BTreeMap<PuId, Vec<usize>>,
    /// Those whose target is free.
    free: Vec<usize>,
    acts: Vec<Act>,
}

impl<'a> Order<'a> {
    fn new(movers: &'a [Mover]) -> Self {
        let mut still_on = BTreeMap::new();
        for cpu in movers.iter().filter_map(Mover::leaves) {
            *still_on.entry(cpu).or_default() += 1;
        }
        let mut wait_for = BTreeMap::<PuId, Vec<usize>>::new();
        let mut free = Vec::new();
        for (at, mover) in movers.iter().enumerate() {
            if mover.to.iter().any(|cpu| !still_on.contains_key(&cpu)) {
                free.push(at);
            } else {
                mover.to.iter().for_each(|cpu| wait_for.entry(cpu).or_default().push(at));
            }
        }
        // They are taken from the end.
        free.reverse();
        let state = vec![State::Waits; movers.len()];
        let (gone_to, acts) = Default::default();
        Self { movers, state, still_on, gone_to, wait_for, free, acts }
    }

    /// Moves and widens what can be, until nothing can.
    fn settle(&mut self) {
        while let Some(at) = self.free.pop() {
            if self.state[at] == State::Waits {
                self.narrow(at);
            }
            if self.state[at] == State::Narrow {
                self.state[at] = State::Done;
                self.acts.push(Act::Widen(at));
            }
        }
    }

    /// Lets one go that leaves another one behind, if there is such a one.
    fn free_one_of_several(&mut self) -> bool {
        let is_shared = |cpu| self.still_on.get(&cpu) > Some(&1) || self.gone_to.contains(&cpu);
        let shares = |mover: &Mover| mover.leaves().is_some_and(is_shared);
        let mut waits = self.movers.iter().zip(&self.state);
        let next = waits.position(|(mover, state)| *state == State::Waits && shares(mover));
        self.free.extend(next);
        next.is_some()
    }

    /// It leaves its CPU.
    fn narrow(&mut self, at: usize) {
        self.state[at] = State::Narrow;
        self.acts.push(Act::Narrow(at));
        let Some(cpu) = self.movers[at].leaves() else { return };
        if self.movers[at].to.len() == 1 {
            self.gone_to.extend(self.movers[at].to.first());
        }
        if let Some(count) = self.still_on.get_mut(&cpu) {
            *count -= 1;
            if *count == 0 {
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

    /// How many are narrow at a time, at most.
    fn most_narrow(movers: &[Mover]) -> u32 {
        let (mut narrow, mut most) = (0, 0);
        for act in order(movers) {
            match act {
                Act::Narrow(_) => narrow += 1,
                Act::Widen(_) => narrow -= 1,
            }
            most = most.max(narrow);
        }
        most
    }

    proptest! {
        #[test]
        fn each_is_narrowed_and_then_widened(movers in movers()) {
            let acts = order(&movers);
            prop_assert_eq!(acts.len(), 2 * movers.len());
            for at in 0..movers.len() {
                let place = |act| acts.iter().position(|done| *done == act);
                prop_assert!(place(Act::Narrow(at)) < place(Act::Widen(at)));
                prop_assert!(place(Act::Narrow(at)).is_some());
            }
        }

        #[test]
        fn none_is_widened_while_an_idle_cpu_could_pull_it(movers in movers()) {
            let mut left: Vec<Option<PuId>> = movers.iter().map(Mover::leaves).collect();
            let mut gone_to = Vec::new();
            for act in order(&movers) {
                match act {
                    Act::Narrow(at) => {
                        if left[at].take().is_some() {
                            gone_to.push(movers[at].to.clone());
                        }
                    }
                    Act::Widen(at) => {
                        let is_free = |cpu| !left.contains(&Some(cpu));
                        let from = movers[at].leaves();
                        let is_used = left.contains(&from) || from.is_some_and(|cpu| gone_to.contains(&cpu.into()));
                        prop_assert!(is_used || movers[at].to.iter().any(is_free), "{at}: {left:?}");
                    }
                }
            }
        }

        #[test]
        fn only_one_thread_of_a_cycle_stays_narrow(
            to in Just((0..12u32).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let all: Vec<Mover> = (0..).zip(&to).map(|(from, to)| mover(Some(from), &[*to])).collect();
            // One that waits, and the one that goes now.
            prop_assert!(most_narrow(&all) <= 2);
            // Others go to free CPUs: there is no cycle.
            let gone: Vec<Mover> = to.iter().map(|to| mover(Some(to + 12), &[*to])).collect();
            prop_assert_eq!(most_narrow(&gone), 1);
        }
    }

    #[test]
    fn threads_that_share_their_cpus_go_one_by_one() {
        // Two CPUs of two or three threads each are swapped.
        for on_second in [2, 3] {
            let first = vec![mover(Some(0), &[1]); 2];
            let all = [first, vec![mover(Some(1), &[0]); on_second]].concat();
            assert_eq!(most_narrow(&all), 1);
        }
    }

    #[test]
    fn a_chain_goes_from_its_free_end() {
        let chain = [mover(Some(0), &[1]), mover(Some(1), &[2]), mover(Some(2), &[3])];
        let each = |at| [Act::Narrow(at), Act::Widen(at)];
        assert_eq!(order(&chain), [each(2), each(1), each(0)].concat());
        let swap = [mover(Some(0), &[1]), mover(Some(1), &[0])];
        let [first, second] = [each(0), each(1)];
        assert_eq!(order(&swap), [first[0], second[0], second[1], first[1]]);
    }
}
