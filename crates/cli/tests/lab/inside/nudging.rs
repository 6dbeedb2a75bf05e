//! How much of their time nudged threads spend where they are put, and the same threads held.
//!
//! # Problem
//! A nudged thread stays as long as the kernel's balancer has no reason to move it. How long is that,
//! under which load, and how often must it be nudged again?
//!
//! # Approach
//! Here time is executed instructions, so that all CPUs run at the same time, however few there are
//! outside, and a run is the same each time. For each load the controller with the real machine is run by a
//! policy that knows the targets beforehand: other ones each [`EPOCH`]. The threads themselves book their time
//! by CPU ([`super::clocked`]), so that nothing of the product says how well it did.
//!
//! # Terms and units
//! *Share*: of the threads' time running, that on the CPU, or on the core, that was decided; in percent.
//! *Nudges*: moves that were made, per second and thread, those to new targets included.
//!
//! # Properties
//! - Held threads are where they are put, so the share is measured rightly; nudged ones are there at least as
//!   much as [`Row::reference`] says, but for [`SLACK`] (`nudged_threads_stay_where_the_kernel_agrees`).
//!
//! # What falls short
//! Threads that the kernel moves too often are kept to their core only: of more threads than CPUs, and some of those
//! that have a core alone. The share of the CPU falls below the reference, that of the core does not. Where all sleep
//! often, a nudge catches few as they wake, since each is narrow for a moment only. Those rows are red.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use symbiont_control::{Controller, Holding, Step};
use symbiont_ext::{loader, obstacle};
use symbiont_linux::launch::{Wake, be_urgent};
use symbiont_linux::machine::{CountOptions, Keeping, LinuxMachine, MachineOptions, Wait};
use symbiont_linux::observe::WatchOptions;
use symbiont_machine::{Assignment, Outcome, Placement};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Policy, View};
use symbiont_topology::{CpuSet, HostTopology, PuId};

use super::clocked::{Clocked, Program, Shape};
use super::workers::WORKER;
use crate::given::Given;

/// The role of those that disturb the others.
pub const BURSTS: &str = "bursts";
pub const QUANTUM: Duration = Duration::from_millis(100);
/// Targets last so long.
pub const EPOCH: Duration = Duration::from_secs(5);
/// Before the first: a program is not placed while it starts.
pub const SETTLED: Duration = Duration::from_secs(2);

/// A row may be so much below its reference, in percent.
const SLACK: f64 = 1.0;

/// A load, and how threads are put.
pub struct Row {
    pub name: &'static str,
    /// How many, and how each spends its time.
    pub threads: fn(usize) -> Vec<Shape>,
    /// Where: given the cores, the n-th thread's CPU.
    pub places: fn(&[Vec<u32>], usize, usize) -> u32,
    /// Whole cores are decided, not CPUs.
    cores: bool,
    bursts: bool,
    /// Share in percent that plain nudging reached, each 100 ms and without Symbiont, in such a guest of Linux 6.18.
    reference: f64,
}

/// One on each core first, then on the second hardware threads, and so on; at each epoch by another core.
fn spread(cores: &[Vec<u32>], n: usize, epoch: usize) -> u32 {
    let stride = if n / cores.len() % 2 == 0 { epoch } else { 3 * epoch + 1 };
    let core = &cores[(n + stride) % cores.len()];
    core[(n / cores.len() + epoch) % core.len()]
}

/// In pairs on the first half of the cores, then on the other half.
fn packed(cores: &[Vec<u32>], n: usize, epoch: usize) -> u32 {
    let core = &cores[(n / 2 + epoch * cores.len() / 2) % cores.len()];
    core[n % core.len()]
}

const BUSY: Shape = Shape::BUSY;
const ROW: Row = Row {
    name: "",
    threads: |cpus| vec![BUSY; cpus],
    places: spread,
    cores: false,
    bursts: false,
    reference: 0.0,
};

pub const ROWS: &[Row] = &[
    Row { name: "full, other targets each 5 s", reference: 99.9, ..ROW },
    Row {
        name: "half, one thread a core",
        threads: |cpus| vec![BUSY; cpus / 2],
        reference: 99.6,
        ..ROW
    },
    Row {
        name: "half, packed in pairs",
        threads: |cpus| vec![BUSY; cpus / 2],
        places: packed,
        reference: 66.0,
        ..ROW
    },
    Row {
        name: "one more than CPUs",
        threads: |cpus| vec![BUSY; cpus + 1],
        reference: 95.5,
        ..ROW
    },
    Row {
        name: "one more, to cores",
        threads: |cpus| vec![BUSY; cpus + 1],
        cores: true,
        reference: 97.0,
        ..ROW
    },
    Row {
        name: "half more than CPUs",
        threads: |cpus| vec![BUSY; cpus * 3 / 2],
        reference: 93.6,
        ..ROW
    },
    Row {
        name: "half more, to cores",
        threads: |cpus| vec![BUSY; cpus * 3 / 2],
        cores: true,
        reference: 99.0,
        ..ROW
    },
    Row {
        name: "twice as many as CPUs",
        threads: |cpus| vec![BUSY; cpus * 2],
        reference: 99.8,
        ..ROW
    },
    Row {
        name: "twice and three more",
        threads: |cpus| vec![BUSY; cpus * 2 + 3],
        reference: 93.0,
        ..ROW
    },
    Row {
        name: "full, a quarter sleeps 5 of 50 ms",
        threads: |cpus| quarter(cpus, 5, 50),
        reference: 99.7,
        ..ROW
    },
    Row {
        name: "full, a quarter sleeps 1 of 5 ms",
        threads: |cpus| quarter(cpus, 1, 5),
        reference: 99.4,
        ..ROW
    },
    Row {
        name: "full, all sleep 5 of 50 ms",
        threads: |cpus| vec![Shape::sleeping(5, 50); cpus],
        reference: 96.0,
        ..ROW
    },
    Row {
        name: "full, all sleep 1 of 5 ms",
        threads: |cpus| vec![Shape::sleeping(1, 5); cpus],
        reference: 83.0,
        ..ROW
    },
    Row { name: "full, bursts of others", bursts: true, reference: 98.3, ..ROW },
    Row { name: "full, bursts, to cores", bursts: true, cores: true, reference: 99.8, ..ROW },
];

fn quarter(cpus: usize, sleeps_ms: u64, of_ms: u64) -> Vec<Shape> {
    let shape = |n| if n % 4 == 0 { Shape::sleeping(sleeps_ms, of_ms) } else { BUSY };
    (0..cpus).map(shape).collect()
}

/// Nothing but time ends a quantum.
pub struct Sleep;

impl Wait for Sleep {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        std::thread::sleep(timeout);
        Ok(Wake::Timeout)
    }
}

/// Targets by the kernel's number of a thread.
pub type Targets = Arc<Mutex<BTreeMap<u32, CpuSet>>>;

/// Puts threads where they are wanted.
pub struct Wanted(pub Targets);

impl Policy for Wanted {
    fn name(&self) -> &'static str {
        "wanted"
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let wanted = self.0.lock().unwrap();
        let assigned = |thread| match wanted.get(&thread) {
            Some(cpus) => Assignment::on(cpus.clone(), "wanted"),
            None => Assignment::os("not wanted anywhere"),
        };
        view.threads.iter().map(|thread| (thread.id, assigned(thread.id.thread))).collect()
    }
}

/// What came of a load.
#[derive(Debug, Default, Clone, Copy)]
pub struct Stayed {
    pub on_cpu: f64,
    pub on_core: f64,
    /// Per second and thread.
    nudges: f64,
    /// Time of the manager, in percent of a CPU.
    pub cost: f64,
}

impl Stayed {
    /// On what was decided: a CPU, or a core.
    pub fn where_decided(&self, row: &Row) -> f64 {
        if row.cores { self.on_core } else { self.on_cpu }
    }
}

/// Wakes each 20 ms and runs for 2.
pub fn burst() {
    super::clocked::run_for_good(Shape::sleeping(18, 20));
}

struct Disturbers(Vec<Child>);

impl Disturbers {
    fn start(count: usize) -> Self {
        let start = |_| {
            let mut command = Command::new(super::INIT);
            command.args([WORKER, BURSTS]).stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..count).map(start).collect())
    }
}

impl Drop for Disturbers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Time on the decided CPU, on its core, and anywhere, between two looks, in ns.
pub fn booked(before: &[Clocked], after: &[Clocked], cores: &[Vec<u32>], cpus: &[u32]) -> [u64; 3] {
    let mut sums = [0; 3];
    for ((before, after), cpu) in before.iter().zip(after).zip(cpus) {
        let core = cores.iter().find(|core| core.contains(cpu)).unwrap();
        for (at, (before, after)) in (0..).zip(before.ran_ns.iter().zip(&after.ran_ns)) {
            let is_in = [at == *cpu, core.contains(&at), true];
            sums.iter_mut()
                .zip(is_in)
                .filter(|(_, is)| *is)
                .for_each(|(sum, _)| *sum += after - before);
        }
    }
    sums
}

/// Held, then nudged; or nudged by name and kept by a scheduler in the kernel.
pub fn stayed<const N: usize>(
    given: &Given,
    row: &Row,
    keeping: Keeping,
    ways: [(Holding, usize); N],
) -> [Stayed; N] {
    let cores = &given.cores;
    let shapes = (row.threads)(given.cpus().len());
    let mut program = Program::start(&shapes);
    let _disturbers = Disturbers::start(if row.bursts { cores.len() } else { 0 });
    let targets = Targets::default();
    let mut controller = manager(&program, &targets, keeping);
    let in_quanta = |time: Duration| time.as_millis() / QUANTUM.as_millis();
    run(&mut controller, in_quanta(SETTLED));
    let whole = |cpu: u32| -> CpuSet {
        let core = cores.iter().find(|core| core.contains(&cpu)).unwrap();
        if row.cores { core.iter().copied().map(PuId).collect() } else { PuId(cpu).into() }
    };
    let each = ways.map(|(holding, epochs)| {
        controller.set_holding(holding);
        let (mut sums, mut moves) = ([0; 3], 0);
        let began = controller.machine().cost().cpu;
        for epoch in 0..epochs {
            let before = program.clocked();
            let cpus: Vec<u32> = (0..shapes.len()).map(|n| (row.places)(cores, n, epoch)).collect();
            *targets.lock().unwrap() = before
                .iter()
                .zip(&cpus)
                .map(|(thread, cpu)| (thread.thread, whole(*cpu)))
                .collect();
            moves += run(&mut controller, in_quanta(EPOCH));
            let more = booked(&before, &program.clocked(), cores, &cpus);
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        let share = |part: u64| part as f64 * 100.0 / sums[2] as f64;
        let seconds = EPOCH.as_secs_f64() * epochs as f64;
        let cost = (controller.machine().cost().cpu - began).as_secs_f64() * 100.0 / seconds;
        let nudges = moves as f64 / seconds / shapes.len() as f64;
        Stayed { on_cpu: share(sums[0]), on_core: share(sums[1]), nudges, cost }
    });
    let _ = controller.into_machine().restore_all();
    each
}

/// This guest, to be steered by this process.
pub fn machine(keeping: Keeping) -> LinuxMachine<Sleep> {
    let options = MachineOptions {
        state_dir: "/tmp/nudging".into(),
        watch: WatchOptions::default(),
        counting: CountOptions::default(),
        keeping,
    };
    std::fs::create_dir_all(&options.state_dir).unwrap();
    let host = HostTopology::read().unwrap();
    LinuxMachine::new(host, options, Sleep).map_err(|(why, _)| why).unwrap()
}

/// A manager of the program, in this process.
fn manager(
    program: &Program,
    targets: &Targets,
    keeping: Keeping,
) -> Controller<LinuxMachine<Sleep>> {
    let mut machine = machine(keeping);
    machine.enrol("clocked", program.process()).unwrap();
    Controller::new(machine, Box::new(Wanted(Arc::clone(targets))), Planner::new(Bounds::none()))
}

/// For so many quanta; gives the number of moves that were made.
pub fn run(controller: &mut Controller<LinuxMachine<Sleep>>, quanta: u128) -> usize {
    let (mut left, mut moves) = (quanta, 0);
    let each = |step: &Step| {
        left -= 1;
        moves += step.moves().filter(|(_, outcome)| **outcome == Outcome::Done).count();
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    controller.run(QUANTUM, each).unwrap();
    std::thread::sleep(QUANTUM);
    moves
}

pub fn table(given: &Given) {
    be_urgent().unwrap();
    println!(
        "| load | held, % | nudged, % on CPU | on core | nudges per thread and second | manager, % of a CPU \
         | sched_ext, % on CPU | on core | manager, % of a CPU |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let is_scheduled = loader().is_some() && obstacle().is_none();
    let mut wrong = Vec::new();
    for row in ROWS {
        let ways = [(Holding::Always, 1), (Holding::AsDecided, 2)];
        let [held, nudged] = stayed(given, row, Keeping::Nudges, ways);
        let kept = is_scheduled
            .then(|| stayed(given, row, Keeping::SchedExt, [(Holding::AsDecided, 2)])[0]);
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} | {} |",
            row.name,
            held.where_decided(row),
            nudged.on_cpu,
            nudged.on_core,
            nudged.nudges,
            nudged.cost,
            kept.map_or("- | - | -".to_owned(), |kept| format!(
                "{:.1} | {:.1} | {:.1}",
                kept.on_cpu, kept.on_core, kept.cost
            ))
        );
        if held.where_decided(row) < 98.0 || nudged.where_decided(row) < row.reference - SLACK {
            wrong.push(format!("{}: held {held:?}, nudged {nudged:?}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}
