use std::collections::VecDeque;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::predict;
use super::super::tests::{close, length, machine, programs};
use super::*;

const CORES: u32 = 8;

fn mixed(parallel: f64, serial: f64) -> Program {
    Program::new(parallel, serial).unwrap()
}

/// As the policy has it: ten levels, a second.
fn policys() -> Seniority {
    Seniority::by_levels(10, 1.0).unwrap()
}

/// Two programs side by side, event by event: speedups in the long run. `draw(program,
/// serial)` gives lengths of phases, `turn` those of turns.
fn simulated(
    seniority: Seniority,
    pair: [Program; 2],
    mut draw: impl FnMut(usize, bool) -> f64,
    mut turn: impl FnMut() -> f64,
) -> [f64; 2] {
    let pure = pair.map(|p| p == Program::ALL_SERIAL || p == Program::ALL_PARALLEL);
    let mut serial = pair.map(|p| p == Program::ALL_SERIAL);
    let mut draw = |i: usize, serial: bool| if pure[i] { f64::INFINITY } else { draw(i, serial) };
    let mut left = [draw(0, serial[0]), draw(1, serial[1])];
    // Parallel programs, who was so first in front.
    let mut queue: VecDeque<usize> = (0..2).filter(|&i| !serial[i]).collect();
    let mut turn_left = turn();
    let (mut time, mut work) = (0.0, [0.0, 0.0]);
    for _ in 0..300_000 {
        let phase = |s| if s { Phase::Serial } else { Phase::Parallel };
        let state = JointState { own: phase(serial[0]), other: phase(serial[1]) };
        let contended = state == JointState::PP;
        let speed = match contended {
            true if queue[0] == 0 => [seniority.share, 1.0 - seniority.share],
            true => [1.0 - seniority.share, seniority.share],
            false => [state, state.reversed()]
                .map(|state| speedups(Scheduler::Proposed, machine(CORES, 1.0), state).avg),
        };
        let ends = [0, 1].map(|i| left[i] / speed[i]);
        let first = usize::from(ends[1] < ends[0]);
        let passes = contended && turn_left < ends[first];
        let step = if passes { turn_left } else { ends[first] };
        time += step;
        for i in 0..2 {
            work[i] += speed[i] * step;
            left[i] -= speed[i] * step;
        }
        if contended {
            turn_left -= step;
        }
        let front = queue.front().copied();
        if passes {
            queue.rotate_left(1);
        } else {
            serial[first] = !serial[first];
            left[first] = draw(first, serial[first]);
            queue.retain(|&i| i != first);
            if !serial[first] {
                queue.push_back(first);
            }
        }
        if queue.front().copied() != front {
            turn_left = turn();
        }
    }
    work.map(|work| work / time)
}

/// Pairs of programs of all kinds, cycles of 0.4 as in our benchmark.
fn pairs() -> Vec<[Program; 2]> {
    let mut of: Vec<Program> =
        [0.9, 0.5, 0.2].map(|share| mixed(0.4 * share, 0.4 * (1.0 - share))).into();
    of.push(Program::ALL_PARALLEL);
    let beside = |i: usize| of[i..].iter().map(|b| [of[i], *b]).collect::<Vec<_>>();
    let mut pairs: Vec<_> = (0..of.len()).flat_map(beside).collect();
    pairs.push([of[1], Program::ALL_SERIAL]);
    pairs
}

/// The largest difference of a speedup to that of a simulation.
fn largest_error(
    seniority: Seniority,
    simulate: impl Fn(Seniority, [Program; 2]) -> [f64; 2],
) -> f64 {
    let error = |pair: [Program; 2]| {
        let m = machine(CORES, 1.0);
        let got = predict_with_seniority(seniority, m, pair[0], pair[1]).unwrap().speedup;
        let want = simulate(seniority, pair);
        (got[0] - want[0]).abs().max((got[1] - want[1]).abs())
    };
    pairs().into_iter().map(error).fold(0.0, f64::max)
}

fn exponential(random: &mut Pcg64Mcg, mean: f64) -> f64 {
    -mean * (1.0 - random.random::<f64>()).ln()
}

#[test]
fn it_agrees_with_a_simulation_of_events() {
    for timeout in [0.05, 1.0] {
        let seniority = Seniority::by_levels(10, timeout).unwrap();
        let worst = largest_error(seniority, |seniority, pair| {
            let (mut random, mut turns) =
                (Pcg64Mcg::seed_from_u64(30), Pcg64Mcg::seed_from_u64(31));
            let draw = |i: usize, serial| exponential(&mut random, 0.4 * length(pair[i], serial));
            let stage = timeout / f64::from(STAGES);
            let turn = || (0..STAGES).map(|_| exponential(&mut turns, stage)).sum();
            simulated(seniority, pair, draw, turn)
        });
        assert!(worst < 0.006, "timeout {timeout}: {worst}");
    }
}

/// As the policy has them.
#[test]
fn turns_of_fixed_length_change_nothing() {
    let worst = largest_error(policys(), |seniority, pair| {
        let mut random = Pcg64Mcg::seed_from_u64(32);
        let draw = |i: usize, serial| exponential(&mut random, 0.4 * length(pair[i], serial));
        simulated(seniority, pair, draw, || 1.0)
    });
    assert!(worst < 0.006, "{worst}");
}

#[test]
fn lengths_as_the_benchmark_draws_them_change_a_twentieth_at_most() {
    let worst = largest_error(policys(), |seniority, pair| {
        let mut random = Pcg64Mcg::seed_from_u64(33);
        let mut factor = [1.0; 2];
        let draw = |i: usize, serial: bool| {
            if !serial {
                factor[i] = 2.0 * random.random::<f64>();
            }
            factor[i] * 0.4 * length(pair[i], serial)
        };
        simulated(seniority, pair, draw, || 1.0)
    });
    assert!(worst < 0.05, "{worst}");
}

#[test]
fn two_parallel_programs_take_turns() {
    let m = machine(4, 1.0);
    let both = [Program::ALL_PARALLEL; 2];
    let got = predict_with_seniority(policys(), m, both[0], both[1]).unwrap();
    assert_eq!(got.share, [0.0, 0.0, 0.0, 1.0]);
    assert!(close(got.speedup[0], 0.5) && close(got.speedup[1], 0.5), "{got:?}");
}

/// Nobody waits: the holder has all of the machine, turns are long.
#[test]
fn who_is_always_parallel_holds_back_who_is_not() {
    let seniority = Seniority::new(1.0, 1e9).unwrap();
    let both = [Program::ALL_PARALLEL, mixed(1.0, 1.0)];
    let got = predict_with_seniority(seniority, machine(8, 1.0), both[0], both[1]).unwrap();
    assert!(got.speedup[0] > 0.999 && got.speedup[1] < 0.001, "{got:?}");
}

#[test]
fn ten_levels_give_nine_tenths() {
    assert!((policys().share() - 0.903).abs() < 1e-3);
    assert!(Seniority::new(0.4, 1.0).is_err() && Seniority::new(0.9, 0.0).is_err());
    assert!(Seniority::new(0.9, f64::INFINITY).is_err());
}

fn boosts() -> impl Strategy<Value = Seniority> {
    (0.5..=1.0_f64, 0.01..100.0_f64).prop_map(|(share, t)| Seniority::new(share, t).unwrap())
}

proptest! {
    #[test]
    fn shares_sum_to_one_and_programs_change_places(
        a in programs(), b in programs(), boost in boosts(), n in 2..65_u32, large in 1.0..2.0_f64
    ) {
        let ab = predict_with_seniority(boost, machine(n, large), a, b).unwrap();
        let ba = predict_with_seniority(boost, machine(n, large), b, a).unwrap();
        prop_assert!(close(ab.share.iter().sum::<f64>(), 1.0));
        prop_assert!(ab.share.iter().all(|share| *share >= -1e-9), "{ab:?}");
        prop_assert!(close(ab.speedup[0], ba.speedup[1]) && close(ab.speedup[1], ba.speedup[0]));
        prop_assert!((0.0..=1.0).contains(&ab.fairness()));
    }

    #[test]
    fn equal_programs_are_treated_alike(program in programs(), boost in boosts(), n in 2..65_u32) {
        let got = predict_with_seniority(boost, machine(n, 1.5), program, program).unwrap();
        prop_assert!(close(got.fairness(), 1.0), "{got:?}");
    }

    #[test]
    fn without_a_preference_it_is_the_chain_of_table_3(
        a in programs(), b in programs(), boost in boosts(), n in 2..65_u32, large in 1.0..2.0_f64
    ) {
        let m = machine(n, large);
        let same = |boost: Seniority, a: Program, b: Program| {
            let got = predict_with_seniority(boost, m, a, b).unwrap();
            let want = predict(Scheduler::Proposed, m, a, b);
            close(got.speedup[0], want.speedup[0]) && close(got.speedup[1], want.speedup[1])
                && got.share.iter().zip(want.share).all(|(got, want)| close(*got, want))
        };
        prop_assert!(same(Seniority::new(0.5, boost.timeout).unwrap(), a, b));
        prop_assert!(same(boost, a, Program::ALL_SERIAL));
    }
}
