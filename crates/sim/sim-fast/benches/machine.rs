//! How long simulated time takes: 20 programs on 5 cores of POWER8 in SMT4, quanta of 100 ms;
//! oversubscribed 30 programs, on ten cores 40.
//!
//! Shuffled, each quantum has coschedules that were never seen; left alone, what changes are the
//! phases of programs. Real programs change theirs as their profiles say: the mean time of a
//! quantum and a core is what is shown by 500 (on ten cores by 1,000), all work of the machine included.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::path::PathBuf;
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::{Change, Machine, Move, Signal, Target};
use symbiont_profile::{Profile, test_support as synthetic};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Fast, Switches, TableBuilder};
use symbiont_sim_fast::machine::{SimMachine, SimOptions};
use symbiont_sim_fast::program::{Shape, SimProgram};
use symbiont_topology::PuId;

const QUANTUM: Duration = Duration::from_millis(100);
const QUANTA: usize = 100;
const CORES: usize = 5;

/// Real programs: some that stay in caches and some that wait for memory.
const REAL: [&str; 5] = ["povray", "gcc", "bwa", "lbm", "gzip"];

fn main() {
    divan::main();
}

#[derive(Debug, Clone, Copy)]
enum Programs {
    Synthetic,
    Real,
}

impl Programs {
    fn profiles(self) -> Vec<Profile> {
        match self {
            Self::Synthetic => vec![
                synthetic::streaming(),
                synthetic::cache_resident(),
                synthetic::floating_point(),
                synthetic::branchy(),
            ],
            Self::Real => {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles");
                let read = |name| PathBuf::from(folder).join(format!("{name}.profile"));
                REAL.iter().map(|name| Profile::read(&read(name)).unwrap()).collect()
            }
        }
    }
}

/// One in twenty of 200 simulated seconds: multiply by 20.
fn ten_simulated_seconds(
    bencher: Bencher<'_, '_>,
    programs: Programs,
    (cores, count): (usize, usize),
    shuffled: bool,
) {
    let profiles = programs.profiles();
    let power8 = Description::named("power8-s812l").unwrap();
    let builder = TableBuilder::new(power8.restricted(Some(cores), Some(4)).unwrap());
    let machine = || {
        let programs: Vec<SimProgram<'_>> = profiles
            .iter()
            .cycle()
            .take(count)
            .map(|profile| SimProgram {
                name: profile.program.clone(),
                profile,
                shape: Shape::Single,
                target: None,
            })
            .collect();
        let fast = builder.fast(Switches::default());
        let options = SimOptions { seed: 1, ..SimOptions::default() };
        SimMachine::new(builder.description(), fast, programs, &[], options).unwrap()
    };
    // What is run for the first time makes tables.
    let done = run(machine(), shuffled);
    println!("10⁹ instructions of each slot: {done:.3?}");
    let core_quanta = ItemsCount::new(QUANTA * cores);
    bencher
        .counter(core_quanta)
        .with_inputs(machine)
        .bench_local_values(|machine| run(machine, shuffled));
}

/// What each slot retires, 10⁹ instructions.
fn run<'p>(mut machine: SimMachine<'p, Fast<'_, 'p>>, shuffled: bool) -> Vec<f64> {
    machine.measure(&[Signal::CpiStack].into());
    let mut random = Pcg64Mcg::seed_from_u64(7);
    for _ in 0..QUANTA {
        let sample = machine.sample().unwrap();
        if shuffled {
            let mut pus: Vec<PuId> = machine.topology().cpus().iter().collect();
            pus.shuffle(&mut random);
            let to = |pu: PuId| Change::Affinity(Target::Cpus([pu].into_iter().collect()));
            let threads = sample.threads.iter().zip(pus);
            let moves: Vec<Move> =
                threads.map(|(thread, pu)| Move { thread: thread.id, change: to(pu) }).collect();
            machine.apply(&moves).unwrap();
        }
        machine.wait(QUANTUM).unwrap();
    }
    (0..machine.programs().len())
        .map(|slot| machine.retired(slot).unwrap_or_default() / 1e9)
        .collect()
}

#[divan::bench(args = [Programs::Synthetic, Programs::Real], sample_count = 20)]
fn shuffled_each_quantum(bencher: Bencher<'_, '_>, programs: Programs) {
    ten_simulated_seconds(bencher, programs, (CORES, 20), true);
}

#[divan::bench(args = [Programs::Synthetic, Programs::Real], sample_count = 20)]
fn left_alone(bencher: Bencher<'_, '_>, programs: Programs) {
    ten_simulated_seconds(bencher, programs, (CORES, 20), false);
}

#[divan::bench(args = [Programs::Synthetic, Programs::Real], sample_count = 20)]
fn left_alone_on_ten_cores(bencher: Bencher<'_, '_>, programs: Programs) {
    ten_simulated_seconds(bencher, programs, (10, 40), false);
}

#[divan::bench(args = [Programs::Synthetic, Programs::Real], sample_count = 20)]
fn left_alone_oversubscribed(bencher: Bencher<'_, '_>, programs: Programs) {
    ten_simulated_seconds(bencher, programs, (CORES, 30), false);
}
