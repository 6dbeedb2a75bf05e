//! Properties of the whole: what threads do to each other.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use proptest::prelude::*;
use symbiont_profile::{Profile, test_support};

use super::aitken::CLOSE;
use super::core_model::{CoreModel, Direct, Tables};
use super::domains::Physics;
use super::pipeline::{CoreSharing, Group, Queue};
use super::prepared::Prepared;
use super::rates::Rates;
use super::solve::{Solution, State};
use super::tasks::{CoreLoad, RunningThread, Switches};
use crate::description::Description;

mod gains;

/// A machine and programs with one trait each.
struct Bench {
    physics: Physics,
    programs: BTreeMap<&'static str, Prepared>,
}

const NAMES: [&str; 6] =
    ["branchy", "chasing", "floating", "resident", "small-chasing", "streaming"];

fn profiles() -> &'static BTreeMap<&'static str, Profile> {
    static MADE: OnceLock<BTreeMap<&'static str, Profile>> = OnceLock::new();
    MADE.get_or_init(|| {
        BTreeMap::from([
            ("branchy", test_support::branchy()),
            ("chasing", test_support::pointer_chasing(200_000)),
            ("floating", test_support::floating_point()),
            ("resident", test_support::cache_resident()),
            ("small-chasing", test_support::pointer_chasing(3_000)),
            ("streaming", test_support::streaming()),
        ])
    })
}

impl Bench {
    fn new(machine: &str) -> Self {
        let machine = Description::named(machine).unwrap();
        let prepared = |name| (name, Prepared::new(&machine, &profiles()[name].phases[0]).unwrap());
        Self {
            physics: Physics::new(&machine),
            programs: NAMES.into_iter().map(prepared).collect(),
        }
    }

    /// Solves for programs by core, each core in the mode given.
    fn solve(
        &self,
        model: &mut dyn CoreModel,
        switches: Switches,
        cores: &[(usize, u32, &[&str])],
        span: Option<f64>,
        state: &mut State,
    ) -> Solution {
        let mut next = 0;
        let threads: Vec<Vec<RunningThread<'_>>> = cores
            .iter()
            .map(|(_, _, names)| {
                let mut threads = Vec::new();
                for name in *names {
                    next += 1;
                    let prepared = &self.programs[*name];
                    threads.push(RunningThread { thread: next, prepared, pages: &[] });
                }
                threads
            })
            .collect();
        let loads: Vec<_> = cores
            .iter()
            .zip(&threads)
            .map(|((core, mode, _), threads)| CoreLoad { core: *core, mode: *mode, threads })
            .collect();
        self.physics.solve(model, switches, &loads, span, state)
    }

    /// In the long run, by the window model.
    fn together(&self, switches: Switches, cores: &[(usize, u32, &[&str])]) -> Vec<Rates> {
        let mut state = State::default();
        let solution = self.solve(&mut Direct::default(), switches, cores, None, &mut state);
        solution.rates.into_iter().map(|(_, rates)| rates).collect()
    }

    /// Throttled ST.
    fn throttled(&self, name: &str, mode: u32) -> Rates {
        self.together(Switches::default(), &[(0, mode, &[name])])[0]
    }
}

/// A machine whose core's threads are counted, and how many.
const MACHINES: [(&str, u32); 3] = [("xeon-e5-2620v4", 2), ("power8-s812l", 4), ("xsim", 2)];

fn pick(index: usize) -> &'static str {
    NAMES[index % NAMES.len()]
}

#[test]
fn a_corunner_never_speeds_a_thread_up() {
    for (machine, mode) in MACHINES {
        let bench = Bench::new(machine);
        for first in NAMES {
            let alone = bench.throttled(first, mode).cpi;
            for second in NAMES {
                let [with, _] =
                    bench.together(Switches::default(), &[(0, mode, &[first, second])])[..]
                else {
                    panic!("two threads")
                };
                assert!(with.cpi >= alone * 0.99, "{machine}: {first} with {second}");
            }
        }
    }
}

#[test]
fn identical_corunners_slow_down_equally() {
    for (machine, mode) in MACHINES {
        let bench = Bench::new(machine);
        for name in NAMES {
            let names = vec![name; mode as usize];
            let rates =
                bench.together(Switches::default(), &[(0, mode, &names), (1, mode, &names)]);
            for other in &rates[1..] {
                assert!((other.cpi / rates[0].cpi - 1.0).abs() < 1e-3, "{machine}: {name}");
            }
        }
    }
}

#[test]
fn private_resources_make_threads_run_as_throttled_st() {
    for (machine, mode) in MACHINES {
        let bench = Bench::new(machine);
        let names: Vec<_> = (0..mode as usize).map(|index| pick(index * 2 + 1)).collect();
        let rates = bench.together(Switches::ALL_PRIVATE, &[(0, mode, &names)]);
        for (name, rates) in names.iter().zip(rates) {
            let alone = bench.throttled(name, mode).cpi;
            assert!((rates.cpi / alone - 1.0).abs() < 1e-6, "{machine}: {name}");
        }
    }
}

#[test]
fn each_switch_takes_its_own_cause_away() {
    let bench = Bench::new("xeon-e5-2620v4");
    let slowdown = |switches, name, other| {
        let rates = bench.together(switches, &[(0, 2, &[name, other])]);
        rates[0].cpi / bench.throttled(name, 2).cpi
    };
    let shared = Switches::default();
    let units = Switches { private_units: true, ..shared };
    assert!(slowdown(shared, "resident", "resident") > 1.5);
    assert!(slowdown(units, "resident", "resident") < 1.02);
    let caches = Switches { private_caches: true, ..shared };
    assert!(slowdown(shared, "small-chasing", "small-chasing") > 1.1);
    let kept = slowdown(caches, "small-chasing", "small-chasing");
    assert!(kept < 1.05 && kept < slowdown(shared, "small-chasing", "small-chasing") - 0.05);
    let predictor = Switches { private_predictor: true, ..shared };
    assert!(slowdown(predictor, "branchy", "chasing") < slowdown(shared, "branchy", "chasing"));
    let cores: Vec<(usize, u32, &[&str])> =
        (0..8).map(|core| (core, 1, &["streaming"][..])).collect();
    let bandwidth = Switches { private_bandwidth: true, ..shared };
    let many = bench.together(shared, &cores)[0].cpi;
    assert!(many > 1.3 * bench.together(bandwidth, &cores)[0].cpi);
}

#[test]
fn shares_never_exceed_capacity() {
    for (machine, mode) in MACHINES {
        let bench = Bench::new(machine);
        let core = &bench.physics.cores[0];
        let pipeline = bench.physics.pipeline(core.core_type, mode, CoreSharing::Others).unwrap();
        for round in 0..12 {
            let names: Vec<_> = (0..mode as usize).map(|index| pick(round * (index + 1))).collect();
            let rates = bench.together(Switches::default(), &[(0, mode, &names)]);
            let sum = |of: &dyn Fn(&Rates) -> f64| -> f64 {
                rates.iter().map(|rates| of(rates) / rates.cpi).sum()
            };
            let halves = if pipeline.halved { 2.0 } else { 1.0 };
            let width = halves * pipeline.width;
            assert!(sum(&|r| r.ops) <= width * 1.01, "{machine}: {names:?}");
            assert!(sum(&|r| r.window.front) <= halves * 1.01, "{machine}: {names:?}");
            for group in [Group::Integer, Group::Vector, Group::Load, Group::Store] {
                let used = sum(&|r| r.window.port_cycles[group as usize]);
                let ports = halves * pipeline.group_size(group as usize);
                if !pipeline.private_groups[group as usize] {
                    assert!(
                        used <= ports * 1.01,
                        "{machine}: {names:?} {group:?} {used} of {ports}"
                    );
                }
            }
            for queue in [Queue::Rob, Queue::Mshr] {
                let held = sum(&|r| r.window.held[queue as usize]);
                let total = pipeline.rooms[queue as usize].total;
                assert!(held <= total * 1.05 + 1.0, "{machine}: {names:?} {queue:?} {held}");
            }
        }
    }
}

#[test]
fn memory_gives_no_more_than_its_bandwidth() {
    let bench = Bench::new("xeon-e5-2620v4");
    let cores: Vec<(usize, u32, &[&str])> =
        (0..8).map(|core| (core, 2, &["streaming", "streaming"][..])).collect();
    let rates = bench.together(Switches::default(), &cores);
    let bytes = |r: &Rates| (r.llc_misses + r.write_backs) * 64.0 * r.ghz / r.cpi;
    let sum: f64 = rates.iter().map(bytes).sum();
    let most = bench.physics.memory.total;
    assert!((0.7 * most..1.03 * most).contains(&sum), "{sum} of {most}");
}

#[test]
fn equal_inputs_give_equal_rates() {
    let bench = Bench::new("power8-s812l");
    let run = || {
        let mut state = State::default();
        let mut rates = Vec::new();
        for round in 0..4 {
            let names: Vec<_> = (0..4).map(|index| pick(round + index)).collect();
            let cores: [(usize, u32, &[&str]); 2] = [(0, 4, &names), (5, 2, &names[..2])];
            let mut direct = Direct::default();
            let span = Some(1e8);
            rates.push(bench.solve(&mut direct, Switches::default(), &cores, span, &mut state));
        }
        (rates, state)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_thread_that_moved_finds_its_caches_cold() {
    let bench = Bench::new("xeon-e5-2620v4");
    let mut state = State::default();
    let mut step = |switches, core: usize, span| {
        let cores: [(usize, u32, &[&str]); 1] = [(core, 1, &["small-chasing"])];
        let mut direct = Direct::default();
        let solution = bench.solve(&mut direct, switches, &cores, span, &mut state);
        solution.rates[0].1
    };
    let private = Switches { private_caches: true, ..Switches::default() };
    let own = step(private, 0, Some(1e9));
    let taken_along = step(private, 1, Some(2e4));
    assert!((taken_along.cpi / own.cpi - 1.0).abs() < 0.01);
    let mut step = |core, span| step(Switches::default(), core, span);
    let settled = step(0, Some(1e9));
    let stayed = step(0, Some(2e4));
    assert!((stayed.cpi / settled.cpi - 1.0).abs() < 0.01);
    let moved = step(1, Some(2e4));
    assert!(moved.l2_misses > settled.l2_misses + 0.001, "{moved:?}");
    let warm = step(1, Some(1e9));
    assert!((warm.cpi / settled.cpi - 1.0).abs() < 0.01, "{} {}", warm.cpi, settled.cpi);
}

/// One that waited finds of its caches what those left that ran meanwhile.
#[test]
fn a_thread_that_waited_finds_its_caches_as_others_left_them() {
    let bench = Bench::new("xeon-e5-2620v4");
    let run = |state: &mut State, thread, name: &str, core, span| {
        let threads = [RunningThread { thread, prepared: &bench.programs[name], pages: &[] }];
        let load = [CoreLoad { core, mode: 1, threads: &threads }];
        let (mut direct, shared) = (Direct::default(), Switches::default());
        bench.physics.solve(&mut direct, shared, &load, Some(span), state).rates[0].1
    };
    let more = |other: &str, core: usize, ns: f64| {
        let mut state = State::default();
        let settled = run(&mut state, 1, "small-chasing", 0, 1e9);
        run(&mut state, 2, other, core, 1e4);
        state.lasted(ns);
        run(&mut state, 1, "small-chasing", 0, 2e5).l2_misses - settled.l2_misses
    };
    let much = more("streaming", 0, 1e7);
    assert!(much > 1e-3, "{much}");
    // What it holds and does not use again goes first.
    assert!(more("streaming", 0, 1e3) < 1e-5);
    // Next to nothing is brought in, or elsewhere.
    let (quiet, elsewhere) = (more("branchy", 0, 1e5), more("streaming", 1, 1e7));
    assert!(quiet < 0.2 * much && elsewhere < 0.01 * much, "{quiet} {elsewhere} {much}");
}

#[test]
fn remote_memory_is_slower() {
    let bench = Bench::new("power8-s812l");
    let solve = |pages: &[f64]| {
        let threads = [RunningThread { thread: 1, prepared: &bench.programs["chasing"], pages }];
        let loads = [CoreLoad { core: 0, mode: 1, threads: &threads }];
        let mut state = State::default();
        let switches = Switches::default();
        bench.physics.solve(&mut Direct::default(), switches, &loads, None, &mut state).rates[0].1
    };
    let (near, mixed, far) = (solve(&[1.0, 0.0]), solve(&[0.5, 0.5]), solve(&[0.0, 1.0]));
    let ratio = far.memory_latency / near.memory_latency;
    assert!((ratio - bench.physics.memory.remote).abs() < 0.02, "{ratio}");
    assert!(near.cpi < mixed.cpi && mixed.cpi < far.cpi);
    assert_eq!((near.remote_misses, far.remote_misses), (0.0, far.llc_misses));
    assert!((mixed.remote_misses - mixed.llc_misses / 2.0).abs() < 1e-9);
}

#[test]
fn threads_of_a_module_share_floating_point_but_not_integers() {
    let bench = Bench::new("opteron-6282se");
    let slowdown = |name| {
        let both = bench.together(Switches::default(), &[(0, 2, &[name, name])])[0].cpi;
        both / bench.throttled(name, 2).cpi
    };
    assert!(slowdown("small-chasing") < 1.3, "{}", slowdown("small-chasing"));
    assert!(slowdown("floating") > slowdown("small-chasing"), "{}", slowdown("floating"));
}

#[test]
fn cores_run_at_their_own_speed() {
    let alder = Bench::new("alder-lake");
    let small = alder
        .physics
        .cores
        .iter()
        .position(|core| core.core_type != alder.physics.cores[0].core_type);
    let speed = |bench: &Bench, core, name| {
        let rates = bench.together(Switches::default(), &[(core, 1, &[name])])[0];
        rates.instructions_per_second()
    };
    for name in ["resident", "floating"] {
        assert!(speed(&alder, 0, name) > 1.2 * speed(&alder, small.unwrap(), name), "{name}");
    }
    let morad = Bench::new("morad-8-asymmetric");
    let ghz = |core: usize| morad.physics.cores[core].ghz;
    let slow = (0..8).find(|&core| ghz(core) < ghz(0)).unwrap();
    let ratio = speed(&morad, 0, "resident") / speed(&morad, slow, "resident");
    assert!((ratio / (ghz(0) / ghz(slow)) - 1.0).abs() < 0.01, "{ratio}");
}

/// Seeded mixes, unlike those of any other test.
fn mixes(count: usize, threads: usize) -> Vec<Vec<&'static str>> {
    let mut state = 12345_u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        NAMES[(state >> 33) as usize % NAMES.len()]
    };
    (0..count).map(|_| (0..threads).map(|_| draw()).collect()).collect()
}

/// Threads of five cores of which so many `at_once` enter another phase, again and again; each time
/// solved on from the last and anew. The differences of CPI, sorted, and the answers that each took.
fn on_and_anew(bench: &Bench, mode: usize, changes: usize, at_once: usize) -> (Vec<f64>, [u64; 2]) {
    let mut draws = 99_u64;
    let mut draw = |below: usize| {
        draws =
            draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draws >> 33) as usize % below
    };
    let mut names: Vec<&str> = (0..5 * mode).map(|_| NAMES[draw(NAMES.len())]).collect();
    let mut on = State::default();
    let (mut errors, mut stacks, mut anews) = (Vec::new(), Vec::new(), 0);
    for _ in 0..changes {
        for _ in 0..at_once {
            let changed = draw(names.len());
            names[changed] = NAMES[draw(NAMES.len())];
        }
        let cores: Vec<_> = names.chunks(mode).zip(0..).map(|(n, c)| (c, mode as u32, n)).collect();
        let solve = |state: &mut State| {
            let mut tables = Tables { physics: &bench.physics };
            bench.solve(&mut tables, Switches::default(), &cores, None, state).rates
        };
        let mut anew = State::default();
        let rates = [solve(&mut on), solve(&mut anew)];
        anews += anew.answers;
        for ((_, on), (_, anew)) in rates[0].iter().zip(&rates[1]) {
            errors.push((on.cpi / anew.cpi - 1.0).abs());
            assert!((on.window.cycles.iter().sum::<f64>() / on.cpi - 1.0).abs() < 1e-6);
            let causes = on.window.cycles.iter().zip(&anew.window.cycles);
            let apart = causes.map(|(on, anew)| (on - anew).abs()).sum::<f64>() / anew.cpi;
            stacks.push(apart);
        }
    }
    let apart = stacks.iter().sum::<f64>() / stacks.len() as f64;
    assert!(apart < 0.01, "stacks differ by {apart}");
    errors.sort_by(f64::total_cmp);
    (errors, [on.answers, anews])
}

/// With the tables that tests have made so far.
fn power8() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(|| Bench::new("power8-s812l"))
}

/// Solved on, threads run as fast as anew.
fn assert_alike(what: &str, errors: &[f64]) {
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors[errors.len() - 1];
    let p95 = errors[errors.len() * 95 / 100];
    println!("{what}: mean {mean:.5}, p95 {p95:.5}, worst {worst:.5}");
    assert!(mean < 0.001 && p95 < 0.005, "{what}: mean {mean}, p95 {p95}");
    assert!(worst < 0.02, "{what}: {worst}");
}

#[test]
fn what_changed_alone_is_solved_again() {
    for mode in [1, 4] {
        let (errors, [on, anew]) = on_and_anew(power8(), mode, 100, 1);
        assert_alike(&format!("SMT{mode}"), &errors);
        assert!(on * 2 < anew, "SMT{mode}: {on} answers on, {anew} anew");
        let (errors, _) = on_and_anew(power8(), mode, 40, 4);
        assert_alike(&format!("SMT{mode}, four at once"), &errors);
    }
}

#[test]
fn cores_that_meet_in_caches_are_solved_on_as_anew() {
    let bench = Bench::new("xeon-e5-2620v4");
    let (errors, [on, anew]) = on_and_anew(&bench, 2, 60, 1);
    assert_alike("Xeon", &errors);
    assert!(on * 2 < anew, "{on} answers on, {anew} anew");
}

#[test]
fn a_thread_that_notices_nothing_sleeps() {
    let bench = power8();
    let mut state = State::default();
    let mut solve = |first: &'static str| {
        let mut tables = Tables { physics: &bench.physics };
        let others = ["resident"; 4];
        let mine = [first, "resident", "resident", "resident"];
        let cores: [(usize, u32, &[&str]); 3] = [(0, 4, &mine), (1, 4, &others), (2, 4, &others)];
        let solved = bench.solve(&mut tables, Switches::default(), &cores, None, &mut state);
        assert!(solved.settled);
        (solved.rates, state.sweeps)
    };
    let (before, sweeps) = solve("resident");
    let (after, more) = solve("branchy");
    assert_ne!(before[..4], after[..4]);
    assert_eq!(before[4..], after[4..]);
    assert!(more - sweeps < sweeps, "{} sweeps, {sweeps} before", more - sweeps);
    // And what is asked again without any change is not solved at all.
    let (again, none) = solve("branchy");
    assert_eq!(after, again);
    assert_eq!(more, none);
}

/// One thread more, on a core of its own, disturbs no other: what was known of all others still is.
#[test]
fn a_thread_that_stays_where_it_was_takes_no_answers() {
    let bench = power8();
    let mut state = State::default();
    let mut solve = |cores: &[Vec<usize>]| {
        let running = |&thread: &usize| {
            let prepared = &bench.programs[pick(thread)];
            RunningThread { thread: thread as u64, prepared, pages: &[] }
        };
        let threads: Vec<Vec<RunningThread<'_>>> =
            cores.iter().map(|threads| threads.iter().map(running).collect()).collect();
        let load = |(threads, core)| CoreLoad { core, mode: 4, threads };
        let loads: Vec<CoreLoad<'_>> =
            threads.iter().map(Vec::as_slice).zip(0..).map(load).collect();
        let mut tables = Tables { physics: &bench.physics };
        bench.physics.solve(&mut tables, Switches::default(), &loads, None, &mut state);
        std::mem::take(&mut state.answers)
    };
    let resident = NAMES.iter().position(|name| *name == "resident").unwrap();
    let mut cores = vec![vec![0, 1, 2], vec![3, 4], vec![5, 6, 7]];
    let first = solve(&cores);
    cores.push(vec![6 * NAMES.len() + resident]);
    let more = solve(&cores);
    assert!(more * 3 < first, "{more} answers, {first} at first");
}

#[test]
fn a_phase_that_comes_again_takes_few_answers() {
    let bench = power8();
    let mut state = State::default();
    let mut both = || {
        let mut tables = Tables { physics: &bench.physics };
        let solved = ["branchy", "small-chasing"].map(|first| {
            let cores: [(usize, u32, &[&str]); 2] = [(0, 1, &[first]), (1, 1, &["resident"])];
            let solved = bench.solve(&mut tables, Switches::default(), &cores, None, &mut state);
            solved.rates.iter().map(|(_, rates)| rates.cpi).collect::<Vec<_>>()
        });
        (solved, std::mem::take(&mut state.answers))
    };
    let (before, first) = both();
    let (after, again) = both();
    assert!(again * 2 < first, "{again} answers, {first} at first");
    for (before, after) in before.iter().flatten().zip(after.iter().flatten()) {
        assert!((before / after - 1.0).abs() < 2.0 * CLOSE, "{before} {after}");
    }
}

#[test]
fn tables_meet_the_direct_solve() {
    for (machine, mode) in MACHINES {
        let bench = Bench::new(machine);
        let mut errors = Vec::new();
        for names in mixes(16, mode as usize * 2) {
            let (here, there) = names.split_at(mode as usize);
            let cores: [(usize, u32, &[&str]); 2] = [(0, mode, here), (1, mode, there)];
            let mut tables = Tables { physics: &bench.physics };
            let (switches, mut state) = (Switches::default(), State::default());
            let fast = bench.solve(&mut tables, switches, &cores, None, &mut state);
            let direct = bench.together(switches, &cores);
            for (name, ((_, fast), direct)) in names.iter().zip(fast.rates.iter().zip(&direct)) {
                let error = fast.cpi / direct.cpi - 1.0;
                errors.push((error.abs(), *name, names.clone()));
            }
        }
        errors.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mean = errors.iter().map(|error| error.0).sum::<f64>() / errors.len() as f64;
        println!("{machine}: mean {mean:.4}, worst {:?}", &errors[..3]);
        assert!(mean < 0.01, "{machine}: {mean}");
        // The worst are loops so regular that a queue one entry shorter changes all.
        assert!(errors[0].0 < 0.1, "{machine}: {:?}", errors[0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_mix_settles(seed in 0_usize..1000, mode in 1_u32..5) {
        static BENCH: OnceLock<Bench> = OnceLock::new();
        let bench = BENCH.get_or_init(|| Bench::new("power8-s812l"));
        let names: Vec<_> = (0..mode as usize).map(|index| pick(seed * (index + 3) / 7)).collect();
        let mut state = State::default();
        let cores: [(usize, u32, &[&str]); 1] = [(0, mode, &names)];
        let mut direct = Direct::default();
        let solution = bench.solve(&mut direct, Switches::default(), &cores, None, &mut state);
        prop_assert!(solution.settled, "{names:?} after {} rounds", solution.rounds);
        prop_assert!(solution.rates.iter().all(|(_, rates)| rates.cpi.is_finite() && rates.cpi > 0.0));
    }
}
