//! How long simulated time takes: 20 programs on 5 cores of POWER8 in SMT4, shuffled
//! every 100 ms, so that each quantum has coschedules that were never seen.

use std::time::Duration;

use divan::Bencher;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::{Change, Machine, Move, Signal, Target};
use symbiont_profile::{Profile, test_support as synthetic};
use symbiont_sim::description::Description;
use symbiont_sim::fast::{Switches, Workshop};
use symbiont_sim::machine::{Options, SimMachine};
use symbiont_sim::program::{Program, Shape};
use symbiont_topology::PuId;

const QUANTUM: Duration = Duration::from_millis(100);
const QUANTA: u32 = 100;

fn main() {
    divan::main();
}

/// One in twenty of 200 simulated seconds: multiply by 20.
#[divan::bench(sample_count = 10)]
fn ten_simulated_seconds(bencher: Bencher<'_, '_>) {
    let makers: [fn() -> Profile; 4] = [
        synthetic::streaming,
        synthetic::cache_resident,
        synthetic::floating_point,
        synthetic::branchy,
    ];
    let profiles: Vec<Profile> = makers.iter().map(|make| make()).collect();
    let power8 = Description::named("power8-s812l").map(|all| all.restricted(Some(5), Some(4)));
    let Ok(Ok(description)) = power8 else { return };
    let workshop = Workshop::new(description);
    bencher
        .with_inputs(|| {
            let programs: Vec<Program<'_>> = profiles
                .iter()
                .cycle()
                .take(20)
                .map(|profile| Program {
                    name: profile.program.clone(),
                    profile,
                    shape: Shape::Single,
                    target: None,
                })
                .collect();
            let fast = workshop.fast(Switches::default());
            let options = Options { seed: 1, ..Options::default() };
            SimMachine::new(workshop.description(), fast, programs, &[], options)
        })
        .bench_local_values(|machine| {
            let Ok(mut machine) = machine else { return 0.0 };
            machine.measure(&[Signal::CpiStack].into());
            let mut random = Pcg64Mcg::seed_from_u64(7);
            for _ in 0..QUANTA {
                let Ok(sample) = machine.sample() else { return 0.0 };
                let mut pus: Vec<PuId> = machine.topology().cpus().iter().collect();
                pus.shuffle(&mut random);
                let to = |pu: PuId| Change::Affinity(Target::Cpus([pu].into_iter().collect()));
                let moves: Vec<Move> = sample
                    .threads
                    .iter()
                    .zip(pus)
                    .map(|(thread, pu)| Move { thread: thread.id, change: to(pu) })
                    .collect();
                if machine.apply(&moves).and_then(|_| machine.wait(QUANTUM)).is_err() {
                    return 0.0;
                }
            }
            machine.retired(0).unwrap_or_default()
        });
}
