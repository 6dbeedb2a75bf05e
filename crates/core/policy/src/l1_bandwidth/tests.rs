use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::{Quantity, Unit, Value};
use symbiont_counters::{Characterizations, Measured, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Sample, Target, ThreadSample};
use symbiont_topology::{CoreId, Topology};

use super::*;

fn measured(value: f64) -> Measured {
    let unit = Unit::Per(Quantity::Accesses, Quantity::Cycles);
    Measured::of([("l1d_bandwidth", Value { value, unit })])
}

/// Runnable threads with these demands; none: not measured.
fn threads(machine: &Topology, demands: &[Option<f64>]) -> (Vec<ThreadSample>, Measurements) {
    let mut known = Measurements::new();
    let threads = (0u32..).zip(demands).map(|(number, demand)| {
        let mut t = thread(0, number, &machine.cpus());
        t.state = RunState::Runnable;
        known.extend(demand.map(|value| (t.id, measured(value))));
        t
    });
    (threads.collect(), known)
}

fn place(machine: &Topology, threads: &[ThreadSample], known: &Measurements) -> Placement {
    let sample = Sample { threads: threads.to_vec(), ..Sample::default() };
    let (did, applied) = (Characterizations::new(), Placement::new());
    L1Bandwidth.place(&View::new(machine, &sample, &did, &applied).measured(known))
}

fn core(machine: &Topology, placement: &Placement, id: &ThreadId) -> CoreId {
    match &placement[id].target {
        Target::Cpus(cpus) => machine.core_of(cpus.first().unwrap()).unwrap().id,
        Target::Os => panic!("{id} is left to the OS"),
    }
}

/// The threads of each core, by number.
fn groups(machine: &Topology, placement: &Placement) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<CoreId, Vec<u32>> = BTreeMap::new();
    for id in placement.keys() {
        groups.entry(core(machine, placement, id)).or_default().push(id.thread);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort();
    groups
}

#[test]
fn with_smt2_the_highest_meets_the_lowest() {
    let machine = Topology::synthetic("core:3 smt:2").unwrap();
    let demands = [0.9, 0.1, 0.5, 0.3, 0.7, 0.2].map(Some);
    let (threads, known) = threads(&machine, &demands);
    let placement = place(&machine, &threads, &known);
    assert_eq!(groups(&machine, &placement), [[0, 1], [2, 3], [4, 5]].map(Vec::from));
}

#[test]
fn with_smt4_sums_are_balanced() {
    let machine = Topology::synthetic("core:2 smt:4").unwrap();
    let demands = [0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1].map(Some);
    let (threads, known) = threads(&machine, &demands);
    let placement = place(&machine, &threads, &known);
    let sum = |group: &Vec<u32>| group.iter().map(|&n| demands[n as usize].unwrap()).sum::<f64>();
    let sums: Vec<f64> = groups(&machine, &placement).iter().map(sum).collect();
    assert!((sums[0] - sums[1]).abs() < 1e-9, "{sums:?}");
}

#[test]
fn no_core_idles_while_others_are_shared() {
    let machine = Topology::synthetic("core:4 smt:2").unwrap();
    let (threads, known) = threads(&machine, &[Some(0.0); 4]);
    assert_eq!(groups(&machine, &place(&machine, &threads, &known)).len(), 4);
}

#[test]
fn a_limit_to_some_threads_of_each_core_is_filled_evenly() {
    let machine = Topology::synthetic("core:2 smt:8").unwrap();
    let (mut threads, known) = threads(&machine, &[Some(0.9), Some(0.1), Some(0.1), Some(0.1)]);
    let allowed: CpuSet = [0, 1, 8, 9].map(symbiont_topology::PuId).into_iter().collect();
    threads.iter_mut().for_each(|t| t.allowed = allowed.clone().into());
    let groups = groups(&machine, &place(&machine, &threads, &known));
    assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn no_thread_moves_when_nothing_changes() {
    let machine = Topology::synthetic("core:4 smt:2").unwrap();
    let demands = [0.9, 0.8, 0.7, 0.6, 0.2, 0.2, 0.2, 0.2].map(Some);
    let (mut threads, known) = threads(&machine, &demands);
    // They run elsewhere than the policy would put them by itself.
    for (t, pu) in threads.iter_mut().zip([6, 4, 2, 0, 1, 3, 5, 7]) {
        t.cpu = Some(symbiont_topology::PuId(pu));
    }
    let placement = place(&machine, &threads, &known);
    for t in &threads {
        let home = machine.core_of(t.cpu.unwrap()).unwrap().id;
        assert_eq!(core(&machine, &placement, &t.id), home, "{t:?}");
    }
}

#[test]
fn who_was_not_measured_is_taken_for_the_mean() {
    let machine = Topology::synthetic("core:2 smt:2").unwrap();
    let (threads, known) = threads(&machine, &[Some(0.9), None, Some(0.1), Some(0.4)]);
    let placement = place(&machine, &threads, &known);
    // The mean is 0.47: second of four.
    assert_eq!(groups(&machine, &placement), [[0, 2], [1, 3]].map(Vec::from));
    let reason = &placement[&threads[1].id].reason;
    assert!(reason.contains("not measured here"), "{reason}");
    let reason = &placement[&threads[0].id].reason;
    assert_eq!(reason, "L1D bandwidth 0.900 accesses/cycles; 1.000 on its core");
}

/// Difference between the largest and the smallest sum of the true demands.
fn spread(machine: &Topology, demands: &[Option<f64>], reported: &[Option<f64>]) -> f64 {
    let (threads, known) = threads(machine, reported);
    let placement = place(machine, &threads, &known);
    let sum = |group: &Vec<u32>| group.iter().filter_map(|&n| demands[n as usize]).sum::<f64>();
    let sums: Vec<f64> = groups(machine, &placement).iter().map(sum).collect();
    sums.iter().fold(f64::MIN, |a, b| a.max(*b)) - sums.iter().fold(f64::MAX, |a, b| a.min(*b))
}

#[test]
fn a_shuffled_signal_balances_nothing() {
    let machine = Topology::synthetic("core:4 smt:2").unwrap();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let (mut reported, mut shuffled, mut lot) = (0.0, 0.0, 0.0);
    for _ in 0..200 {
        let mut demands: Vec<_> = (1..=8).map(|n| Some(f64::from(n) / 8.0)).collect();
        demands.shuffle(&mut rng);
        let mut others = demands.clone();
        others.shuffle(&mut rng);
        reported += spread(&machine, &demands, &demands);
        shuffled += spread(&machine, &demands, &others);
        // By lot: nothing is known, and the threads come in random order.
        lot += spread(&machine, &demands, &[None; 8]);
    }
    assert!(reported < 1e-9, "{reported}");
    assert!(shuffled > 0.9 * lot && shuffled < 1.1 * lot, "{shuffled} {lot}");
}

proptest! {
    #[test]
    fn loads_differ_by_at_most_one_round(
        demands in prop::collection::vec(prop::option::of(0.0..2.0), 0..30),
        cores in 1usize..5, smt in 1usize..5,
    ) {
        let machine = Topology::synthetic(&format!("core:{cores} smt:{smt}")).unwrap();
        let (threads, known) = threads(&machine, &demands);
        let placement = place(&machine, &threads, &known);
        let least = demands.len() / (cores * smt) * smt;
        for group in groups(&machine, &placement) {
            prop_assert!(group.len() >= least && group.len() <= least + smt, "{group:?}");
        }
    }
}
