//! How long the fast level takes for one quantum.
//!
//! Ten POWER8 cores in SMT4, forty threads that share last level and memory;
//! every quantum has another coschedule, so that no answer repeats. Time per core
//! and quantum is a tenth of what is shown. Synthetic programs have few tables, all of them in
//! the caches of the computer; those of real programs are not.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use symbiont_profile::{Profile, test_support};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::physics::State;
use symbiont_sim_fast::physics::core_model::Tables;
use symbiont_sim_fast::physics::domains::Physics;
use symbiont_sim_fast::physics::pipeline::{CoreSharing, Pipeline};
use symbiont_sim_fast::physics::prepared::Prepared;
use symbiont_sim_fast::physics::response_table::ResponseTable;
use symbiont_sim_fast::physics::tasks::{CoreLoad, RunningThread, Switches};
use symbiont_sim_fast::physics::window::Window;

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

/// Real programs, and phases of each.
const REAL: (usize, usize) = (12, 2);

/// Which programs run.
#[derive(Debug, Clone, Copy)]
enum Programs {
    Synthetic,
    Real,
}

impl Programs {
    /// On POWER8.
    fn prepared(self) -> &'static [Prepared] {
        static MADE: [OnceLock<Vec<Prepared>>; 2] = [const { OnceLock::new() }; 2];
        let machine = Description::named("power8-s812l").unwrap();
        MADE[self as usize].get_or_init(|| match self {
            Self::Synthetic => programs(&machine),
            Self::Real => real(&machine),
        })
    }
}

fn real(machine: &Description) -> Vec<Prepared> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let profiles: Vec<Profile> =
        paths.iter().take(REAL.0).map(|path| Profile::read(path).unwrap()).collect();
    let phases = profiles.iter().flat_map(|profile| profile.phases.iter().take(REAL.1));
    phases.map(|phase| Prepared::new(machine, phase).unwrap()).collect()
}

/// One quantum after the other: `shuffle` says whether threads change places in each, `entering` how
/// many of them may enter another phase.
fn quanta(bencher: Bencher<'_, '_>, programs: Programs, shuffle: bool, entering: usize) {
    let machine = Description::named("power8-s812l").unwrap();
    let physics = Physics::new(&machine);
    let programs = programs.prepared();
    let mut draws = 1_u64;
    let mut draw = move |below: usize| {
        draws =
            draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draws >> 33) as usize % below
    };
    let mut order: Vec<usize> = (0..CORES * MODE).collect();
    let mut phases: Vec<usize> = order.iter().map(|_| draw(programs.len())).collect();
    let mut state = State::default();
    let mut model = Tables { physics: &physics };
    let mut quantum = || {
        if shuffle {
            for last in (1..order.len()).rev() {
                order.swap(last, draw(last + 1));
            }
        }
        for _ in 0..entering {
            let changed = draw(order.len());
            phases[changed] = draw(programs.len());
        }
        let running = |&thread: &usize| RunningThread {
            thread: thread as u64,
            prepared: &programs[phases[thread]],
            pages: &[],
        };
        let threads: Vec<RunningThread<'_>> = order.iter().map(running).collect();
        let loads: Vec<CoreLoad<'_>> = threads
            .chunks(MODE)
            .enumerate()
            .map(|(core, threads)| CoreLoad { core, mode: MODE as u32, threads })
            .collect();
        physics.solve(&mut model, Switches::default(), &loads, Some(1e8), &mut state)
    };
    // Tables are made before the clock starts.
    for prepared in programs {
        physics.prepare(prepared, 0, MODE as u32, CoreSharing::Others).unwrap();
    }
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

#[divan::bench(args = [Programs::Synthetic, Programs::Real], sample_count = 500)]
fn forty_threads_change_places(bencher: Bencher<'_, '_>, programs: Programs) {
    quanta(bencher, programs, true, 1);
}

#[divan::bench(args = [Programs::Synthetic, Programs::Real], sample_count = 500)]
fn forty_threads_change_phase(bencher: Bencher<'_, '_>, programs: Programs) {
    quanta(bencher, programs, false, CORES * MODE);
}

#[divan::bench(args = [Programs::Synthetic, Programs::Real], sample_count = 500)]
fn one_of_forty_threads_changes_phase(bencher: Bencher<'_, '_>, programs: Programs) {
    quanta(bencher, programs, false, 1);
}

#[divan::bench]
fn one_table(bencher: Bencher<'_, '_>) {
    let machine = Description::named("power8-s812l").unwrap();
    let physics = Physics::new(&machine);
    let programs = programs(&machine);
    let phase = &programs[0].cores[0];
    let pipeline = Pipeline::new(&machine.core_types[0], MODE as u32, CoreSharing::Others);
    bencher.bench(|| {
        ResponseTable::new(phase, 0.0, &pipeline, &physics.core_types[0], &physics.memory)
    });
}

#[divan::bench(args = [0, 1, 2, 3, 4, 5])]
fn one_window(bencher: Bencher<'_, '_>, program: usize) {
    let machine = Description::named("power8-s812l").unwrap();
    let programs = programs(&machine);
    let phase = &programs[program].cores[0];
    let pipeline = Pipeline::new(&machine.core_types[0], MODE as u32, CoreSharing::Others);
    let reach = [10.0, 10.0, 14.0, 18.0, 20.0, 20.0, 24.0, 24.0];
    let environment = pipeline.alone(reach, 300.0, 10.0);
    let mut window = Window::default();
    let ops = phase.trace.ops.len();
    bencher
        .counter(ItemsCount::new(ops))
        .bench_local(|| window.run(&pipeline, &phase.trace, &environment));
}
