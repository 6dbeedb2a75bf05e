use super::*;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub(super) fn machine(n: u32, a: f64) -> Multiprocessor {
    Multiprocessor::new(n, a).unwrap()
}

pub(super) fn close(got: f64, want: f64) -> bool {
    (got - want).abs() <= 1e-9 * want.abs().max(1.0)
}

/// Cores 2…64, a = 1, 1.1, … 2.
fn grid() -> impl Iterator<Item = (u32, f64)> {
    (2..=64).flat_map(|n| (0..=10).map(move |k| (n, 1.0 + 0.1 * f64::from(k))))
}

/// Eq. (9)–(20): least, average and largest *performance* in each joint state,
/// as the paper prints them, with the placements' probabilities.
fn printed_performance(n: f64, a: f64, state: JointState) -> [f64; 3] {
    match (state.own, state.other) {
        (Phase::Serial, Phase::Serial) => {
            let large = (n - 1.0) / n * (1.0 / (n - 1.0));
            [1.0, large * a + (1.0 - large), a]
        }
        (Phase::Parallel, Phase::Parallel) => {
            let same = n / (2.0 * n) * ((n - 1.0) / (2.0 * n - 1.0));
            let mixed = 2.0 * (n / (2.0 * n)) * (n / (2.0 * n - 1.0));
            let most = (n - 1.0 + a) / 2.0 - 0.5 + a / 2.0;
            let avg = same * most + mixed * (n - 1.0 + a) / 2.0 + same * n / 2.0;
            [(n - 1.0 + a) / 2.0 - a / 2.0 + 0.5, avg, most]
        }
        (Phase::Serial, Phase::Parallel) => {
            let shared = 2.0 / (n + 1.0) * (1.0 / n * (a / 2.0) + (n - 1.0) / n * 0.5);
            let single = (n - 1.0) / (n + 1.0) * (1.0 / n * a + (n - 1.0) / n);
            [0.5, shared + single, a]
        }
        (Phase::Parallel, Phase::Serial) => {
            let shared =
                2.0 / (n + 1.0) * (1.0 / n * (n - 1.0 + a / 2.0) + (n - 1.0) / n * (n - 1.5 + a));
            let single =
                (n - 1.0) / (n + 1.0) * (1.0 / n * (n - 1.0) + (n - 1.0) / n * (n - 2.0 + a));
            [n - 1.0, shared + single, n - 1.5 + a]
        }
    }
}

#[test]
fn baseline_equals_the_equations() {
    for (n, a) in grid() {
        let nf = f64::from(n);
        for state in JointState::ALL {
            let alone = match state.own {
                Phase::Serial => 1.0 / nf * a + (nf - 1.0) / nf, // eq. (7)
                Phase::Parallel => nf - 1.0 + a,                 // eq. (8)
            };
            let want = printed_performance(nf, a, state).map(|p| p / alone);
            let got = speedups(Scheduler::Baseline, machine(n, a), state);
            for (got, want) in [got.min, got.avg, got.max].into_iter().zip(want) {
                assert!(close(got, want), "{state:?} n = {n}, a = {a}: {got}, printed {want}");
            }
            assert!(close(machine(n, a).performance_alone(state.own), alone));
        }
    }
}

#[test]
fn proposed_equals_the_equations() {
    // The serial thread has the large core (eq. 15), the parallel program the
    // others (eq. 19); (S,S) and (P,P) are as in the baseline.
    for (n, a) in grid() {
        let (nf, of) = (f64::from(n), |s| speedups(Scheduler::Proposed, machine(n, a), s));
        let (sp, ps) = (of(JointState::SP), of(JointState::PS));
        assert!(close(sp.avg, a / ((nf - 1.0 + a) / nf)) && sp.min == sp.max);
        assert!(close(ps.avg, (nf - 1.0) / (nf - 1.0 + a)) && ps.min == ps.max);
        for state in [JointState::SS, JointState::PP] {
            assert_eq!(of(state), speedups(Scheduler::Baseline, machine(n, a), state));
        }
    }
}

#[test]
fn table_2_equals_the_quotients_of_table_1() {
    for (n, a) in grid() {
        let nf = f64::from(n);
        let of = |state| worst_fairness(Scheduler::Baseline, machine(n, a), state);
        assert!(close(of(JointState::SS), 1.0 / a));
        assert!(close(of(JointState::PP), nf / (nf - 2.0 + 2.0 * a)));
        let cases = [nf / (2.0 * (nf - 1.5 + a)), (nf - 1.0) / (a * nf)];
        assert!(close(of(JointState::SP), cases[0].min(cases[1])));
        assert_eq!(of(JointState::SP), of(JointState::PS));
    }
}

#[test]
fn two_equal_cores_give_the_known_numbers() {
    let of = |scheduler, state| speedups(scheduler, machine(2, 1.0), state).avg;
    assert!(close(of(Scheduler::Baseline, JointState::SP), 2.0 / 3.0));
    assert!(close(of(Scheduler::Baseline, JointState::PS), 2.0 / 3.0));
    assert_eq!(of(Scheduler::Proposed, JointState::SP), 1.0);
    assert_eq!(of(Scheduler::Proposed, JointState::PS), 0.5);
    let fair = |scheduler| expected_fairness(scheduler, machine(2, 1.0), JointState::SP);
    assert_eq!((fair(Scheduler::Baseline), fair(Scheduler::Proposed)), (1.0, 0.5));
}

#[test]
fn average_lies_between_the_extremes() {
    for (n, a) in grid() {
        for scheduler in [Scheduler::Baseline, Scheduler::Proposed] {
            for state in JointState::ALL {
                let s = speedups(scheduler, machine(n, a), state);
                let slack = 1e-12;
                assert!(0.0 < s.min && s.min <= s.avg + slack && s.avg <= s.max + slack, "{s:?}");
                let fair = worst_fairness(scheduler, machine(n, a), state);
                assert!((0.0..=1.0).contains(&fair));
            }
        }
    }
}

#[test]
fn machines_outside_the_model_are_refused() {
    assert_eq!(Multiprocessor::symmetric(1), Err(MultiprocessorError::TooFewCores(1)));
    assert_eq!(Multiprocessor::new(4, 0.5), Err(MultiprocessorError::Performance(0.5)));
    assert!(Multiprocessor::new(4, f64::NAN).is_err());
    assert!(Program::new(0.0, 0.0).is_err());
    assert!(Program::new(-1.0, 1.0).is_err());
    assert!(Program::new(1.0, f64::INFINITY).is_err());
}

#[test]
fn programs_of_one_phase_give_the_tables_cells() {
    for scheduler in [Scheduler::Baseline, Scheduler::Proposed] {
        let m = machine(8, 1.5);
        let of = |a, b| predict(scheduler, m, a, b);
        let (s, p) = (Program::ALL_SERIAL, Program::ALL_PARALLEL);
        let cell = |state| speedups(scheduler, m, state).avg;
        assert_eq!(of(s, s).share, [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(of(s, p).share, [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(of(p, s).share, [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(of(p, p).share, [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(of(s, p).speedup, [cell(JointState::SP), cell(JointState::PS)]);
    }
}

#[test]
fn a_serial_program_with_a_mixed_one_is_a_two_state_chain() {
    // n = 2, baseline: the mixed program runs at 1 in its serial and at 2/3 in
    // its parallel phases, each of length 1 alone: 1 and 3/2 together, so it is
    // parallel 3/5 of the time; the serial one gets 2/5 · 1 + 3/5 · 2/3 = 4/5.
    let got = predict(
        Scheduler::Baseline,
        machine(2, 1.0),
        Program::ALL_SERIAL,
        Program::new(1.0, 1.0).unwrap(),
    );
    assert!(close(got.share[0], 0.4) && close(got.share[1], 0.6));
    assert!(close(got.speedup[0], 0.8) && close(got.speedup[1], 0.8));
    // Work: alone 1 and 3/2; together 0.8 · 1 + 0.8 · 1.5 = 2: both cores busy.
    assert!(close(got.throughput, 2.0) && close(got.throughput_over_alone, 1.6));
    assert!(close(got.fairness(), 1.0));
}

/// The joint states, simulated: both programs advance at the joint state's
/// speedups until one ends its phase. `draw(program, serial)` gives lengths.
fn simulated(
    scheduler: Scheduler,
    m: Multiprocessor,
    mut draw: impl FnMut(usize, bool) -> f64,
) -> [f64; 2] {
    let mut serial = [false, false];
    let mut left = [draw(0, false), draw(1, false)];
    let (mut time, mut work) = (0.0, [0.0, 0.0]);
    for _ in 0..200_000 {
        let phase = |s| if s { Phase::Serial } else { Phase::Parallel };
        let state = JointState { own: phase(serial[0]), other: phase(serial[1]) };
        let speed = [state, state.reversed()].map(|state| speedups(scheduler, m, state).avg);
        let first = usize::from(left[1] / speed[1] < left[0] / speed[0]);
        let step = left[first] / speed[first];
        time += step;
        for i in 0..2 {
            work[i] += speed[i] * step;
            left[i] -= speed[i] * step;
        }
        serial[first] = !serial[first];
        left[first] = draw(first, serial[first]);
    }
    work.map(|w| w / time)
}

/// The largest error of the chain over pairs of mixed ratios.
fn largest_error(
    cores: &[u32],
    mut lengths: impl FnMut([Program; 2]) -> Box<dyn FnMut(usize, bool) -> f64>,
) -> f64 {
    let ratios = [(0.8, 0.2), (0.5, 0.5), (0.2, 0.8)];
    let mut worst: f64 = 0.0;
    for (i, a) in ratios.iter().enumerate() {
        for b in &ratios[i..] {
            let pair = [a, b].map(|&(p, s)| Program::new(p, s).unwrap());
            for scheduler in [Scheduler::Baseline, Scheduler::Proposed] {
                for &n in cores {
                    let m = machine(n, 1.0);
                    let got = predict(scheduler, m, pair[0], pair[1]).speedup;
                    let want = simulated(scheduler, m, lengths(pair));
                    let error = |i: usize| (got[i] - want[i]).abs();
                    worst = worst.max(error(0)).max(error(1));
                }
            }
        }
    }
    worst
}

pub(super) fn length(program: Program, serial: bool) -> f64 {
    program.share_alone(if serial { Phase::Serial } else { Phase::Parallel })
}

#[test]
fn chain_agrees_with_a_simulation() {
    let worst = largest_error(&[4], |pair| {
        let mut random = Pcg64Mcg::seed_from_u64(20);
        Box::new(move |i, serial| -length(pair[i], serial) * (1.0 - random.random::<f64>()).ln())
    });
    assert!(worst < 0.005, "{worst}");
}

#[test]
fn only_the_ratio_of_lengths_matters() {
    let b = Program::new(1.0, 1.0).unwrap();
    let of = |scale: f64| {
        let a = Program::new(4.0 * scale, scale).unwrap();
        predict(Scheduler::Baseline, machine(8, 1.5), a, b)
    };
    let (short, long) = (of(0.001), of(1000.0));
    assert!(close(short.speedup[0], long.speedup[0]) && close(short.speedup[1], long.speedup[1]));
}

#[test]
fn lengths_as_the_benchmark_draws_them_change_nothing() {
    // Parallel length uniform from 0 to twice its mean, serial in proportion.
    let worst = largest_error(&[2, 8], |pair| {
        let mut random = Pcg64Mcg::seed_from_u64(21);
        let mut factor = [0.0; 2];
        Box::new(move |i, serial| {
            if !serial {
                factor[i] = 2.0 * random.random::<f64>();
            }
            factor[i] * length(pair[i], serial)
        })
    });
    assert!(worst < 0.005, "{worst}");
}

pub(super) fn programs() -> impl Strategy<Value = Program> {
    prop_oneof![
        Just(Program::ALL_PARALLEL),
        Just(Program::ALL_SERIAL),
        (0.01..100.0_f64, 0.01..100.0_f64).prop_map(|(p, s)| Program::new(p, s).unwrap()),
    ]
}

proptest! {
    #[test]
    fn prediction_turns_round_with_the_programs(
        a in programs(), b in programs(), n in 2..65_u32, large in 1.0..2.0_f64
    ) {
        for scheduler in [Scheduler::Baseline, Scheduler::Proposed] {
            let ab = predict(scheduler, machine(n, large), a, b);
            let ba = predict(scheduler, machine(n, large), b, a);
            prop_assert!(close(ab.speedup[0], ba.speedup[1]));
            prop_assert!(close(ab.speedup[1], ba.speedup[0]));
            prop_assert!(close(ab.throughput, ba.throughput));
            prop_assert!(close(ab.share.iter().sum::<f64>(), 1.0));
            prop_assert!((0.0..=1.0).contains(&ab.fairness()));
        }
    }

    /// No scheduler can do more work than all cores do, nor less than the
    /// slower of the two programs' phases leave.
    #[test]
    fn throughput_stays_within_the_machine(
        a in programs(), b in programs(), n in 2..65_u32
    ) {
        for scheduler in [Scheduler::Baseline, Scheduler::Proposed] {
            let got = predict(scheduler, machine(n, 1.0), a, b);
            prop_assert!(got.throughput <= f64::from(n) * (1.0 + 1e-9));
            prop_assert!(got.throughput >= 2.0 - 1e-9);
        }
    }
}
