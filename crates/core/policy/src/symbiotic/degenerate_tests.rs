//! Numbers of threads that do not fill cores, copies of a program, and measurements that are none.

use std::collections::BTreeSet;

use symbiont_machine::Target;

use super::*;
use crate::worlds::stacks::{Bench, STACK, model};

const EAGER: [f64; 5] = [70.0, 10.0, 10.0, 5.0, 5.0];
const WAITING: [f64; 5] = [10.0, 70.0, 5.0, 10.0, 5.0];

fn policy() -> Symbiotic {
    let models = Some(Arc::new(model().into()));
    Symbiotic::published(&Settings { models, ..Settings::default() })
}

/// Alternating stacks.
fn stacks(count: usize) -> Vec<[f64; 5]> {
    [EAGER, WAITING].into_iter().cycle().take(count).collect()
}

/// Does each thread have a target, and a prediction that is a number?
#[track_caller]
fn assert_decided(bench: &Bench, count: usize) {
    assert_eq!(bench.placement().len(), count);
    assert!(bench.placement().values().all(|a| a.target != Target::Os), "{:?}", bench.placement());
    let sound = |slowdown: &f64| slowdown.is_finite() && *slowdown > 0.4;
    assert!(bench.predicted().iter().all(|p| p.as_ref().is_some_and(sound)));
}

#[test]
fn any_number_of_threads_is_assigned() {
    for (machine, places, width) in [("core:2 smt:4", 8, 4), ("core:3 smt:2", 6, 2)] {
        for count in 1..=places + 3 {
            let (mut bench, mut policy) = (Bench::new(machine, &stacks(count)), policy());
            (0..3).for_each(|_| bench.step(&mut policy));
            assert_decided(&bench, count);
            if count > places {
                continue;
            }
            let taken: BTreeSet<_> =
                (0..count).filter_map(|thread| bench.cpus(thread).first()).collect();
            assert_eq!(taken.len(), count, "{machine}: two on one hardware thread");
            assert!(bench.groups().iter().all(|group| group.len() <= width));
            // No thread shares where there is a core for each.
            assert!(count * width > places || bench.groups().len() == count, "{machine} {count}");
        }
    }
}

/// Copies of a program are all the same: no thread is better off elsewhere.
#[test]
fn copies_of_a_program_stay_where_they_are() {
    for (machine, count) in [("core:3 smt:2", 6), ("core:2 smt:4", 8)] {
        let (mut bench, mut policy) = (Bench::new(machine, &vec![EAGER; count]), policy());
        bench.step(&mut policy);
        let (before, predicted) = (bench.targets(), bench.predicted());
        (0..3).for_each(|_| bench.step(&mut policy));
        assert_decided(&bench, count);
        assert_eq!(bench.targets(), before, "{machine}");
        let first = predicted[0].unwrap();
        assert!(predicted.iter().all(|p| (p.unwrap() - first).abs() < 1e-9), "{predicted:?}");
    }
}

#[test]
fn measurements_that_are_none_are_taken_for_the_mean() {
    for odd in [f64::NAN, f64::INFINITY, f64::MAX, 1e300, 0.0, -1.0] {
        for machine in ["core:2 smt:2", "core:1 smt:4"] {
            let (mut bench, mut policy) = (Bench::new(machine, &stacks(4)), policy());
            for _ in 0..3 {
                bench.measure();
                bench.set(0, [odd; 5]);
                bench.set(1, [1.0, odd, 1.0, 1.0, 1.0]);
                bench.decide(&mut policy);
                assert_decided(&bench, 4);
            }
        }
    }
}

#[test]
fn where_no_thread_is_measured_nothing_is_decided() {
    let spoil: [fn(&mut Bench, usize); 3] = [
        |bench, thread| bench.set(thread, [0.0; 5]),
        |bench, thread| bench.forget(thread, &STACK[4..]),
        |bench, thread| bench.sleep(thread),
    ];
    for spoil in spoil {
        for count in [1, 5, 8] {
            let mut bench = Bench::new("core:2 smt:4", &stacks(count));
            bench.measure();
            (0..count).for_each(|thread| spoil(&mut bench, thread));
            bench.decide(&mut policy());
            let reported = bench.placement().values();
            assert!(reported.clone().all(|a| a.target == Target::Os && !a.reason.is_empty()));
            assert_eq!(reported.count(), count);
        }
    }
}
