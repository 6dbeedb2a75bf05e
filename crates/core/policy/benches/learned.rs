//! Time of one decision of `learned`. `cargo bench -p symbiont-policy --bench learned`.
//!
//! Threads of as many programs as there are threads, which is the worst case, and of 20 programs; each takes from each
//! co-runner something else. Each decision is applied when the next one is made.
#![allow(clippy::unwrap_used, reason = "a bench that cannot run stops")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterization, Characterizations, Measured, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Placement, Program, ProgramId, RunState, Sample, Target};
use symbiont_policy::{Learned, Policy, Settings, View};
use symbiont_topology::Topology;

const QUANTA: usize = 200;

fn main() {
    println!("one decision of learned, microseconds, of {QUANTA} quanta");
    println!(
        "{:>8}{:>5}{:>10}{:>10}{:>10}{:>10}",
        "threads", "smt", "programs", "least", "median", "most"
    );
    for (threads, smt) in [(16_u32, 2_u32), (40, 2), (160, 2), (1024, 2), (40, 4)] {
        for programs in [threads, 20] {
            let mut times = play(threads, smt, programs);
            times.sort_unstable();
            let [least, median, most] =
                [times[0], times[QUANTA / 2], times[QUANTA - 1]].map(|time| time.as_micros());
            println!("{threads:>8}{smt:>5}{programs:>10}{least:>10}{median:>10}{most:>10}");
        }
    }
}

fn play(threads: u32, smt: u32, programs: u32) -> Vec<Duration> {
    let machine = Topology::synthetic(&format!("core:{} smt:{smt}", threads / smt)).unwrap();
    let (online, over) = (machine.cpus(), Duration::from_millis(100));
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let named: Vec<Program> =
        (0..threads).map(|at| Program::new(ProgramId(at), format!("p{}", at % programs))).collect();
    let mut cpus: Vec<_> = online.iter().collect();
    let (mut policy, mut applied) = (Learned::new(&Settings::default()), Placement::new());
    let mut times = Vec::with_capacity(QUANTA);
    for _ in 0..QUANTA {
        let mut all = Vec::new();
        let (mut did, mut measured) = (Characterizations::new(), Measurements::new());
        for at in 0..threads {
            let mut t = thread(at, at, &online);
            (t.state, t.cpu) = (RunState::Runnable, Some(cpus[at as usize]));
            let ran =
                Characterization { over, ready: 1.0, running: 1.0, switches: 0, migrated: None };
            did.insert(t.id, ran);
            let value = 1.0 + random.random_range(0.0..0.06);
            measured.insert(t.id, Measured::of([("ipc", Value { value, unit: Unit::Fraction })]));
            all.push(t);
        }
        let sample = Sample { threads: all, programs: named.clone(), ..Sample::default() };
        let view = View::new(&machine, &sample, &did, &applied).measured(&measured);
        let begun = Instant::now();
        let placement = black_box(policy.place(&view));
        times.push(begun.elapsed());
        for (id, assignment) in &placement {
            if let Target::Cpus(target) = &assignment.target {
                cpus[id.thread as usize] = target.first().unwrap();
            }
        }
        applied = placement;
    }
    times
}
