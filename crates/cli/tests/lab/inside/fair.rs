//! How a scheduler of Symbiont's in the kernel shares CPUs among threads that belong on the same one.
//!
//! # Properties
//! - A thread that finds no room at home is lent an idle CPU, so that no CPU rests while threads wait.
//! - Where no CPU is idle, threads of one CPU share it evenly, also with one that begins much later.
//! - That stays so where a thread of the kernel's own scheduler runs there again and again.
//! - A thread of class `batch` whose CPU a `normal` one never leaves runs all the same, now and then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use symbiont_control::{Controller, Holding};
use symbiont_linux::machine::{Keeping, LinuxMachine};
use symbiont_machine::Class;
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::Classes;
use symbiont_topology::{CpuSet, PuId};

use super::clocked::{Program, Shape};
use super::kept::needs_a_scheduler;
use super::nudging::{QUANTUM, SETTLED, Sleep, Targets, Wanted, machine, run};
use super::workers::confine;
use crate::given::Given;

const LASTS: Duration = Duration::from_secs(5);

/// Programs whose threads belong on one CPU each.
struct World {
    controller: Controller<LinuxMachine<Sleep>>,
    targets: Targets,
    programs: Vec<(Program, Vec<u32>)>,
}

impl World {
    fn new() -> Self {
        let targets = Targets::default();
        let policy = Classes::new(Box::new(Wanted(Arc::clone(&targets))));
        let planner = Planner::new(Bounds::none());
        let mut controller = Controller::new(machine(Keeping::SchedExt), Box::new(policy), planner);
        controller.set_holding(Holding::AsDecided);
        Self { controller, targets, programs: Vec::new() }
    }

    /// A program of a busy thread for each of these CPUs.
    fn start(&mut self, class: Class, cpus: &[u32]) {
        let program = Program::start(&vec![Shape::BUSY; cpus.len()]);
        let machine = self.controller.machine_mut();
        let id = machine.enrol("busy", program.process()).unwrap();
        machine.set_class(id, class);
        self.programs.push((program, cpus.to_vec()));
    }

    /// Running time of each thread of each program in [`LASTS`], in percent of a CPU, once all are placed.
    fn shares(&mut self) -> Vec<Vec<f64>> {
        let mut wanted = BTreeMap::<u32, CpuSet>::new();
        for (program, cpus) in &mut self.programs {
            let threads = program.clocked().into_iter().map(|clocked| clocked.thread);
            wanted.extend(threads.zip(cpus.iter().map(|cpu| PuId(*cpu).into())));
        }
        *self.targets.lock().unwrap() = wanted;
        self.run(2 * SETTLED);
        let before = self.ran();
        self.run(LASTS);
        let share = |(after, before)| (after - before) as f64 * 100.0 / LASTS.as_nanos() as f64;
        let program = |(after, before): (Vec<u64>, Vec<u64>)| -> Vec<f64> {
            after.into_iter().zip(before).map(share).collect()
        };
        self.ran().into_iter().zip(before).map(program).collect()
    }

    fn run(&mut self, time: Duration) {
        run(&mut self.controller, time.as_millis() / QUANTUM.as_millis());
    }

    fn ran(&mut self) -> Vec<Vec<u64>> {
        let sums = |(program, _): &mut (Program, _)| {
            program.clocked().iter().map(|thread| thread.ran_ns.iter().sum()).collect()
        };
        self.programs.iter_mut().map(sums).collect()
    }

    /// How often a thread ran since it had waited too long.
    fn starved(&self) -> u64 {
        self.controller.machine().scheduled().map_or(0, |counted| counted.starved)
    }

    fn end(self) {
        assert!(self.controller.machine().scheduler_lost().is_none());
        let _ = self.controller.into_machine().restore_all();
    }
}

/// A thread that Symbiont knows nothing of, awake on this CPU for one of ten milliseconds.
fn unmanaged(cpu: u32) -> Program {
    let mut program = Program::start(&[Shape::sleeping(9, 10)]);
    program.clocked().iter().for_each(|clocked| confine(Some(clocked.thread), &[cpu]));
    program
}

pub fn shared(given: &Given) {
    needs_a_scheduler();
    let cpus = given.cpus();
    let home = cpus[0];

    let mut world = World::new();
    world.start(Class::Normal, &[home, home]);
    let lent = world.shares().concat();
    println!("two threads of one CPU, the others idle: {lent:?} %");
    assert!(lent.iter().sum::<f64>() > 190.0, "{lent:?}");
    assert!(lent.iter().all(|share| *share > 80.0), "{lent:?}");

    // The rest is busy from now on.
    world.start(Class::Normal, &cpus[1..]);
    let full = world.shares();
    println!("the same, all others busy: {full:?} %");
    assert!(full[0].iter().all(|share| (45.0..55.0).contains(share)), "{full:?}");

    let another = unmanaged(home);
    let disturbed = world.shares();
    println!("and an unmanaged one wakes there each 10 ms: {disturbed:?} %");
    assert!(disturbed[0].iter().all(|share| (38.0..50.0).contains(share)), "{disturbed:?}");
    drop(another);

    world.start(Class::Normal, &[home]);
    let later = world.shares();
    println!("and a third one: {later:?} %");
    let of_home = later[0].iter().chain(&later[2]);
    assert!(of_home.clone().all(|share| (28.0..39.0).contains(share)), "{later:?}");

    let before = world.starved();
    world.start(Class::Batch, &[home]);
    let batch = world.shares()[3][0];
    let times = world.starved() - before;
    println!("and a batch one: {batch:.1} %, by {times} exceptions");
    // A slice of 20 ms about each second.
    assert!((0.5..10.0).contains(&batch) && times >= 3, "{batch} % by {times} exceptions");
    world.end();
}
