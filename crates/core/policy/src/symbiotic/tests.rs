use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::{Sample, Target};
use symbiont_model::Throttling;
use symbiont_topology::{CoreKind, Topology};

use super::*;
use crate::runner_up;
use crate::worlds::stacks::{Bench, STACK, model};

/// Of each hundred cycles, those of the five components.
const EAGER: [f64; 5] = [70.0, 10.0, 10.0, 5.0, 5.0];
const WAITING: [f64; 5] = [10.0, 70.0, 5.0, 10.0, 5.0];

fn by(models: Models) -> Symbiotic {
    Symbiotic::published(&Settings { models: Some(Arc::new(models)), ..Settings::default() })
}

fn policy() -> Symbiotic {
    by(model().into())
}

fn bench(machine: &str, stacks: &[[f64; 5]]) -> Bench {
    Bench::new(machine, stacks)
}

/// Are the eager threads spread evenly over the cores?
fn mixed(bench: &Bench, eager: usize) -> bool {
    let groups = bench.groups();
    let counts = groups.iter().map(|group| group.iter().filter(|at| **at < eager).count());
    counts.collect::<Vec<_>>().iter().all(|count| *count == eager / groups.len())
}

#[test]
fn threads_that_need_the_same_are_kept_apart() {
    for (machine, half) in [("core:2 smt:2", 2), ("core:2 smt:4", 4)] {
        let stacks = [vec![EAGER; half], vec![WAITING; half]].concat();
        let mut bench = bench(machine, &stacks);
        let mut policy = policy();
        assert!(!mixed(&bench, half), "they begin with their like");
        for _ in 0..3 {
            bench.step(&mut policy);
            assert!(mixed(&bench, half), "{machine}: {:?}", bench.groups());
        }
        let assignment = bench.placement().values().next().unwrap();
        assert!(assignment.reason.contains("predicted slowdowns"), "{}", assignment.reason);
        assert!(assignment.predicted_slowdown.is_some_and(|s| s > 1.0 && s < 4.0));
    }
}

#[test]
fn each_core_type_has_its_own_model() {
    let hybrid = "core:2 smt:2 | core:2 smt:2 kind:efficiency capacity:500";
    let of_small = || Model { core: CoreKind::Efficiency, ..model() };
    let with = |others| by(Models { others, ..model().into() });
    let stacks = [EAGER, EAGER, WAITING, WAITING, EAGER, EAGER, WAITING, WAITING];
    let unlike = |group: &Vec<usize>| group.len() == 2 && stacks[group[0]] != stacks[group[1]];
    let stayed = |group: &Vec<usize>| (group[0] < 4) == (group[1] < 4);
    let mut bench = bench(hybrid, &stacks);
    let mut both = with(vec![of_small()]);
    for _ in 0..3 {
        bench.step(&mut both);
        assert!(bench.groups().iter().all(|group| unlike(group) && stayed(group)));
    }
    // By one alone, the others are left to the OS.
    let mut bench = self::bench(hybrid, &stacks);
    bench.step(&mut with(Vec::new()));
    let left = bench.placement().values().filter(|assignment| assignment.target == Target::Os);
    let reasons: Vec<_> = left.map(|assignment| assignment.reason.as_ref()).collect();
    assert_eq!(reasons, ["no model is of Efficiency cores; train one for them"; 4]);
    // Where a core runs one thread at a time, none is needed; and more threads than there are places
    // on one sort go to the other.
    let mut bench = self::bench("core:2 smt:2 | core:4 kind:efficiency capacity:500", &stacks);
    bench.step(&mut with(Vec::new()));
    let mut sizes: Vec<usize> = bench.groups().iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 1, 1, 1, 2, 2]);
    assert!(bench.groups().iter().filter(|group| group.len() == 2).all(unlike));
}

#[test]
fn predicted_slowdowns_come_true() {
    let stacks = [EAGER, WAITING, [40.0, 30.0, 10.0, 10.0, 10.0], [5.0, 5.0, 80.0, 5.0, 5.0]];
    let mut bench = bench("core:2 smt:2", &stacks);
    bench.step(&mut policy());
    let throttling = crate::worlds::stacks::THROTTLING;
    for (at, predicted) in bench.predicted().into_iter().enumerate() {
        let truth = bench.slowdown(at) * throttling;
        let error = (predicted.unwrap() / truth - 1.0).abs();
        assert!(error < 0.01, "{at}: {predicted:?} {truth}");
    }
}

#[test]
fn what_is_foreseen_is_what_was_predicted_and_no_other_placement_is_better() {
    let stacks = [EAGER, WAITING, [40.0, 30.0, 10.0, 10.0, 10.0], [5.0, 5.0, 80.0, 5.0, 5.0]];
    let mut bench = bench("core:2 smt:2", &stacks);
    let mut policy = policy();
    assert!(bench.show(|view| policy.foresight(view)).is_some());
    bench.step(&mut policy);
    let foresight = bench.show(|view| policy.foresight(view)).unwrap();
    for (id, assignment) in bench.placement() {
        let best = bench.show(|view| runner_up(view, &*foresight, bench.placement(), *id));
        let best = best.unwrap();
        assert_eq!(Some(best.applied.slowdown), assignment.predicted_slowdown);
        assert!(best.score.throughput < best.applied.throughput + 1e-3, "{best:?}");
        assert!(matches!(best.change, crate::Change::Exchange(_)), "all places are taken");
    }
    let none = Symbiotic::new(None);
    assert!(bench.show(|view| none.foresight(view)).is_none());
}

#[test]
fn achieved_slowdowns_are_the_true_ones() {
    let stacks = [EAGER, WAITING, [40.0, 30.0, 10.0, 10.0, 10.0], [5.0, 5.0, 80.0, 5.0, 5.0]];
    let mut bench = bench("core:3 smt:2", &[&stacks[..], &[EAGER]].concat());
    let mut policy = policy();
    bench.step(&mut policy);
    let together: Vec<Vec<usize>> = bench.groups();
    let truth: Vec<f64> = (0..5).map(|at| bench.slowdown(at)).collect();
    bench.step(&mut policy);
    let ids: Vec<ThreadId> = bench.placement().keys().copied().collect();
    for group in together {
        for &at in &group {
            let achieved = policy.achieved_slowdown(ids[at]);
            if group.len() == 1 {
                assert_eq!(achieved, None, "what it would suffer from others was not seen");
                continue;
            }
            let truth = truth[at] * crate::worlds::stacks::THROTTLING;
            assert!((achieved.unwrap() / truth - 1.0).abs() < 0.02, "{at}: {achieved:?} {truth}");
        }
    }
    bench.measure();
    bench.forget(0, &STACK);
    bench.decide(&mut policy);
    assert_eq!(policy.achieved_slowdown(ids[0]), None, "it was not measured");
}

#[test]
fn stacks_alone_are_those_that_the_threads_have() {
    let stacks = [EAGER, WAITING, [40.0, 30.0, 10.0, 10.0, 10.0], [5.0, 5.0, 80.0, 5.0, 5.0]];
    let mut bench = bench("core:2 smt:2", &stacks);
    let settings = Settings { models: Some(Arc::new(model().into())), ..Settings::default() };
    for name in ["symbiotic", "symbiotic-numa", "symbiotic-online"] {
        let mut policy = crate::Classes::new((crate::find(name).unwrap().make)(&settings));
        let every = symbiont_machine::test_support::full_support();
        policy.offer(&every, &Topology::synthetic("core:2 smt:2").unwrap());
        bench.step(&mut policy);
        let ids: Vec<ThreadId> = bench.placement().keys().copied().collect();
        for (id, truth) in ids.iter().zip(stacks) {
            let stack = policy.stack_alone(*id).unwrap();
            assert_eq!(stack.iter().map(|(name, _)| *name).collect::<Vec<_>>(), STACK, "{name}");
            for ((component, share), truth) in stack.iter().zip(truth) {
                let error = (share - truth / 100.0).abs();
                assert!(error < 0.1, "{name}: {component} of {id:?}: {share} {truth}");
            }
        }
        bench.measure();
        bench.forget(0, &STACK);
        bench.decide(&mut policy);
        assert_eq!(policy.stack_alone(ids[0]), None, "{name}: it was not measured");
        assert!(policy.stack_alone(ids[1]).is_some(), "{name}");
    }
}

#[test]
fn a_thread_is_alone_where_that_pays() {
    // As many cores as threads: sharing never pays.
    let mut idle = bench("core:4 smt:2", &[EAGER, EAGER, WAITING, WAITING]);
    idle.step(&mut policy());
    assert_eq!(idle.groups().len(), 4);
    assert!(idle.placement().values().all(|a| a.reason.contains("alone on its core")));
    // One too many: an eager one goes with a waiting one.
    let mut odd = bench("core:2 smt:2", &[EAGER, EAGER, WAITING]);
    odd.step(&mut policy());
    assert_eq!(odd.groups().len(), 2);
    assert!(odd.groups().iter().all(|group| group.iter().filter(|at| **at < 2).count() == 1));
}

#[test]
fn no_thread_moves_when_nothing_changes() {
    for (machine, half) in [("core:3 smt:2", 3), ("core:2 smt:4", 4)] {
        let stacks = [vec![EAGER; half], vec![WAITING; half]].concat();
        let mut bench = bench(machine, &stacks);
        let mut policy = policy();
        // The first estimates are of threads among their like.
        (0..2).for_each(|_| bench.step(&mut policy));
        let before = bench.targets();
        for _ in 0..3 {
            bench.step(&mut policy);
            assert_eq!(bench.targets(), before);
        }
    }
}

#[test]
fn degenerate_stacks_are_survived() {
    let stacks = [EAGER, EAGER, WAITING, WAITING, EAGER];
    let whole = |bench: &Bench| bench.placement().len() == stacks.len();
    let gone: [&dyn Fn(&mut Bench); 4] = [
        &|bench| bench.forget(0, &STACK),
        &|bench| bench.forget(1, &STACK[1..2]),
        &|bench| bench.set(2, [0.0; 5]),
        &|bench| bench.sleep(3),
    ];
    for spoil in gone {
        let (mut bench, mut policy) = (bench("core:3 smt:2", &stacks), policy());
        for _ in 0..3 {
            bench.measure();
            spoil(&mut bench);
            bench.decide(&mut policy);
            assert!(whole(&bench), "{:?}", bench.placement());
        }
        let asleep = bench.placement().values().filter(|a| a.target == Target::Os).count();
        assert!(asleep <= 1);
    }
    // No thread measured at all: nothing is decided, and the reason is given.
    let mut dark = bench("core:3 smt:2", &stacks);
    (0..stacks.len()).for_each(|at| dark.forget(at, &STACK));
    dark.decide(&mut policy());
    assert!(dark.placement().values().all(|a| a.reason == "no thread was measured yet"));
    for (machine, count) in [("core:1 smt:2", 1), ("core:4 smt:4", 1), ("core:1 smt:2", 5)] {
        let mut bench = bench(machine, &stacks[..count]);
        let mut policy = policy();
        (0..2).for_each(|_| bench.step(&mut policy));
        assert_eq!(bench.placement().len(), count);
        assert!(bench.placement().values().all(|a| a.target != Target::Os));
    }
}

#[test]
fn a_core_wider_than_the_model_is_used_as_far_as_the_model_goes() {
    let mut narrow = model();
    narrow.modes.retain(|mode, _| *mode == symbiont_model::SmtMode::Smt2);
    let mut fits = bench("core:2 smt:8", &[EAGER; 4]);
    fits.step(&mut by(narrow.clone().into()));
    assert_eq!(fits.groups().len(), 2);
    let mut too_many = bench("core:1 smt:8", &[EAGER; 4]);
    too_many.step(&mut by(narrow.into()));
    let reason = &too_many.placement().values().next().unwrap().reason;
    assert!(reason.contains("no groups of 4 threads"), "{reason}");
}

#[test]
fn without_a_model_all_is_left_to_the_os() {
    let mut bench = bench("core:2 smt:2", &[EAGER; 4]);
    let mut policy = Symbiotic::new(None);
    assert!(policy.requirements().missing_input.is_some_and(|missing| missing.option == "--model"));
    bench.step(&mut policy);
    assert!(
        bench.placement().values().all(|a| a.target == Target::Os && a.reason == MODEL.to_string())
    );
}

#[test]
fn threads_that_take_turns_are_grouped_too() {
    let mut bench = bench("core:2", &[EAGER, EAGER, WAITING, WAITING]);
    let mut policy = policy();
    (0..3).for_each(|_| bench.step(&mut policy));
    assert!(mixed(&bench, 2), "{:?}", bench.groups());
}

/// Without throttling ratios a thread alone counts as fast as with co-runners
/// without interference; it is still decided.
#[test]
fn a_model_without_throttling_decides_too() {
    let mut model = model();
    for trained in model.modes.values_mut() {
        trained.throttling = None::<Throttling>;
    }
    let mut bench = bench("core:2 smt:2", &[EAGER, EAGER, WAITING, WAITING]);
    bench.step(&mut by(model.into()));
    assert!(mixed(&bench, 2), "{:?}", bench.groups());
}

/// Negative control.
#[test]
fn shuffled_stacks_make_random_pairs() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let (mut reported, mut shuffled, mut lot, mut worst) = (0.0, 0.0, 0.0, f64::MAX);
    for _ in 0..150 {
        let mut stacks = [vec![EAGER; 4], vec![WAITING; 4]].concat();
        stacks.shuffle(&mut random);
        let mut right = bench("core:4 smt:2", &stacks);
        right.step(&mut policy());
        reported += right.stp();
        // Each is shown what another one measures.
        let mut wrong = bench("core:4 smt:2", &stacks);
        wrong.measure();
        wrong.shuffle(&mut random);
        wrong.decide(&mut policy());
        shuffled += wrong.stp();
        let mut chance = bench("core:4 smt:2", &stacks);
        chance.step(&mut crate::Random::new(rand::Rng::random(&mut random)));
        lot += chance.stp();
        worst = worst.min(chance.stp());
    }
    let gain = reported - lot;
    assert!(gain > 0.02 * lot, "{reported} {lot}");
    assert!((shuffled - lot).abs() < 0.2 * gain, "{reported} {shuffled} {lot}");
    assert!(worst < lot / 150.0);
}

#[test]
fn threads_that_end_are_forgotten() {
    let mut policy = policy();
    let mut bench = bench("core:2 smt:2", &[EAGER, WAITING]);
    bench.step(&mut policy);
    assert!(!policy.estimates.is_empty());
    let machine = Topology::synthetic("core:2 smt:2").unwrap();
    let (sample, known, applied) = (Sample::default(), BTreeMap::new(), Placement::new());
    policy.place(&View::new(&machine, &sample, &known, &applied));
    assert!(policy.estimates.is_empty());
}
