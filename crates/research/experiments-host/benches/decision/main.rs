//! How long a decision of `symbiotic-online` takes: `cargo bench -p symbiont-experiments-host --bench decision`;
//! of one size, width or stack only: `-- smt4 1024`.
//!
//! The product's own loop (`symbiont_control`) on 16 to 1,024 threads, on cores that run two and four of them,
//! by the coarse stack of POWER8 and by its fine one. Stacks of synthetic threads change by some percent each
//! quantum and come as raw counts of groups that take turns; moves are carried out at no cost. Loads are
//! interleaved, in random order each round. A decision is [`Controller::step`], in ms of wall time on one CPU;
//! the first one, which finds no groups, is given apart. Means over rounds of each round's median, with 95 %
//! intervals.
#![allow(clippy::unwrap_used, reason = "a bench that cannot run stops")]

mod synthetic_threads;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_control::Controller;
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::Machine;
use symbiont_model::{
    Coefficients, Components, Depth, Model, SmtMode, Throttling, TrainedMode, Training,
};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Models, Policy, Settings, SymbioticOnline};
use symbiont_report::stats::{mean_estimate, median};
use symbiont_topology::{CoreKind, Topology};
use symbiont_training::fit;
use symbiont_training::synthetic::World;

use synthetic_threads::SyntheticThreads;

const THREADS: [u32; 4] = [40, 160, 640, 1024];
const ROUNDS: usize = 5;
const DECISIONS: usize = 15;
const QUANTUM: Duration = Duration::from_millis(100);

fn main() {
    let catalogue = Catalogue::named("power8").unwrap().unwrap();
    let mut models: BTreeMap<Depth, Arc<Models>> = BTreeMap::new();
    for stack in Depth::ALL {
        models.insert(stack, Arc::new(model(&catalogue, stack).into()));
    }
    let kinds = || Depth::ALL.into_iter().flat_map(|stack| [2, 4].map(|smt| (stack, smt)));
    let mut loads: Vec<(Depth, u32, u32)> =
        kinds().flat_map(|(stack, smt)| THREADS.map(|threads| (stack, smt, threads))).collect();
    let named: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    loads.retain(|(stack, smt, threads)| {
        let names = [stack.name().to_owned(), format!("smt{smt}"), threads.to_string()];
        named.iter().all(|word| names.contains(word))
    });
    let mut times: BTreeMap<(Depth, u32, u32), [Vec<f64>; 2]> = BTreeMap::new();
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for _ in 0..ROUNDS {
        loads.shuffle(&mut random);
        for &load in &loads {
            let (first, later) = decide(&catalogue, &models[&load.0], load);
            let [firsts, medians] = times.entry(load).or_default();
            firsts.push(first);
            medians.push(median(&later).unwrap());
        }
    }
    println!(
        "{:>8}{:>5}{:>9}{:>12}{:>12}  [95 % interval], ms",
        "stack", "smt", "threads", "first", "later"
    );
    for ((stack, smt, threads), [firsts, medians]) in times {
        let [first, later] = [firsts, medians].map(|values| mean_estimate(&values).unwrap());
        let interval = later.interval.unwrap();
        println!(
            "{:>8}{smt:>5}{threads:>9}{:>12.2}{:>12.2}  [{:.2}, {:.2}]",
            stack.name(),
            first.value,
            later.value,
            interval.low,
            interval.high
        );
    }
}

/// Wall time of the first decision, and of each later one, ms.
fn decide(catalogue: &Catalogue, models: &Arc<Models>, load: (Depth, u32, u32)) -> (f64, Vec<f64>) {
    let (_, smt, threads) = load;
    let topology =
        Topology::synthetic(&format!("core:{} smt:{smt}", threads.div_ceil(smt))).unwrap();
    let places = topology.cpus().len();
    let settings = Settings { models: Some(Arc::clone(models)), ..Settings::default() };
    let policy = SymbioticOnline::with(&settings);
    let machine = SyntheticThreads::new(topology, catalogue, &policy.requirements().required);
    let mut controller = Controller::new(machine, Box::new(policy), Planner::new(Bounds::none()));
    let mut times = Vec::new();
    // The first sample has nothing to compare with, so nothing is decided then.
    for quantum in 0..=DECISIONS + 1 {
        let begin = Instant::now();
        let step = controller.step().unwrap();
        let took = begin.elapsed();
        if quantum > 0 {
            let grouped = step.placement.values().filter(|a| a.predicted_slowdown.is_some());
            assert_eq!(grouped.count(), places, "all threads are grouped");
            times.push(took.as_secs_f64() * 1e3);
        }
        controller.machine_mut().wait(QUANTUM).unwrap();
    }
    (times[0], times.split_off(1))
}

/// A model of synthetic programs.
fn model(catalogue: &Catalogue, stack: Depth) -> Model {
    let components = Components::of(catalogue, stack.sum()).unwrap();
    let law = Coefficients::new(World::law(components.len(), 0.5)).unwrap();
    let world = World { noise: 0.02, ..World::new(20, 3, law, 1) };
    let trained = |mode: SmtMode| {
        let groups = world.some_groups(mode.threads(), 100, 2);
        TrainedMode {
            fit: fit(mode, &world.observe(&groups, 3, 3)).unwrap(),
            throttling: Some(Throttling { weights: vec![1.1; components.len()], error: 0.0 }),
            scores: Vec::new(),
        }
    };
    Model {
        machine: "a synthetic machine".to_owned(),
        core: CoreKind::Performance,
        catalogue: catalogue.name().to_owned(),
        training: Training {
            date: String::new(),
            programs: Vec::new(),
            quantum_ms: QUANTUM.as_millis() as u64,
            note: String::new(),
        },
        modes: [SmtMode::Smt2, SmtMode::Smt4].map(|mode| (mode, trained(mode))).into(),
        components,
    }
}
