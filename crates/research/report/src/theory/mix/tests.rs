use proptest::prelude::*;

use super::*;
use crate::theory::{self, JointState, Multiprocessor, Phase};

const SCHEDULERS: [Scheduler; 2] = [Scheduler::Baseline, Scheduler::Proposed];

fn close(got: f64, want: f64) -> bool {
    (got - want).abs() <= 1e-9 * want.abs().max(1.0)
}

fn agree(got: Speedups, want: Speedups) -> bool {
    close(got.min, want.min) && close(got.avg, want.avg) && close(got.max, want.max)
}

/// One core of speed `a`, the others of speed 1.
fn one_large(n: u32, a: f64) -> Cores {
    Cores::new((0..n).map(|core| if core == 0 { a } else { 1.0 }).collect()).unwrap()
}

fn load(phase: Phase, n: u32) -> Load {
    match phase {
        Phase::Serial => Load { ready: 1, serial: true },
        Phase::Parallel => Load { ready: n, serial: false },
    }
}

/// Cores 2…64, a = 1, 1.25, … 2.
fn grid() -> impl Iterator<Item = (u32, f64)> {
    (2..=64).flat_map(|n| (0..=4).map(move |k| (n, 1.0 + 0.25 * f64::from(k))))
}

#[test]
fn it_gives_the_papers_tables() {
    for (n, a) in grid() {
        let (cores, paper) = (one_large(n, a), Multiprocessor::new(n, a).unwrap());
        for scheduler in SCHEDULERS {
            for state in JointState::ALL {
                let loads = [load(state.own, n), load(state.other, n)];
                let got = speedups(scheduler, &cores, loads[0], &loads[1..]).unwrap();
                let want = theory::speedups(scheduler, paper, state);
                assert!(agree(got, want), "{state:?} n = {n}, a = {a}: {got:?}, paper {want:?}");
                let worst = worst_fairness(scheduler, &cores, loads).unwrap();
                assert!(close(worst, theory::worst_fairness(scheduler, paper, state)));
                let expected = expected_fairness(scheduler, &cores, loads).unwrap();
                assert!(close(expected, theory::expected_fairness(scheduler, paper, state)));
            }
        }
    }
}

/// Performance of the first `own` of `threads` labelled threads in each
/// placement that spreads all evenly: every way to send each thread to a core.
fn every_placement(speeds: &[f64], own: usize, threads: usize) -> Vec<f64> {
    let n = speeds.len();
    let (low, high) = (threads / n, threads.div_ceil(n));
    let mut found = Vec::new();
    for mut code in 0..n.pow(threads as u32) {
        let (mut load, mut mine) = (vec![0; n], vec![0; n]);
        for thread in 0..threads {
            load[code % n] += 1;
            mine[code % n] += usize::from(thread < own);
            code /= n;
        }
        if load.iter().all(|l| (low..=high).contains(l)) {
            let share = |c: usize| if load[c] == 0 { 0.0 } else { mine[c] as f64 / load[c] as f64 };
            found.push((0..n).map(|c| speeds[c] * share(c)).sum());
        }
    }
    found
}

fn summary(performances: &[f64], alone: f64) -> Speedups {
    let avg = performances.iter().sum::<f64>() / performances.len() as f64;
    let least = performances.iter().copied().fold(f64::INFINITY, f64::min);
    let most = performances.iter().copied().fold(0.0, f64::max);
    Speedups { min: least / alone, avg: avg / alone, max: most / alone }
}

/// Speedups by enumeration; under `Proposed` a serial thread co-running with a parallel
/// program has the fastest core, and the others what is left.
fn enumerated(scheduler: Scheduler, cores: &Cores, own: Load, other: Load) -> Speedups {
    let all = cores.speeds();
    let (p, q) = (own.ready as usize, other.ready as usize);
    let alone = every_placement(all, p, p);
    let alone = alone.iter().sum::<f64>() / alone.len() as f64;
    let performances = match (scheduler, own.serial, other.serial) {
        (Scheduler::Proposed, true, false) if all.len() > 1 => {
            every_placement(&all[..p.min(all.len() - 1)], p, p)
        }
        (Scheduler::Proposed, false, true) if all.len() > 1 => {
            every_placement(&all[q.min(all.len() - 1)..], p, p)
        }
        _ => every_placement(all, p, p + q),
    };
    summary(&performances, alone)
}

#[test]
fn the_papers_states_equal_an_enumeration_of_all_placements() {
    // (P,P) has n^(2n) ways: up to 4 cores; (S,P) n^(n+1): up to 6.
    for n in 2..=6_u32 {
        for a in [1.0, 1.3, 1.7, 2.0] {
            for state in JointState::ALL {
                if n > 4 && state == JointState::PP {
                    continue;
                }
                let (cores, paper) = (one_large(n, a), Multiprocessor::new(n, a).unwrap());
                for scheduler in SCHEDULERS {
                    let (own, other) = (load(state.own, n), load(state.other, n));
                    let want = enumerated(scheduler, &cores, own, other);
                    let tables = theory::speedups(scheduler, paper, state);
                    assert!(agree(tables, want), "{scheduler:?} {state:?} n = {n}, a = {a}");
                }
            }
        }
    }
}

/// n! for small n, as a weight.
fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

/// A placement's small cores by kind: (threads, of them own) → cores.
type Kinds = Vec<((usize, usize), usize)>;

/// All ways to give `left` small cores kinds from `kinds`.
fn compositions(kinds: &[(usize, usize)], left: usize) -> Vec<Kinds> {
    match kinds {
        [] => Vec::new(),
        [last] => vec![vec![(*last, left)]],
        [first, rest @ ..] => (0..=left)
            .flat_map(|count| {
                compositions(rest, left - count).into_iter().map(move |mut found| {
                    found.push((*first, count));
                    found
                })
            })
            .collect(),
    }
}

/// All ways to give `small` cores kinds of `low` threads and at most `extra` of
/// them kinds of one thread more.
fn kinds_of_small_cores(small: usize, low: usize, extra: usize) -> Vec<Kinds> {
    let kinds = |load: usize| (0..=load).map(|mine| (load, mine)).collect::<Vec<_>>();
    (0..=extra.min(small))
        .flat_map(|with_more| {
            let more = compositions(&kinds(low + 1), with_more);
            let mut all = Vec::new();
            for found in compositions(&kinds(low), small - with_more) {
                all.extend(more.iter().map(|more| [found.as_slice(), more].concat()));
            }
            all
        })
        .collect()
}

/// Placements that look alike: how many, and the performance of both programs in them.
struct Alike {
    weight: f64,
    performance: [f64; 2],
}

/// All that can happen on a large core, if there is one, and how many of the small ones are of each
/// kind, weighted by how many placements of labelled threads look like that.
fn placements_by_kinds(large: Option<f64>, small: usize, [p, q]: [usize; 2]) -> Vec<Alike> {
    let cores = small + usize::from(large.is_some());
    let (low, high) = ((p + q) / cores, (p + q).div_ceil(cores));
    let kinds: Vec<(usize, usize)> =
        (low..=high).flat_map(|load| (0..=load).map(move |mine| (load, mine))).collect();
    let share = |(load, _): (usize, usize), of: usize| {
        if load == 0 { 0.0 } else { of as f64 / load as f64 }
    };
    let on_large: Vec<Option<(usize, usize)>> =
        if large.is_some() { kinds.into_iter().map(Some).collect() } else { vec![None] };
    let mut all = Vec::new();
    for found in kinds_of_small_cores(small, low, (p + q) % cores) {
        for &here in &on_large {
            let count = |of: &dyn Fn((usize, usize)) -> usize| -> usize {
                let on_small = found.iter().map(|&(kind, cores)| of(kind) * cores);
                here.map_or(0, of) + on_small.sum::<usize>()
            };
            if count(&|(load, _)| load) != p + q || count(&|(_, mine)| mine) != p {
                continue;
            }
            // Which small cores are of which kind, and which threads go where.
            let ways = |(load, mine): (usize, usize)| factorial(mine) * factorial(load - mine);
            let weight = found.iter().fold(here.map_or(1.0, |k| ways(k).recip()), |w, &(k, c)| {
                w / factorial(c) / ways(k).powi(c as i32)
            });
            let sum = |of: &dyn Fn((usize, usize)) -> f64| -> f64 {
                let on_large = large.zip(here).map_or(0.0, |(speed, kind)| speed * of(kind));
                on_large + found.iter().map(|&(kind, cores)| of(kind) * cores as f64).sum::<f64>()
            };
            let performance =
                [sum(&|kind| share(kind, kind.1)), sum(&|kind| share(kind, kind.0 - kind.1))];
            all.push(Alike { weight, performance });
        }
    }
    all
}

/// Speedups of the first of two programs, and the least fairness of a placement. Under `Proposed` a
/// serial program co-running with a parallel one has the large core, and the other one the small ones.
fn enumerated_by_kinds(scheduler: Scheduler, n: u32, a: f64, state: JointState) -> (Speedups, f64) {
    let small = n as usize - 1;
    let loads = [load(state.own, n), load(state.other, n)];
    let threads = loads.map(|load| load.ready as usize);
    let alone = threads.map(|own| {
        let used = own.min(n as usize) as f64 / f64::from(n);
        used * (f64::from(n) - 1.0 + a)
    });
    let apart = scheduler == Scheduler::Proposed && loads[0].serial != loads[1].serial;
    let placements = if apart {
        let serial = placements_by_kinds(Some(a), 0, [1, 0]);
        let parallel = placements_by_kinds(None, small, [n as usize, 0]);
        let both = |one: &Alike, other: &Alike| {
            let [s, p] = [one.performance[0], other.performance[0]];
            let performance = if loads[0].serial { [s, p] } else { [p, s] };
            Alike { weight: one.weight * other.weight, performance }
        };
        serial.iter().flat_map(|one| parallel.iter().map(move |other| both(one, other))).collect()
    } else {
        placements_by_kinds(Some(a), small, threads)
    };
    let (mut total, mut sum, mut fairness) = (0.0, 0.0, 1.0_f64);
    let (mut min, mut max) = (f64::INFINITY, 0.0_f64);
    for Alike { weight, performance } in placements {
        let [own, other] = [performance[0] / alone[0], performance[1] / alone[1]];
        total += weight;
        sum += weight * own;
        (min, max) = (min.min(own), max.max(own));
        fairness = fairness.min(own / other).min(other / own);
    }
    (Speedups { min, avg: sum / total, max }, fairness)
}

/// Tables 1 and 3, Table 2, and the same of what Table 3 gives.
#[test]
fn it_equals_an_enumeration_by_kinds_of_core_up_to_64_cores() {
    for n in 2..=64 {
        for a in [1.0, 1.3, 1.7, 2.0] {
            for (scheduler, state) in
                SCHEDULERS.into_iter().flat_map(|one| JointState::ALL.map(|state| (one, state)))
            {
                let (want, worst) = enumerated_by_kinds(scheduler, n, a, state);
                let paper = Multiprocessor::new(n, a).unwrap();
                let tables = theory::speedups(scheduler, paper, state);
                let cell = format!("{scheduler:?} {state:?} n = {n}, a = {a}");
                assert!(agree(tables, want), "{cell}: {tables:?} {want:?}");
                let fairness = theory::worst_fairness(scheduler, paper, state);
                assert!(close(fairness, worst), "{cell}: fairness {fairness}, {worst}");
            }
        }
    }
}

#[test]
fn three_types_of_core_and_half_parallel_programs() {
    // Speeds 4, 2, 1, 1 and three threads co-running with two: five threads on four
    // cores. Own average 3/5 of 8; alone 3/4 of 8.
    let cores = Cores::new(vec![1.0, 4.0, 1.0, 2.0]).unwrap();
    let own = Load { ready: 3, serial: false };
    let other = Load { ready: 2, serial: false };
    let got = speedups(Scheduler::Baseline, &cores, own, &[other]).unwrap();
    assert!(close(got.avg, 0.8));
    // Best: on 4, 2 and 1 alone, the others share the other 1.
    assert!(close(got.max, 7.0 / 6.0));
    // Worst: the others have 4 and 2.
    assert!(close(got.min, (1.0 + 1.0) / 6.0));
    let serial = Load { ready: 1, serial: true };
    let got = speedups(Scheduler::Proposed, &cores, own, &[serial, serial]).unwrap();
    // Two serial programs have 4 and 2; three threads share 1 and 1.
    assert!(close(got.avg, 2.0 / 6.0) && close(got.min, got.avg) && close(got.max, got.avg));
}

#[test]
fn the_cases_of_table_2_for_eight_cores() {
    let (n, a) = (8.0, 2.0);
    let loads = [load(Phase::Serial, 8), load(Phase::Parallel, 8)];
    let got = fairness_cases(Scheduler::Baseline, &one_large(8, a), loads).unwrap();
    assert!(close(got[0], n / (2.0 * (n - 1.5 + a))) && close(got[1], (n - 1.0) / (a * n)));
}

#[test]
fn questions_without_an_answer_are_refused() {
    assert_eq!(Cores::new(vec![]), Err(MixError::Cores));
    assert_eq!(Cores::new(vec![1.0, f64::NAN]), Err(MixError::Cores));
    let cores = one_large(4, 1.0);
    let none = Load { ready: 0, serial: true };
    let huge = Load { ready: u32::MAX, serial: false };
    assert_eq!(speedups(Scheduler::Baseline, &cores, none, &[]), Err(MixError::NoThreads));
    assert!(matches!(
        speedups(Scheduler::Baseline, &cores, huge, &[huge]),
        Err(MixError::TooLarge { .. })
    ));
}

fn some_cores() -> impl Strategy<Value = Cores> {
    prop::collection::vec(0.1..4.0_f64, 1..5).prop_map(|speeds| Cores::new(speeds).unwrap())
}

fn some_load() -> impl Strategy<Value = Load> {
    (1..5_u32, any::<bool>()).prop_map(|(ready, serial)| Load { ready, serial })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_equals_an_enumeration_of_all_placements(
        cores in some_cores(), own in some_load(), other in some_load()
    ) {
        for scheduler in SCHEDULERS {
            let got = speedups(scheduler, &cores, own, &[other]).unwrap();
            let want = enumerated(scheduler, &cores, own, other);
            prop_assert!(agree(got, want), "{:?} {:?} {:?}", scheduler, got, want);
        }
    }

    /// What all programs get together is what the cores that are used give.
    #[test]
    fn averages_add_up_to_the_machine(
        cores in some_cores(), loads in prop::collection::vec(some_load(), 1..5)
    ) {
        let threads: u32 = loads.iter().map(|l| l.ready).sum();
        prop_assume!(threads as usize >= cores.speeds().len());
        let total: f64 = (0..loads.len())
            .map(|own| {
                let others: Vec<_> =
                    (0..loads.len()).filter(|&i| i != own).map(|i| loads[i]).collect();
                let alone = average(cores.speeds(), loads[own].ready, 0);
                speedups(Scheduler::Baseline, &cores, loads[own], &others).unwrap().avg * alone
            })
            .sum();
        prop_assert!(close(total, cores.speeds().iter().sum()));
    }
}
