//! How long the fast level takes for one quantum.
//!
//! Ten POWER8 cores in SMT4, forty threads that share last level and memory;
//! every quantum has another coschedule, so that no answer repeats. Time per core
//! and quantum is a tenth of what is shown.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use divan::Bencher;
use divan::counter::ItemsCount;
use symbiont_profile::test_support;
use symbiont_sim::description::Description;
use symbiont_sim::physics::State;
use symbiont_sim::physics::domains::Physics;
use symbiont_sim::physics::pipeline::Pipeline;
use symbiont_sim::physics::prepared::Prepared;
use symbiont_sim::physics::respond::Tables;
use symbiont_sim::physics::response::ResponseTable;
use symbiont_sim::physics::tasks::{Load, Running, Switches};
use symbiont_sim::physics::window::Window;

fn main() {
    divan::main();
}

const CORES: usize = 10;
const MODE: usize = 4;

fn programs(machine: &Description) -> Vec<Prepared> {
    let profiles = [
        test_support::branchy(),
        test_support::pointer_chasing(200_000),
        test_support::floating_point(),
        test_support::cache_resident(),
        test_support::pointer_chasing(3_000),
        test_support::streaming(),
    ];
    profiles.iter().map(|profile| Prepared::new(machine, &profile.phases[0]).unwrap()).collect()
}

/// One quantum after the other: `shuffle` says whether threads change places in each, and whether
/// each thread may be in another phase than before.
fn quanta(bencher: Bencher<'_, '_>, shuffle: bool) {
    let machine = Description::named("power8-s812l").unwrap();
    let physics = Physics::new(&machine);
    let programs = programs(&machine);
    let mut draws = 1_u64;
    let mut draw = move |below: usize| {
        draws =
            draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draws >> 33) as usize % below
    };
    let mut order: Vec<usize> = (0..CORES * MODE).collect();
    let mut phases: Vec<usize> = order.iter().map(|_| draw(programs.len())).collect();
    let mut state = State::default();
    let mut respond = Tables { physics: &physics };
    let mut quantum = || {
        if shuffle {
            for last in (1..order.len()).rev() {
                order.swap(last, draw(last + 1));
            }
        }
        let changed = draw(order.len());
        phases[changed] = draw(programs.len());
        let running = |&thread: &usize| Running {
            thread: thread as u64,
            prepared: &programs[phases[thread]],
            pages: &[],
        };
        let threads: Vec<Running<'_>> = order.iter().map(running).collect();
        let loads: Vec<Load<'_>> = threads
            .chunks(MODE)
            .enumerate()
            .map(|(core, threads)| Load { core, mode: MODE as u32, threads })
            .collect();
        physics.solve(&mut respond, Switches::default(), &loads, Some(1e8), &mut state)
    };
    // Tables are made before the clock starts.
    for _ in 0..50 {
        quantum();
    }
    bencher.counter(ItemsCount::new(CORES)).bench_local(quantum);
    let per_call = |count: u64| count as f64 / state.calls as f64;
    println!("rounds per quantum: {:.2}", per_call(state.rounds));
    println!("of each core: {:.2}", per_call(state.sweeps) / CORES as f64);
    println!("answers of each core: {:.2}", per_call(state.answers) / CORES as f64);
    println!("unsettled: {} of {}", state.unsettled, state.calls);
}

#[divan::bench(sample_count = 500)]
fn forty_threads_change_places(bencher: Bencher<'_, '_>) {
    quanta(bencher, true);
}

#[divan::bench(sample_count = 500)]
fn forty_threads_stay(bencher: Bencher<'_, '_>) {
    quanta(bencher, false);
}

#[divan::bench]
fn one_table(bencher: Bencher<'_, '_>) {
    let machine = Description::named("power8-s812l").unwrap();
    let physics = Physics::new(&machine);
    let programs = programs(&machine);
    let phase = &programs[0].cores[0];
    let pipeline = Pipeline::new(&machine.core_types[0], MODE as u32);
    bencher.bench(|| ResponseTable::new(phase, 0.0, &pipeline, &physics.sorts[0], &physics.memory));
}

#[divan::bench(args = [0, 1, 2, 3, 4, 5])]
fn one_window(bencher: Bencher<'_, '_>, program: usize) {
    let machine = Description::named("power8-s812l").unwrap();
    let programs = programs(&machine);
    let phase = &programs[program].cores[0];
    let pipeline = Pipeline::new(&machine.core_types[0], MODE as u32);
    let environment = pipeline.alone([10.0, 10.0, 14.0, 18.0, 20.0, 20.0, 24.0], 300.0, 10.0);
    let mut window = Window::default();
    let ops = phase.trace.ops.len();
    bencher
        .counter(ItemsCount::new(ops))
        .bench_local(|| window.run(&pipeline, &phase.trace, &environment));
}
