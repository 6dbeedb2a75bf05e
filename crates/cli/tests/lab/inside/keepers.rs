//! A program that answers requests next to batch programs: by cores that are reserved for it, and by a scheduler in
//! the kernel that empties a sibling only while it runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use symbiont_control::{Controller, Holding};
use symbiont_linux::machine::{Keeping, LinuxMachine};
use symbiont_machine::{Class, Machine};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::Classes;
use symbiont_topology::{CpuSet, PuId};

use super::clocked::{Clocked, Program, Shape};
use super::kept::needs_a_scheduler;
use super::nudging::{QUANTUM, SETTLED, Sleep, Targets, Wanted, machine, run};
use crate::given::Given;
use crate::settings::{of_tree, own};

const LASTS: Duration = Duration::from_secs(5);

/// What came of it.
#[derive(Debug)]
struct Seen {
    /// Of the machine's time, that of batch threads, in percent.
    batch: f64,
    /// Running time of the program that answers, in percent of a CPU.
    latency: f64,
    /// While it ran, how much of its siblings' time was idle, in percent; none: it is not counted.
    idle: Option<f64>,
}

/// Running time of all threads between two looks that are [`LASTS`] apart, in percent of a CPU.
fn ran(before: &[Clocked], after: &[Clocked]) -> f64 {
    let sum = |all: &[Clocked]| all.iter().flat_map(|thread| &thread.ran_ns).sum::<u64>();
    (sum(after) - sum(before)) as f64 / LASTS.as_nanos() as f64 * 100.0
}

/// A manager of both, each of its class; batch threads are wanted one on each CPU.
pub fn managed(
    given: &Given,
    keeping: Keeping,
    answers: &Program,
    batch: &mut Program,
) -> Controller<LinuxMachine<Sleep>> {
    let targets = Targets::default();
    let mut machine: LinuxMachine<Sleep> = machine(keeping);
    for (name, program, class) in
        [("answers", answers.process(), Class::Latency), ("batch", batch.process(), Class::Batch)]
    {
        let id = machine.enrol(name, program).unwrap();
        machine.set_class(id, class);
    }
    let policy = Classes::new(Box::new(Wanted(Arc::clone(&targets))));
    let mut controller = Controller::new(machine, Box::new(policy), Planner::new(Bounds::none()));
    controller.set_holding(Holding::AsDecided);
    let each: BTreeMap<u32, CpuSet> = batch
        .clocked()
        .iter()
        .zip(given.cpus())
        .map(|(thread, cpu)| (thread.thread, PuId(cpu).into()))
        .collect();
    *targets.lock().unwrap() = each;
    controller
}

fn seen_with(given: &Given, keeping: Keeping, shape: Shape) -> Seen {
    let cpus = given.cpus();
    let user = own().mask;
    let mut answers = Program::start(&[shape]);
    let mut batch = Program::start(&vec![Shape::BUSY; cpus.len()]);
    let mut controller = managed(given, keeping, &answers, &mut batch);
    let in_quanta = |time: Duration| time.as_millis() / QUANTUM.as_millis();
    run(&mut controller, in_quanta(2 * SETTLED));
    let before = (answers.clocked(), batch.clocked());
    run(&mut controller, in_quanta(LASTS));
    let idle = controller.machine().scheduled().map(|counted| {
        println!("{counted:?}");
        let siblings = counted.siblings[&Class::Latency];
        siblings.idle_ns as f64 * 100.0 / siblings.all_ns as f64
    });
    if keeping != Keeping::Nudges {
        let masks: Vec<_> =
            of_tree(batch.process()).into_values().map(|thread| thread.mask).collect();
        assert!(masks.iter().all(|mask| *mask == user), "{masks:?}");
    }
    let seen = Seen {
        batch: ran(&before.1, &batch.clocked()) / cpus.len() as f64,
        latency: ran(&before.0, &answers.clocked()),
        idle,
    };
    assert_ne!(own().mask, user, "the manager keeps off its core");
    assert_eq!(controller.machine().support().scheduler.exists(), keeping != Keeping::Nudges);
    let _ = controller.into_machine().restore_all();
    assert_eq!(own().mask, user);
    seen
}

/// Its sibling is idle while it runs, and batch has the rest: more than where a core is reserved. An emulated CPU acts on
/// another one's interrupt when its turn comes, after some 0.3 ms: of short runs that is a large part, which is printed.
/// How long it takes depends on where the timers of all CPUs are just then, so that the program sleeps a bit longer or
/// shorter each time. The manager, of the kernel's own class, keeps off that core: where it does not, the kernel puts it on that
/// sibling, the only idle CPU.
pub fn latency(given: &Given) {
    needs_a_scheduler();
    let varies = Duration::from_millis(4);
    let [long, short] =
        [(198, 248), (6, 8)].map(|(sleeps, of)| Shape { varies, ..Shape::sleeping(sleeps, of) });
    let reserved = seen_with(given, Keeping::Nudges, long);
    let scheduled = seen_with(given, Keeping::SchedExt, long);
    println!("50 of 250 ms: reserved: {reserved:?}; by a scheduler: {scheduled:?}");
    println!("2 of 10 ms, by a scheduler: {:?}", seen_with(given, Keeping::SchedExt, short));
    assert!(scheduled.idle.is_some_and(|idle| idle >= 99.0), "{scheduled:?}");
    assert!(scheduled.latency > 0.95 * reserved.latency, "it answers as much");
    assert!(scheduled.batch > reserved.batch + 5.0, "batch has more of the machine");
}
