//! `random`: a new random partition each quantum. What a symbiotic scheduler
//! must beat, and the zero of "headroom captured".
//!
//! It deals the threads to hardware threads like cards: in random order, each
//! to a hardware thread that has the fewest so far; among those to one whose
//! core has the fewest, so that idle cores fill before siblings share one.
//! Only *which programs share a core* is left to chance: a partition that leaves cores idle
//! would lose for a reason that has nothing to do with co-runners.
//!
//! Runnable threads are dealt before sleeping ones, so that those that run are
//! spread evenly. Within each kind those with the fewest places to choose from
//! come first, or others might take theirs.
//!
//! Properties: with equal limits, loads of hardware threads differ by at most
//! one, and so do those of equal cores while there are no more threads than
//! hardware threads (`loads_are_balanced`); any two threads meet in due
//! course (`every_program_shares_a_core_with_every_other`).

use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::{Assignment, Placement, RunState, ThreadId};
use symbiont_topology::{CpuSet, PuId};

use crate::{Entry, Placeable, Policy, View};

pub(crate) const ENTRY: Entry = Entry {
    name: "random",
    summary: "deals the threads to hardware threads anew each quantum, balanced but blindly",
    paper: None,
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: &[],
    make: |settings| Box::new(Random::new(settings.seed)),
};

/// A new random partition each quantum.
#[derive(Debug, Clone)]
pub struct Random {
    rng: Pcg64Mcg,
}

impl Random {
    /// Equal seeds give equal partitions.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Pcg64Mcg::seed_from_u64(seed) }
    }
}

/// A hardware thread with its core (index) and the threads dealt to it.
struct Slot {
    pu: PuId,
    core: usize,
    load: usize,
}

/// The reason where nothing can be drawn.
const ALLOWED: &str = "its mask allows no other";

/// A thread to be dealt.
struct Card {
    id: ThreadId,
    asleep: bool,
    allowed: CpuSet,
}

impl Policy for Random {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let (threads, mut placement) = view.placeable();
        let card = |Placeable { thread, allowed, .. }| Card {
            id: thread.id,
            asleep: thread.state != RunState::Runnable,
            allowed,
        };
        let mut deck: Vec<Card> = threads.into_iter().map(card).collect();
        deck.shuffle(&mut self.rng);
        deck.sort_by_key(|card| (card.asleep, card.allowed.len()));

        let mut core_loads = vec![0; view.topology.cores().len()];
        let mut slots: Vec<Slot> = (view.topology.cores().iter().enumerate())
            .flat_map(|(core, c)| c.cpus.iter().map(move |pu| Slot { pu, core, load: 0 }))
            .collect();
        slots.shuffle(&mut self.rng);

        for card in deck {
            let free = slots.iter_mut().filter(|slot| card.allowed.contains(slot.pu));
            if let Some(slot) = free.min_by_key(|slot| (slot.load, core_loads[slot.core])) {
                slot.load += 1;
                core_loads[slot.core] += 1;
                let reason = if card.allowed.len() == 1 { ALLOWED } else { "drawn by lot" };
                let drawn = Assignment::on(slot.pu.into(), reason);
                placement.insert(card.id, drawn);
            }
        }
        placement
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use symbiont_counters::Characterizations;
    use symbiont_machine::test_support::thread;
    use symbiont_machine::{Sample, Target, ThreadSample};
    use symbiont_topology::Topology;

    use super::*;

    fn place(policy: &mut Random, machine: &Topology, threads: &[ThreadSample]) -> Placement {
        let sample = Sample { threads: threads.to_vec(), ..Sample::default() };
        let (known, applied) = (Characterizations::new(), Placement::new());
        policy.place(&View::new(machine, &sample, &known, &applied))
    }

    fn slot(placement: &Placement, of: &ThreadSample) -> PuId {
        match &placement[&of.id].target {
            Target::Cpus(cpus) if cpus.len() == 1 => cpus.first().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn loads_are_balanced(seed: u64, cores in 1usize..6, smt in 1u32..5, count in 0u32..30) {
            let machine = Topology::synthetic(&format!("core:{cores} smt:{smt}")).unwrap();
            let threads: Vec<_> = (0..count).map(|n| thread(0, n, &machine.cpus())).collect();
            let placement = place(&mut Random::new(seed), &machine, &threads);
            let mut loads: BTreeMap<PuId, usize> =
                machine.cpus().iter().map(|pu| (pu, 0)).collect();
            let mut core_loads = vec![0; cores];
            for t in &threads {
                let pu = slot(&placement, t);
                *loads.get_mut(&pu).unwrap() += 1;
                core_loads[machine.core_of(pu).unwrap().id.0 as usize] += 1;
            }
            let spread = |l: Vec<usize>| l.iter().max().unwrap() - l.iter().min().unwrap();
            prop_assert!(spread(loads.into_values().collect()) <= 1);
            prop_assert!(spread(core_loads) <= 1);
        }
    }

    #[test]
    fn every_program_shares_a_core_with_every_other() {
        let machine = Topology::synthetic("core:2 smt:2").unwrap();
        let threads: Vec<_> = (0..4).map(|n| thread(0, n, &machine.cpus())).collect();
        let mut policy = Random::new(7);
        let mut partners = BTreeSet::new();
        for _ in 0..50 {
            let placement = place(&mut policy, &machine, &threads);
            let core = |t| machine.core_of(slot(&placement, t)).unwrap().id;
            partners.extend((1..4).filter(|&n| core(&threads[n]) == core(&threads[0])));
        }
        assert_eq!(partners, BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn a_thread_that_is_pinned_is_not_drawn() {
        let machine = Topology::synthetic("core:2").unwrap();
        let threads = [thread(0, 1, &PuId(1).into()), thread(0, 2, &machine.cpus())];
        let placement = place(&mut Random::new(7), &machine, &threads);
        assert_eq!(placement[&threads[0].id].reason, ALLOWED);
        assert_eq!(placement[&threads[1].id].reason, "drawn by lot");
    }

    #[test]
    fn no_core_is_favoured_while_some_are_idle() {
        let machine = Topology::synthetic("core:4").unwrap();
        let alone = thread(0, 1, &machine.cpus());
        let mut policy = Random::new(7);
        let seen: BTreeSet<_> = (0..50)
            .map(|_| slot(&place(&mut policy, &machine, std::slice::from_ref(&alone)), &alone))
            .collect();
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn threads_with_few_places_choose_first() {
        let machine = Topology::synthetic("core:2").unwrap();
        let free = thread(0, 1, &machine.cpus());
        let bound = thread(0, 2, &"0".parse().unwrap());
        for seed in 0..20 {
            let both = [free.clone(), bound.clone()];
            let placement = place(&mut Random::new(seed), &machine, &both);
            assert_eq!(slot(&placement, &bound), PuId(0));
            assert_eq!(slot(&placement, &free), PuId(1));
        }
    }

    #[test]
    fn sleepers_do_not_unbalance_the_runnable() {
        let machine = Topology::synthetic("core:2").unwrap();
        let mut threads: Vec<_> = (0..6).map(|n| thread(0, n, &machine.cpus())).collect();
        for t in &mut threads[..2] {
            t.state = RunState::Runnable;
        }
        for seed in 0..20 {
            let placement = place(&mut Random::new(seed), &machine, &threads);
            assert_ne!(slot(&placement, &threads[0]), slot(&placement, &threads[1]));
        }
    }
}
