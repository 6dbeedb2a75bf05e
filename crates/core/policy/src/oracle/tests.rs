use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::Target;

use super::*;
use crate::worlds::stacks::Bench;

const LIKE: [f64; 5] = [40.0, 30.0, 10.0, 10.0, 10.0];

/// `slow` gives the slowdown of two co-running programs.
fn oracle(programs: usize, slow: impl Fn(usize, usize) -> f64) -> Oracle {
    let names = (0..programs).map(|at| format!("program-{at}")).collect();
    let rows = (0..programs).map(|a| (0..programs).map(|b| slow(a, b)).collect()).collect();
    Oracle::new(Some(Arc::new(PairSlowdowns::new("synthetic".into(), names, rows).unwrap())))
}

/// Odd ones hurt odd ones, even ones even ones.
fn parity(a: usize, b: usize) -> f64 {
    if a % 2 == b % 2 { 2.0 } else { 1.2 }
}

fn groups(oracle: &mut Oracle, machine: &str, count: usize) -> Vec<Vec<usize>> {
    let mut bench = Bench::new(machine, &vec![LIKE; count]);
    bench.step(oracle);
    bench.groups()
}

#[test]
fn pairs_are_matched_on_known_slowdowns() {
    let pairs = groups(&mut oracle(6, parity), "core:3 smt:2", 6);
    assert!(pairs.iter().all(|pair| pair.len() == 2 && (pair[0] + pair[1]) % 2 == 1), "{pairs:?}");
    // Alone is better than with any co-runner.
    assert_eq!(groups(&mut oracle(6, parity), "core:6 smt:2", 6).len(), 6);
}

#[test]
fn schedules_are_judged_by_the_objective_of_symbiotic() {
    // One pair that loses most and one that loses nothing, or two that lose less each.
    let slow = |a: usize, b: usize| {
        if a / 2 != b / 2 {
            1.6
        } else if a < 2 {
            2.4
        } else {
            1.0
        }
    };
    let with = |objective| oracle(4, slow).judging_by(objective);
    let together = vec![vec![0, 1], vec![2, 3]];
    let apart = groups(&mut oracle(4, slow), "core:2 smt:2", 4);
    assert_ne!(apart, together, "the least sum of slowdowns");
    assert_eq!(groups(&mut with(Objective::Slowdown), "core:2 smt:2", 4), apart);
    assert_eq!(
        groups(&mut with(Objective::Stp), "core:2 smt:2", 4),
        together,
        "the most throughput"
    );
}

#[test]
fn what_is_not_known_is_left_to_the_os_with_the_reason() {
    let reason = |oracle: &mut Oracle, machine: &str, count: usize| {
        let mut bench = Bench::new(machine, &vec![LIKE; count]);
        bench.step(oracle);
        let first = bench.placement().values().next().unwrap().clone();
        assert_eq!(first.target, Target::Os);
        first.reason.into_owned()
    };
    let unknown = reason(&mut oracle(3, parity), "core:2 smt:2", 4);
    assert_eq!(unknown, "nothing is known of program 'program-3'");
    let wide = reason(&mut oracle(4, parity), "core:1 smt:4", 4);
    assert!(wide.starts_with("the oracle knows pairs only"), "{wide}");
    assert_eq!(reason(&mut Oracle::new(None), "core:2 smt:2", 4), SLOWDOWNS.to_string());
}

#[test]
fn a_program_may_be_there_several_times() {
    let names = ["a", "b"].map(str::to_owned).to_vec();
    let rows = vec![vec![3.0, 1.2], vec![1.5, 2.0]];
    let known = PairSlowdowns::new("synthetic".into(), names, rows).unwrap();
    let table = known.among(&["a", "a", "b", "a"].map(|name| (name, Duration::ZERO))).unwrap();
    assert_eq!((table.slowdown(0, &[0, 1]), table.slowdown(3, &[1, 3])), (3.0, 3.0));
    assert_eq!((table.slowdown(1, &[1, 2]), table.slowdown(2, &[1, 2])), (1.2, 1.5));
}

/// Slowdowns of four programs: as `parity` has it, and from the third interval on the other way round.
fn course(interval_ms: u32) -> Course {
    let later = |a, b| if parity(a, b) > 1.5 { 1.2 } else { 2.0 };
    let of = |a, b| vec![parity(a, b), parity(a, b), later(a, b)];
    Course { interval_ms, slowdowns: (0..4).map(|a| (0..4).map(|b| of(a, b)).collect()).collect() }
}

#[test]
fn pairs_follow_the_course_of_their_programs() {
    let names = (0..4).map(|at| format!("program-{at}")).collect();
    let means = vec![vec![1.6; 4]; 4];
    let known = PairSlowdowns::new("synthetic".into(), names, means).unwrap();
    let known = known.over_time(course(100)).unwrap();
    let after = |ms| known.slowdown_after("program-0", "program-2", Duration::from_millis(ms));
    assert_eq!([0, 199, 200, 9000].map(after), [Some(2.0), Some(2.0), Some(1.2), Some(1.2)]);
    let mut oracle = Oracle::new(Some(Arc::new(known)));
    let mut bench = Bench::new("core:2 smt:2", &[LIKE; 4]);
    let mut like = Vec::new();
    for _ in 0..6 {
        bench.step(&mut oracle);
        like.push(bench.groups().iter().all(|pair| (pair[0] + pair[1]) % 2 == 0));
    }
    assert!(!like[0] && like[5], "{like:?}");
    assert!(like.is_sorted(), "{like:?}");
}

#[test]
fn a_course_is_written_and_read_and_one_that_is_none_is_refused() {
    let names: Vec<String> = (0..4).map(|at| format!("program-{at}")).collect();
    let known = PairSlowdowns::new("m".into(), names, vec![vec![1.6; 4]; 4]).unwrap();
    let with = known.clone().over_time(course(100)).unwrap();
    let written = serde_json::to_string(&with).unwrap();
    assert_eq!(serde_json::from_str::<PairSlowdowns>(&written).unwrap(), with);
    assert!(!serde_json::to_string(&known).unwrap().contains("course"));
    let mut short = course(100);
    short.slowdowns[1][2].clear();
    let mut negative = course(100);
    negative.slowdowns[3][3][0] = -1.0;
    for none in [course(0), short, negative] {
        assert_eq!(known.clone().over_time(none), Err(PairSlowdownsError));
    }
}

#[test]
fn tables_that_are_none_are_refused() {
    let names = |count: usize| vec!["a".to_owned(), "b".to_owned()][..count].to_vec();
    for (programs, rows) in [
        (names(2), vec![vec![1.0, 1.0]]),
        (names(2), vec![vec![1.0], vec![1.0]]),
        (names(1), vec![vec![0.0]]),
        (names(1), vec![vec![f64::NAN]]),
        (vec!["a".to_owned(); 2], vec![vec![1.0; 2]; 2]),
    ] {
        assert_eq!(PairSlowdowns::new("m".into(), programs, rows), Err(PairSlowdownsError));
    }
}

/// Negative control: with programs shuffled the pairs are no better than chance.
#[test]
fn shuffled_slowdowns_make_random_pairs() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut unlike = 0;
    for _ in 0..200 {
        // Equal pairs are made in order of the threads; the truth must not be.
        let [mut order, mut truth]: [Vec<usize>; 2] = [(0..6).collect(), (0..6).collect()];
        order.shuffle(&mut random);
        truth.shuffle(&mut random);
        let pairs = groups(&mut oracle(6, |a, b| parity(order[a], order[b])), "core:3 smt:2", 6);
        let differ = |pair: &&Vec<usize>| parity(truth[pair[0]], truth[pair[1]]) < 1.5;
        unlike += pairs.iter().filter(differ).count();
    }
    // By lot three of five partners are unlike.
    let share = unlike as f64 / 600.0;
    assert!((share - 0.6).abs() < 0.08, "{share}");
}
