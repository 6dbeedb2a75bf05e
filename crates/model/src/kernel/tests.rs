use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::choose::losses;
use super::*;
use crate::baseline::Case;
use crate::headroom::headroom;
use crate::testing::best_matching;
use crate::{
    CpiStack, Interference, Objective, Observation, Observed, SmtMode, StackError, TrainingSet,
};

/// Programs that use a cache more or less, and wait for it more or less.
fn stack(random: &mut impl Rng) -> Vec<f64> {
    let [uses, waits] = [0; 2].map(|_| random.random_range(0.01..0.5_f64).powi(2));
    vec![uses, waits, 0.3, 1.0 - uses - waits - 0.3]
}

fn stacks(count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..count).map(|_| stack(&mut random)).collect()
}

fn name(at: usize) -> Arc<str> {
    format!("program-{at:02}").into()
}

/// Speed of who waits beside who uses.
fn law(victim: &[f64], other: &[f64]) -> f64 {
    0.9 - 0.3 * victim[2] - 0.4 * (victim[1].cbrt() - 0.4) * (other[0].cbrt() - 0.4)
}

/// Groups under a law of speeds; stacks in company are those alone.
fn observe(
    stacks: &[Vec<f64>],
    groups: &[Vec<usize>],
    law: impl Fn(&[f64], &[f64]) -> f64,
) -> Vec<Observation> {
    let thread = |group: &[usize], at: usize| {
        let (victim, n) = (group[at], group.len() - 1);
        let others = group.iter().enumerate().filter(|(other, _)| *other != at);
        let speeds = others.map(|(_, &other)| law(&stacks[victim], &stacks[other]));
        let speed = 1.0 - speeds.map(|speed| 1.0 - speed).sum::<f64>() / n as f64;
        let alone = CpiStack::new(stacks[victim].clone()).unwrap();
        let together = stacks[victim].iter().map(|part| part / speed).collect();
        Observed { program: name(victim), alone, together: CpiStack::new(together).unwrap() }
    };
    let observe = |group: &Vec<usize>| {
        Observation::new((0..group.len()).map(|at| thread(group, at)).collect()).unwrap()
    };
    groups.iter().map(observe).collect()
}

/// All pairs, programs beside themselves too.
fn pairs(n: usize) -> Vec<Vec<usize>> {
    (0..n).flat_map(|a| (a..n).map(move |b| vec![a, b])).collect()
}

fn table(observations: &[Observation]) -> Table {
    let mut meetings: std::collections::BTreeMap<Case, Meeting> = Default::default();
    for observation in observations {
        for (case, thread) in observation.cases().into_iter().zip(observation.threads()) {
            meetings.entry(case).or_default().add(thread);
        }
    }
    Table::of(meetings.iter())
}

fn fitted(observations: &[Observation], held: Held) -> Kernel {
    Kernel::fit(&table(observations), held).unwrap()
}

fn shares(stacks: &[Vec<f64>]) -> Vec<Shares> {
    stacks.iter().map(|stack| Shares::new(stack.clone()).unwrap()).collect()
}

/// Speeds of pairs, victim by co-runner.
fn speeds(kernel: &Kernel, stacks: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let table = Interference::predict(kernel, &shares(stacks)).unwrap();
    let n = stacks.len();
    // A program beside another one that is the same is another thread.
    let speed = |a: usize, b: usize| table.slowdown(a, &[a, b]).recip();
    (0..n).map(|a| (0..n).map(|b| if a == b { 0.0 } else { speed(a, b) }).collect()).collect()
}

/// What swapping co-runners changes: 0 where speeds are additive.
fn interaction(speeds: &[Vec<f64>], [a, b, x, y]: [usize; 4]) -> f64 {
    speeds[a][x] - speeds[a][y] - speeds[b][x] + speeds[b][y]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn symmetric_speeds_interact_symmetrically(seed in any::<u64>()) {
        let stacks = stacks(9, seed);
        let symmetric = |a: &[f64], b: &[f64]| (law(a, b) + law(b, a)) / 2.0;
        let kernel = fitted(&observe(&stacks, &pairs(9), symmetric), Held::default());
        let speeds = speeds(&kernel, &stacks);
        for (a, row) in speeds.iter().enumerate() {
            for (b, speed) in row.iter().enumerate() {
                prop_assert!((speed - speeds[b][a]).abs() < 1e-3, "{speed} {}", speeds[b][a]);
            }
        }
    }

    #[test]
    fn additive_speeds_do_not_interact(seed in any::<u64>(), wide in any::<bool>()) {
        let stacks = stacks(10, seed);
        let additive = |a: &[f64], b: &[f64]| 0.9 - 0.5 * a[1] - 0.5 * b[0];
        let held = Held { effects: 1e-6, ..Held::default() };
        // Where who met whom is not balanced, what ridges leave of effects is in the way.
        let groups = if wide { fours(10, 400, seed) } else { pairs(10) };
        let kernel = fitted(&observe(&stacks, &groups, additive), held);
        let speeds = speeds(&kernel, &stacks);
        for places in [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [3, 5, 8, 9]] {
            let found = interaction(&speeds, places);
            prop_assert!(found.abs() < if wide { 5e-3 } else { 1e-6 }, "{found}");
        }
    }

    #[test]
    fn predictions_are_finite_and_positive_for_any_stacks(
        seed in any::<u64>(),
        parts in prop::collection::vec(prop::collection::vec(0.0..1e9_f64, 4), 2..6),
        held in (0.1..10.0_f64, 1e-6..10.0_f64, 1e-6..10.0_f64),
    ) {
        let (length, interaction, effects) = held;
        let trained = stacks(7, seed);
        let observations = observe(&trained, &pairs(7), law);
        let kernel = fitted(&observations, Held { length, interaction, effects });
        let stacks: Vec<Shares> = parts.into_iter().filter_map(|p| Shares::new(p).ok()).collect();
        let table = Interference::predict(&kernel, &stacks).unwrap();
        let all: Vec<usize> = (0..stacks.len()).collect();
        let slowdowns = observations.iter().flat_map(Observation::threads).map(Observed::slowdown);
        let most = 2.0 * slowdowns.fold(0.0, f64::max) + 1e-9;
        for &at in all.iter().filter(|_| all.len() > 1) {
            let slowdown = table.slowdown(at, &all);
            prop_assert!((0.5..=most).contains(&slowdown), "{slowdown} {most}");
        }
        for objective in Objective::ALL {
            prop_assert!(table.cost(objective, &all).is_finite());
        }
    }
}

/// Drawn unevenly.
fn fours(n: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let draw = |_| rand::seq::index::sample(&mut random, n, 4).into_vec();
    (0..count).map(draw).collect()
}

#[test]
fn the_same_programs_are_predicted_the_same() {
    let mut stacks = stacks(9, 3);
    stacks.push(stacks[4].clone());
    stacks.push(stacks[4].clone());
    let kernel = fitted(&observe(&stacks, &pairs(11), law), Held::default());
    let speeds = speeds(&kernel, &stacks);
    for other in [0, 1, 2, 3, 5, 6, 7, 8] {
        for copy in [9, 10] {
            assert_eq!(speeds[4][other], speeds[copy][other]);
            assert_eq!(speeds[other][4], speeds[other][copy]);
        }
    }
    // Nothing but copies: no coordinates, the mean for all.
    let copies = vec![stacks[4].clone(); 3];
    let kernel = fitted(&observe(&copies, &pairs(3), law), Held::default());
    assert_eq!(kernel.rank(), 0);
    let table = Interference::predict(&kernel, &shares(&stacks)).unwrap();
    let truth = law(&stacks[4], &stacks[4]).recip();
    assert!((table.slowdown(0, &[0, 1]) - truth).abs() < 1e-9);
}

/// What is captured on programs that were left out, over some workloads; each program taken for
/// the one at its place in an order that is drawn, or for itself.
fn captured(set: &TrainingSet<'_>, stacks: &[Vec<f64>], exchanged: bool) -> f64 {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let (mut gained, mut room) = (0.0, 0.0);
    for _ in 0..30 {
        let drawn = rand::seq::index::sample(&mut random, stacks.len(), 8).into_vec();
        let programs: Vec<Arc<str>> = drawn.iter().map(|&at| name(at)).collect();
        let kernel = set.kernel_without(&programs.iter().cloned().collect()).unwrap();
        let mut met: Vec<Shares> =
            programs.iter().map(|program| set.beside(program, &programs).unwrap()).collect();
        if exchanged {
            met.shuffle(&mut random);
        }
        let guess = Interference::predict(&kernel, &met).unwrap();
        let truth = Interference::measured(&set.measured(&programs).unwrap()).unwrap();
        let found = headroom(&truth, &guess, Objective::Stp, best_matching).unwrap();
        gained += found.achieved - found.random;
        room += found.oracle - found.random;
    }
    gained / room
}

#[test]
fn programs_left_out_are_paired_right() {
    let stacks = stacks(26, 8);
    let observations = observe(&stacks, &pairs(26), law);
    let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
    let captured = captured(&set, &stacks, false);
    assert!(captured > 0.9, "{captured}");
}

#[test]
fn exchanged_stacks_capture_nothing() {
    let stacks = stacks(26, 8);
    let observations = observe(&stacks, &pairs(26), law);
    let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
    let captured = captured(&set, &stacks, true);
    assert!(captured.abs() < 0.25, "{captured}");
}

#[test]
fn groups_of_four_tell_the_same() {
    let stacks = stacks(20, 4);
    let held = Held { length: 2.0, interaction: 1e-4, effects: 1e-6 };
    let wide = fitted(&observe(&stacks, &fours(20, 900, 2), law), held);
    let table = Interference::predict(&wide, &shares(&stacks)).unwrap();
    let mut worst: f64 = 0.0;
    for observation in observe(&stacks, &fours(20, 40, 3), law) {
        let members: Vec<usize> = (observation.threads().iter())
            .map(|thread| (0..20).find(|&at| name(at) == thread.program).unwrap())
            .collect();
        for (&at, thread) in members.iter().zip(observation.threads()) {
            worst = worst.max((table.slowdown(at, &members) / thread.slowdown() - 1.0).abs());
        }
    }
    assert!(worst < 0.01, "{worst}");
}

/// Where nothing but noise is between programs it is held back more than what is there.
#[test]
fn what_is_chosen_goes_by_what_is_there() {
    let chosen = |noise: f64| -> f64 {
        let of = |seed: u64| {
            let stacks = stacks(16, seed);
            let spoilt = |a: &[f64], b: &[f64]| {
                let hash = (a[0] * 7919.0 + b[1] * 104_729.0).sin();
                law(a, b) * (1.0 - noise) + noise * (0.7 + 0.2 * hash)
            };
            choose(&table(&observe(&stacks, &pairs(16), spoilt)), |_| true).interaction.ln()
        };
        (0..4).map(of).sum()
    };
    let (there, noise) = (chosen(0.0), chosen(1.0));
    assert!(noise > there, "{noise} {there}");
}

#[test]
fn with_too_few_programs_or_none_to_leave_out_the_usual_stays() {
    let of = |n: usize| table(&observe(&stacks(n, 1), &pairs(n), law));
    assert_eq!(choose(&of(4), |_| true), Held::default());
    assert_eq!(choose(&of(12), |_| false), Held::default());
    assert!(losses(&of(12), |_| true).is_some());
    let none = Table::of(std::iter::empty());
    assert_eq!(Kernel::fit(&none, Held::default()), Err(crate::FitError::Empty));
}

#[test]
fn the_choice_and_the_fit_know_nothing_of_programs_that_are_left_out() {
    let stacks = stacks(14, 6);
    let plain = observe(&stacks, &pairs(14), law);
    let odd = stacks[3].clone();
    let spoilt = observe(&stacks, &pairs(14), |a: &[f64], b: &[f64]| {
        let part = if a == odd.as_slice() || b == odd.as_slice() { 0.3 } else { 1.0 };
        law(a, b) * part
    });
    let of = |all: &[Observation], without: usize| {
        let set = TrainingSet::new(SmtMode::Smt2, all).unwrap();
        set.kernel_without(&BTreeSet::from([name(without)])).unwrap()
    };
    assert_eq!(of(&plain, 3), of(&spoilt, 3));
    assert_ne!(of(&plain, 4), of(&spoilt, 4));
}

#[test]
fn damaged_kernels_are_refused() {
    let sound = fitted(&observe(&stacks(6, 1), &pairs(6), law), Held::default());
    assert_eq!(sound.check(4), Ok(()));
    assert_eq!(sound.check(5), Err(StackError::Length { got: 4, want: 5 }));
    let spoil: [fn(&mut Kernel); 8] = [
        |k| k.points[2].truncate(3),
        |k| k.centre.truncate(5),
        |k| k.speed.own.truncate(5),
        |k| k.speed.constant = f64::NAN,
        |k| k.scale.inverse[1] = f64::INFINITY,
        |k| k.held.length = 0.0,
        |k| k.held.effects = -1.0,
        |k| k.least = 3.0,
    ];
    for (at, spoil) in spoil.into_iter().enumerate() {
        let mut kernel = sound.clone();
        spoil(&mut kernel);
        assert!(kernel.check(4).is_err(), "{at}");
    }
}
