//! Time of a whole decision of `symbiotic`: characterise, invert, predict all
//! pairs, match, plan. `cargo bench -p symbiont-control`.
//!
//! Threads have made-up stacks that change by some percent each quantum, read
//! by the catalogue of POWER8; the machine carries moves out at no cost.
#![allow(clippy::unwrap_used, reason = "a bench that cannot run stops")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use symbiont_control::Controller;
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::test_support::FakeMachine;
use symbiont_machine::{GroupReading, Machine, Signal, Timestamp};
use symbiont_model::synthetic::World;
use symbiont_model::{
    Coefficients, Components, Model, SmtMode, Throttling, Trained, Training, fit,
};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Symbiosis, Symbiotic};
use symbiont_topology::{CoreKind, Topology};

const QUANTA: usize = 25;
/// Cycles of a quantum of 100 ms at 3 GHz.
const CYCLES: f64 = 3e8;
/// Events of the stack's parts, in its order.
const EVENTS: [&str; 5] = [
    "PM_GRP_CMPL",
    "PM_CMPLU_STALL",
    "PM_GCT_NOSLOT_CYC",
    "PM_CMPLU_STALL_THRD",
    "PM_NTCG_ALL_FIN",
];

fn model(catalogue: &Catalogue) -> Model {
    let components = Components::of(catalogue, "cpi_stack").unwrap();
    let law = Coefficients::new(World::law(components.len(), 0.5)).unwrap();
    let world = World { noise: 0.02, ..World::new(20, 3, law, 1) };
    let trained = |mode: SmtMode| {
        let groups = world.some_groups(mode.threads(), 200, 2);
        Trained {
            fit: fit(mode, &world.observe(&groups, 4, 3)).unwrap(),
            throttling: Some(Throttling { weights: vec![1.1; components.len()], error: 0.0 }),
            scores: Vec::new(),
        }
    };
    Model {
        machine: "a made-up machine".into(),
        core: CoreKind::Performance,
        catalogue: catalogue.name().into(),
        training: Training {
            date: String::new(),
            programs: Vec::new(),
            quantum_ms: 100,
            note: String::new(),
        },
        modes: [SmtMode::Smt2, SmtMode::Smt4].map(|mode| (mode, trained(mode))).into(),
        components,
    }
}

/// Numbers from 0 to 1 without a pattern.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }
}

/// Each thread counts for another quantum.
fn count(machine: &mut FakeMachine, random: &mut Random) {
    let counting = machine.counting.clone().unwrap();
    let quantum = Duration::from_millis(100);
    for (at, thread) in machine.threads.values_mut().enumerate() {
        thread.ran += quantum;
        let lean = (at % 7) as f64 / 7.0;
        let mut shares = EVENTS.map(|_| 0.0);
        for (part, share) in shares.iter_mut().enumerate() {
            let wanted = if part == at % 2 { 0.4 + 0.3 * lean } else { 0.08 };
            *share = wanted * (1.0 + 0.05 * random.next());
        }
        for (reading, group) in thread.counts.iter_mut().zip(&counting.groups) {
            let reading = reading.as_mut().unwrap();
            reading.enabled += quantum;
            reading.running += quantum / 2;
            for (count, event) in reading.counts.iter_mut().zip(&group.events) {
                let part = EVENTS.iter().position(|name| *name == &**event);
                let share = match (part, &**event) {
                    (Some(part), _) => shares[part],
                    (None, "PM_RUN_CYC") => 1.0,
                    (None, _) => 0.5,
                };
                *count += (CYCLES / 2.0 * share) as u64;
            }
        }
    }
}

fn main() {
    let catalogue = Catalogue::named("power8").unwrap().unwrap();
    let symbiosis = Arc::new(Symbiosis::new(model(&catalogue)));
    println!("whole decisions, milliseconds, of {QUANTA} quanta");
    println!("{:>8}{:>5}{:>10}{:>10}{:>10}", "threads", "smt", "least", "median", "most");
    for (threads, smt) in [40, 80, 160, 320, 640, 1024].into_iter().flat_map(|n| [(n, 2), (n, 4)]) {
        let cores = threads / smt;
        let topology = Topology::synthetic(&format!("core:{cores} smt:{smt}")).unwrap();
        let mut machine = FakeMachine::new(topology);
        let counting = catalogue.counting(&[Signal::CpiStack].into());
        let cpus: Vec<_> = machine.topology().cpus().iter().collect();
        for (at, cpu) in cpus.into_iter().enumerate() {
            let id = machine.start(at as u32, at as u32);
            let thread = machine.threads.get_mut(&id).unwrap();
            thread.cpu = Some(cpu);
            let empty = |group: &symbiont_machine::CountedGroup| {
                Ok(GroupReading {
                    opened: Timestamp(1),
                    enabled: Duration::ZERO,
                    running: Duration::ZERO,
                    counts: vec![0; group.events.len()],
                })
            };
            thread.counts = counting.groups.iter().map(empty).collect();
        }
        machine.counting = Some(counting.into());
        let policy = Box::new(Symbiotic::new(Some(Arc::clone(&symbiosis))));
        let mut controller = Controller::new(machine, policy, Planner::new(Bounds::none()));
        let mut random = Random(7);
        let mut times = Vec::with_capacity(QUANTA);
        for quantum in 0..QUANTA + 2 {
            let begin = Instant::now();
            let step = controller.step().unwrap();
            let took = begin.elapsed().as_secs_f64() * 1e3;
            let placed = step.placement.values().filter(|a| a.predicted_slowdown.is_some());
            // The first sample has nothing to compare with.
            if quantum >= 2 {
                assert_eq!(placed.count(), threads);
                times.push(took);
            }
            let machine = controller.machine_mut();
            machine.wait(Duration::from_millis(100)).unwrap();
            let placed = machine.placed.clone();
            for (id, target) in placed {
                if let symbiont_machine::Target::Cpus(cpus) = target {
                    machine.threads.get_mut(&id).unwrap().cpu = cpus.first();
                }
            }
            machine.log.clear();
            count(machine, &mut random);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "{threads:>8}{smt:>5}{:>10.2}{:>10.2}{:>10.2}",
            times[0],
            times[QUANTA / 2],
            times[QUANTA - 1]
        );
    }
}
