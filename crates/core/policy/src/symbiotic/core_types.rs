//! Machines with several core types: each core type is decided about by a model of its own.
//!
//! A model holds for one core type; section 7 of the paper thinks of several models for machines
//! that have several. Which thread belongs on which core type no such model says, since it knows what
//! threads do to each other, not how fast each is elsewhere. So threads stay on the core type that they are
//! on. How many each core type gets follows the rule by which an OS fills cores: the first hardware thread
//! of all cores, the fastest core type first, then the second ones, and so on; where there are more threads
//! than hardware threads, from the beginning again. Where a core type has more threads than that, the last
//! ones go where there is room.
//!
//! Threads that run there but are not to be decided about (new ones, those of other pools) take a
//! place of their core type too: or else a thread that is launched anew would drive others to and fro.
//!
//! # Properties
//! - Each core type gets as many threads as the rule says (`threads_are_divided_as_cores_are_filled`).
//! - The parts hold each thread once, and only a thread that finds no room on its core type changes over, whatever
//!   else runs there (`no_thread_changes_over_without_need`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use symbiont_topology::{CoreKind, CpuSet, Topology};

use super::ran;
use crate::View;
use crate::core_slots::{Pool, home};

/// The threads of a pool that are decided about together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub core_type: CoreKind,
    pub pool: Pool,
}

/// What a pool may use of a core type.
#[derive(Debug, Default)]
struct Offer {
    capacity: u32,
    cpus: CpuSet,
    /// Hardware threads of each core.
    places: Vec<usize>,
}

/// Divides a pool by core types.
pub(crate) fn parts(view: &View<'_>, pool: Pool) -> Vec<Part> {
    let offers = offers(view.topology, &pool.allowed);
    if let (Some((&core_type, _)), true) = (offers.first_key_value(), offers.len() == 1) {
        return vec![Part { core_type, pool }];
    }
    let core_type_of = |index: usize| {
        let cpu = home(view.threads.get(index)?).filter(|cpu| pool.allowed.contains(*cpu))?;
        Some(view.topology.core_of(cpu)?.kind)
    };
    let elsewhere: Vec<CoreKind> = (0..view.threads.len())
        .filter(|index| pool.threads.binary_search(index).is_err())
        .filter(|index| view.threads.get(*index).is_some_and(ran))
        .filter_map(core_type_of)
        .collect();
    let mut room = rooms(&offers, pool.threads.len() + elsewhere.len());
    for core_type in elsewhere {
        room.entry(core_type).and_modify(|left| *left = left.saturating_sub(1));
    }
    let mut threads: BTreeMap<CoreKind, Vec<usize>> = BTreeMap::new();
    let mut others = Vec::new();
    for &index in &pool.threads {
        let core_type = core_type_of(index);
        match core_type.and_then(|core_type| {
            Some((core_type, room.get_mut(&core_type).filter(|left| **left > 0)?))
        }) {
            Some((core_type, left)) => {
                *left -= 1;
                threads.entry(core_type).or_default().push(index);
            }
            None => others.push(index),
        }
    }
    for (core_type, left) in room {
        let rest = others.split_off(left.min(others.len()));
        threads.entry(core_type).or_default().append(&mut others);
        others = rest;
    }
    // Where the threads that run elsewhere fill a core type, more are left than there is room.
    for (core_type, index) in offers.keys().cycle().zip(others) {
        threads.entry(*core_type).or_default().push(index);
    }
    let part = |(core_type, offer): (CoreKind, Offer)| {
        let mut threads = threads.remove(&core_type).unwrap_or_default();
        threads.sort_unstable();
        Part { core_type, pool: Pool { allowed: offer.cpus, threads } }
    };
    offers.into_iter().map(part).filter(|part| !part.pool.threads.is_empty()).collect()
}

fn offers(topology: &Topology, allowed: &CpuSet) -> BTreeMap<CoreKind, Offer> {
    let mut offers: BTreeMap<CoreKind, Offer> = BTreeMap::new();
    for core in topology.cores() {
        let cpus = core.cpus.intersection(allowed);
        if !cpus.is_empty() {
            let offer = offers.entry(core.kind).or_default();
            offer.capacity = offer.capacity.max(core.capacity);
            offer.places.push(cpus.len());
            offer.cpus = offer.cpus.union(&cpus);
        }
    }
    offers
}

/// How many of some threads each core type gets.
fn rooms(offers: &BTreeMap<CoreKind, Offer>, threads: usize) -> BTreeMap<CoreKind, usize> {
    let mut order: Vec<(&CoreKind, &Offer)> = offers.iter().collect();
    order.sort_by_key(|(core_type, offer)| (Reverse(offer.capacity), **core_type));
    let all: usize = offers.values().flat_map(|offer| &offer.places).sum();
    let (rounds, mut left) = (threads / all.max(1), threads % all.max(1));
    let of = |offer: &Offer| rounds * offer.places.iter().sum::<usize>();
    let mut rooms: BTreeMap<CoreKind, usize> =
        offers.iter().map(|(core_type, offer)| (*core_type, of(offer))).collect();
    let widest = offers.values().flat_map(|offer| &offer.places).max();
    for place in 0..widest.copied().unwrap_or(0) {
        for (core_type, offer) in &order {
            let there = offer.places.iter().filter(|places| **places > place).count().min(left);
            *rooms.entry(**core_type).or_default() += there;
            left -= there;
        }
    }
    rooms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use symbiont_counters::Characterizations;
    use symbiont_machine::test_support::thread;
    use symbiont_machine::{Placement, Program, ProgramId, RunState, Sample};
    use symbiont_topology::PuId;

    use super::*;

    proptest! {
        #[test]
        fn threads_are_divided_as_cores_are_filled(
            fast in 1_usize..5,
            slow in 1_usize..5,
            smt in prop::sample::select(vec![1_usize, 2, 4]),
            threads in 0_usize..60,
        ) {
            let text = format!("core:{fast} smt:{smt} | core:{slow} kind:efficiency capacity:500");
            let topology = Topology::synthetic(&text).unwrap();
            let offers = offers(&topology, &topology.cpus());
            let rooms = rooms(&offers, threads);
            prop_assert_eq!(rooms.values().sum::<usize>(), threads);
            // Thread by thread: always the least loaded place, by turns, the fastest core type first.
            let mut loads: Vec<(usize, CoreKind)> = Vec::new();
            for round in 0..=threads {
                for place in 0..smt {
                    loads.extend((0..fast).map(|_| (round * smt + place, CoreKind::Performance)));
                    if place == 0 {
                        loads.extend((0..slow).map(|_| (round * smt, CoreKind::Efficiency)));
                    }
                }
            }
            let fast_ones = loads.iter().take(threads).filter(|(_, s)| *s == CoreKind::Performance);
            prop_assert_eq!(rooms[&CoreKind::Performance], fast_ones.count());
        }

        #[test]
        fn no_thread_changes_over_without_need(
            threads in prop::collection::vec((0_u32..8, any::<bool>()), 1..20),
        ) {
            let topology = "core:2 smt:2 | core:4 kind:efficiency capacity:500";
            let topology = Topology::synthetic(topology).unwrap();
            let online = topology.cpus();
            let one = |(at, (cpu, _)): (u32, &(u32, bool))| {
                let mut thread = thread(at, at, &online);
                (thread.state, thread.cpu) = (RunState::Runnable, Some(PuId(*cpu)));
                thread
            };
            let sample = Sample {
                threads: (0..).zip(&threads).map(one).collect(),
                programs: (0..threads.len() as u32)
                    .map(|at| Program::new(ProgramId(at), format!("program-{at}")))
                    .collect(),
                ..Sample::default()
            };
            let (did, none) = (Characterizations::new(), Placement::new());
            let view = View::new(&topology, &sample, &did, &none);
            let decided = |at: &usize| threads[*at].1;
            let of_pool: Vec<usize> = (0..threads.len()).filter(decided).collect();
            let pool = Pool { allowed: online.clone(), threads: of_pool.clone() };
            let parts = parts(&view, pool);
            let mut all: Vec<usize> = parts.iter().flat_map(|p| p.pool.threads.clone()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, of_pool);
            let home = |at: usize| topology.core_of(PuId(threads[at].0)).unwrap().kind;
            let rooms = rooms(&offers(&topology, &online), threads.len());
            for part in &parts {
                for at in part.pool.threads.iter().filter(|at| home(**at) != part.core_type) {
                    let core_type = home(*at);
                    let elsewhere = (0..threads.len()).filter(|at| !decided(at) && home(*at) == core_type);
                    let room = rooms[&core_type].saturating_sub(elsewhere.count());
                    let own = parts.iter().find(|part| part.core_type == core_type);
                    let stayed = own.map_or(0, |part| {
                        part.pool.threads.iter().filter(|at| home(**at) == core_type).count()
                    });
                    prop_assert_eq!(stayed, room);
                }
            }
        }
    }
}
