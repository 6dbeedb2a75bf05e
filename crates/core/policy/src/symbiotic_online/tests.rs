use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::test_support::full_support;
use symbiont_machine::{Ability, Signal, Support, Target};
use symbiont_topology::Topology;

use super::*;
use crate::worlds::stacks::{Bench, model};

const EAGER: [f64; 5] = [70.0, 10.0, 10.0, 5.0, 5.0];
const WAITING: [f64; 5] = [10.0, 70.0, 5.0, 10.0, 5.0];

fn settings() -> Settings {
    Settings { models: Some(Arc::new(model().into())), ..Settings::default() }
}

fn policy() -> SymbioticOnline {
    with_feedback(false)
}

fn with_feedback(feedback: bool) -> SymbioticOnline {
    SymbioticOnline::with(&settings().with(&SymbioticOnline::FEEDBACK, &feedback).unwrap())
}

/// A machine that measures these.
fn offering(signals: &[Signal]) -> Support {
    let mut support = full_support();
    support.signals = signals.iter().map(|signal| (*signal, Ability::Full)).collect();
    support
}

fn mixed(bench: &Bench, eager: usize) -> bool {
    let groups = bench.groups();
    groups.iter().all(|g| g.iter().filter(|at| **at < eager).count() == eager / groups.len())
}

#[test]
fn threads_that_need_the_same_are_kept_apart_and_stay() {
    for (machine, half) in [("core:2 smt:2", 2), ("core:2 smt:4", 4), ("core:4 smt:2", 4)] {
        let stacks = [vec![EAGER; half], vec![WAITING; half]].concat();
        let (mut bench, mut policy) = (Bench::new(machine, &stacks), policy());
        assert!(!mixed(&bench, half), "they begin with their like");
        bench.step(&mut policy);
        assert!(mixed(&bench, half), "{machine}: {:?}", bench.groups());
        let before = bench.targets();
        for _ in 0..30 {
            bench.step(&mut policy);
            assert_eq!(bench.targets(), before, "{machine}");
        }
        let assignment = bench.placement().values().next().unwrap();
        assert!(assignment.reason.contains("by form delta"), "{}", assignment.reason);
        assert!(assignment.predicted_slowdown.is_some_and(|s| s > 1.0 && s < 4.0));
    }
}

#[test]
fn a_new_phase_is_followed() {
    let stacks = [EAGER, EAGER, WAITING, WAITING];
    let (mut bench, mut policy) = (Bench::new("core:2 smt:2", &stacks), policy());
    (0..20).for_each(|_| bench.step(&mut policy));
    assert!(mixed(&bench, 2));
    // Threads that share a core do the same from now on.
    let groups = bench.groups();
    let phases: Vec<[f64; 5]> =
        (0..4).map(|at| if groups[0].contains(&at) { EAGER } else { WAITING }).collect();
    bench.change(&phases);
    (0..30).for_each(|_| bench.step(&mut policy));
    let alike = |group: &Vec<usize>| phases[group[0]] == phases[group[1]];
    assert!(!bench.groups().iter().any(alike), "{:?}", bench.groups());
}

#[test]
fn whatever_is_measured_every_thread_is_assigned() {
    for odd in [f64::NAN, f64::INFINITY, f64::MAX, 1e300, 0.0, -1.0] {
        for (machine, count) in [("core:2 smt:2", 4), ("core:1 smt:4", 4), ("core:3 smt:2", 5)] {
            let stacks: Vec<[f64; 5]> = [EAGER, WAITING].into_iter().cycle().take(count).collect();
            let (mut bench, mut policy) = (Bench::new(machine, &stacks), policy());
            for _ in 0..3 {
                bench.measure();
                bench.set(0, [odd; 5]);
                bench.set(1, [1.0, odd, 1.0, 1.0, 1.0]);
                bench.decide(&mut policy);
                assert!(bench.placement().values().all(|a| a.target != Target::Os));
                let sound = |slowdown: &f64| slowdown.is_finite() && *slowdown >= 0.5;
                assert!(bench.predicted().iter().all(|p| p.as_ref().is_some_and(sound)));
            }
        }
    }
}

/// Negative control.
#[test]
fn shuffled_stacks_make_random_pairs() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let (mut reported, mut shuffled, mut lot) = (0.0, 0.0, 0.0);
    for _ in 0..150 {
        let mut stacks = [vec![EAGER; 4], vec![WAITING; 4]].concat();
        stacks.shuffle(&mut random);
        let mut right = Bench::new("core:4 smt:2", &stacks);
        right.step(&mut policy());
        reported += right.stp();
        let mut wrong = Bench::new("core:4 smt:2", &stacks);
        wrong.measure();
        wrong.shuffle(&mut random);
        wrong.decide(&mut policy());
        shuffled += wrong.stp();
        let mut chance = Bench::new("core:4 smt:2", &stacks);
        chance.step(&mut crate::Random::new(rand::Rng::random(&mut random)));
        lot += chance.stp();
    }
    let gain = reported - lot;
    assert!(gain > 0.02 * lot, "{reported} {lot}");
    assert!((shuffled - lot).abs() < 0.2 * gain, "{reported} {shuffled} {lot}");
}

/// Two threads suffer from each other as from no other, and their stacks do not show it.
#[test]
fn what_no_stack_shows_is_learned_from_what_groups_did() {
    let often_together = |feedback: bool, other: usize| {
        let mut bench = Bench::new("core:2 smt:2", &[EAGER, EAGER, WAITING, WAITING]);
        let mut policy = with_feedback(feedback);
        let mut met = 0;
        for quantum in 0..60 {
            let groups = bench.groups();
            bench.measure();
            if groups.iter().any(|group| group.contains(&0) && group.contains(&other)) {
                for at in [0, other] {
                    bench.stretch(at, 1.5);
                }
                met += usize::from(quantum >= 20);
            }
            bench.decide(&mut policy);
            assert!(mixed(&bench, 2), "what stacks show is seen as before");
        }
        met > 4
    };
    // Which of the two equal ones it was put next to at first, it stays with it.
    assert!([2, 3].iter().any(|&other| often_together(false, other)));
    assert!(![2, 3].iter().any(|&other| often_together(true, other)));
}

#[test]
fn requests_to_memory_are_counted_where_a_node_has_none() {
    let counts = |signals: &[Signal]| {
        let mut policy = policy();
        let of = |line: &str| Topology::synthetic(line).unwrap();
        let machine = of("node:1 core:2 smt:2 memory:1G | node:1 core:2 smt:2 memory:0");
        policy.offer(&offering(signals), &machine);
        let far = policy.requirements().required.contains(&Signal::MemoryRequests);
        policy.offer(&offering(signals), &of("node:2 core:2 smt:2 memory:1G"));
        (far, policy.requirements().required.contains(&Signal::MemoryRequests))
    };
    assert_eq!(counts(&Signal::ALL), (true, false));
    assert_eq!(counts(&[Signal::RunStates, Signal::CpiStack]), (false, false));
}
