//! Symbiont's scheduler in the kernel and others, side by side.
//!
//! # Problem
//! There are other `sched_ext` schedulers. Where do they leave threads for which a policy knows places, how soon do they
//! run a program that wakes, and what runs on its core meanwhile?
//!
//! # Approach
//! The same loads as in [`super::nudging`] and [`super::keepers`], under the kernel's own scheduler, Symbiont's, and each of
//! those that `scripts/rivals.sh` built, as they are without options. Threads book themselves where they ran and how
//! late they woke; what ran on the siblings meanwhile is traced by the kernel ([`super::traced`]). No scheduler is asked
//! how well it did.
//!
//! # Terms and units
//! *Alone*: no manager runs, so that threads are on a target by chance. *Nudged*: Symbiont places threads, and the other
//! scheduler decides. Shares are in percent, lateness in microseconds.
//!
//! # Properties
//! - Each scheduler stays loaded while it is measured, and Symbiont's keeps threads where they belong; else a
//!   scenario fails. All other figures are only printed.
//!
//! # What falls short
//! An emulated CPU acts on another one's interrupt when its turn comes, so that lateness has a floor of some 100
//! microseconds. No thread slows another one down.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, setpriority_process};
use symbiont_control::Holding;
use symbiont_linux::launch::{be_normal, be_urgent};
use symbiont_linux::machine::Keeping;
use symbiont_machine::Machine;

use super::clocked::{Clocked, Program, Shape};
use super::keepers::managed;
use super::kept::needs_a_scheduler;
use super::nudging::{EPOCH, QUANTUM, ROWS, Row, SETTLED, booked, run, stayed};
use super::workers::WORKER;
use super::{skip, traced};
use crate::given::Given;
use crate::test_folder::{send, wait_until};

/// The schedulers' programs, and where a guest has them.
pub const NAMES: [&str; 3] = ["scx_bpfland", "scx_rusty", "scx_cosmos"];
pub const FOLDER: &str = "/lab/rivals";
/// What the kernel was built with, which they want to know.
pub const CONFIGURATION: &str = "/lab/rivals/kernel-configuration";
/// The role that becomes another program, of usual priority.
pub const USUAL: &str = "usual";

/// Of the rows of [`ROWS`].
const LOADS: [&str; 6] = [
    "full, other targets each 5 s",
    "half, packed in pairs",
    "one more than CPUs",
    "half more than CPUs",
    "twice and three more",
    "full, a quarter sleeps 1 of 5 ms",
];
/// Epochs that are nudged or scheduled.
const EPOCHS: usize = 2;
/// The program that wakes: runs for half a millisecond, sleeps 2 to 8.
const WAKES: Shape = Shape {
    runs: Duration::from_micros(500),
    sleeps: Duration::from_millis(2),
    varies: Duration::from_millis(6),
};
const LASTS: Duration = Duration::from_secs(20);
const TRACED: Duration = Duration::from_secs(3);
/// The least urgent nice value.
const LEAST: i32 = 19;

/// Becomes another program; the scheduler's own threads are none of a manager.
pub fn execute(program: &str) -> ! {
    be_normal();
    panic!("{program}: {}", Command::new(program).exec())
}

/// The name by which the kernel knows the scheduler that is loaded.
fn loaded() -> Option<String> {
    let read = |name: &str| fs::read_to_string(Path::new("/sys/kernel/sched_ext").join(name)).ok();
    let is_enabled = read("state")?.trim() == "enabled";
    read("root/ops").filter(|_| is_enabled).map(|name| name.trim().to_owned())
}

/// Another scheduler, loaded while this lives.
struct Rival {
    child: Child,
    log: PathBuf,
}

impl Rival {
    fn start(name: &str) -> Self {
        let log = PathBuf::from(format!("/tmp/{name}.log"));
        let output = File::create(&log).unwrap();
        let program = format!("{FOLDER}/{name}");
        let mut command = Command::new(super::INIT);
        command.args([WORKER, USUAL, &program]).stdin(Stdio::null());
        let child = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        let mut rival = Self { child, log };
        wait_until("it is loaded", || {
            let ended = rival.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name}: {ended:?}: {}", rival.said());
            loaded().is_some()
        });
        println!("{name} is loaded as {}", loaded().unwrap_or_default());
        rival
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        send(self.child.id(), Signal::INT);
        let _ = self.child.wait();
        wait_until("the kernel's own scheduler decides", || loaded().is_none());
    }
}

/// Measures under each scheduler that is here; what is measured may be had several times. What it gives has the
/// scheduler's name.
fn under_each<T>(mut measure: impl FnMut(&str) -> T) -> Vec<T> {
    let here = NAMES.iter().filter(|name| Path::new(FOLDER).join(name).is_file());
    let measured = here.map(|name| {
        let rival = Rival::start(name);
        let measured = measure(name);
        assert!(loaded().is_some(), "{name} was thrown out: {}", rival.said());
        measured
    });
    measured.collect()
}

fn needs_rivals() {
    needs_a_scheduler();
    if !NAMES.iter().any(|name| Path::new(FOLDER).join(name).is_file()) {
        skip("no other scheduler is built (scripts/rivals.sh)");
    }
    // Where libbpf looks for it.
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    fs::create_dir_all("/boot").unwrap();
    fs::copy(CONFIGURATION, format!("/boot/config-{release}")).unwrap();
}

/// Share on the targets without any manager.
fn alone(given: &Given, row: &Row) -> f64 {
    let shapes = (row.threads)(given.cpus().len());
    let mut program = Program::start(&shapes);
    std::thread::sleep(SETTLED);
    let before = program.clocked();
    std::thread::sleep(EPOCH);
    let cpus: Vec<u32> = (0..shapes.len()).map(|n| (row.places)(&given.cores, n, 0)).collect();
    let [on_cpu, _, all] = booked(&before, &program.clocked(), &given.cores, &cpus);
    on_cpu as f64 * 100.0 / all as f64
}

/// A scheduler, and its share for each load.
struct Column {
    name: String,
    shares: Vec<f64>,
}

fn column(name: &str, rows: &[&Row], share: impl Fn(&Row) -> f64) -> Column {
    let said = |row: &&Row| {
        let share = share(row);
        println!("{name}: {}: {share:.1}", row.name);
        share
    };
    Column { name: name.to_owned(), shares: rows.iter().map(said).collect() }
}

/// How much of their time threads are where they are wanted.
pub fn placing(given: &Given) {
    needs_rivals();
    be_urgent().unwrap();
    let rows: Vec<&Row> = ROWS.iter().filter(|row| LOADS.contains(&row.name)).collect();
    assert_eq!(rows.len(), LOADS.len());
    let placed =
        |row: &Row, keeping| stayed(given, row, keeping, [(Holding::AsDecided, EPOCHS)])[0].on_cpu;
    let both = |name: &str| {
        [
            column(&format!("{name}, alone"), &rows, |row| alone(given, row)),
            column(&format!("{name}, nudged"), &rows, |row| placed(row, Keeping::Nudges)),
        ]
    };
    let own = [("sched-ext", Keeping::SchedExt), ("sched-ext-full", Keeping::SchedExtFull)]
        .map(|(name, keeping)| column(name, &rows, |row| placed(row, keeping)));
    let mut columns: Vec<&Column> = own.iter().collect();
    let (kernels, rivals) = (both("kernel"), under_each(both));
    columns.extend(kernels.iter().chain(rivals.iter().flatten()));
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    println!("| load | {} |", names.join(" | "));
    println!("|---{}|", "|---".repeat(columns.len()));
    for (n, row) in rows.iter().enumerate() {
        let shares: Vec<String> =
            columns.iter().map(|column| format!("{:.1}", column.shares[n])).collect();
        println!("| {} | {} |", row.name, shares.join(" | "));
    }
    let least = own.iter().flat_map(|column| &column.shares).copied().fold(100.0, f64::min);
    assert!(least >= 99.0, "threads belong there {least} % of their time");
}

/// What came of a program that wakes, next to a busy thread for each CPU.
struct Woken {
    name: String,
    /// In ascending order, in nanoseconds.
    late_ns: Vec<u64>,
    /// While it ran, of its siblings' time.
    idle: Option<f64>,
    /// Of the machine's time, that of the busy threads.
    batch: f64,
}

impl Woken {
    /// The lateness that a part of all is not above, in microseconds.
    fn late_us(&self, part: f64) -> f64 {
        let last = self.late_ns.len() - 1;
        self.late_ns[(last as f64 * part) as usize] as f64 / 1e3
    }

    fn line(&self) -> String {
        let [median, most, all] = [0.5, 0.99, 1.0].map(|part| self.late_us(part));
        let idle = self.idle.map_or("-".to_owned(), |idle| format!("{idle:.1}"));
        format!(
            "| {} | {} | {median:.0} | {most:.0} | {all:.0} | {idle} | {:.1} |",
            self.name,
            self.late_ns.len(),
            self.batch
        )
    }
}

fn total_ran(threads: &[Clocked]) -> u64 {
    threads.iter().flat_map(|thread| &thread.ran_ns).sum()
}

/// With a manager, or without one and the busy threads of this nice value.
fn woken(given: &Given, name: &str, keeping: Option<Keeping>, nice: i32) -> Woken {
    let cpus = given.cpus().len();
    let mut answers = Program::start(&[WAKES]);
    let mut batch = Program::start(&vec![Shape::BUSY; cpus]);
    for thread in batch.clocked() {
        let thread = Pid::from_raw(i32::try_from(thread.thread).unwrap());
        // Of a thread, in spite of the name.
        setpriority_process(thread, nice).unwrap();
    }
    let mut controller = keeping.map(|keeping| managed(given, keeping, &answers, &mut batch));
    let mut pass = |time: Duration| match &mut controller {
        Some(controller) => {
            run(controller, time.as_millis() / QUANTUM.as_millis());
        }
        None => std::thread::sleep(time),
    };
    pass(2 * SETTLED);
    let (begin, before) = (Instant::now(), (answers.clocked(), batch.clocked()));
    pass(LASTS);
    let (took, after) = (begin.elapsed(), (answers.clocked(), batch.clocked()));
    let switches = traced::switches(&given.cpus(), || pass(TRACED));
    if let Some(controller) = controller {
        let is_own = keeping != Some(Keeping::Nudges);
        assert_eq!(controller.machine().support().scheduler.exists(), is_own, "{name}");
        let _ = controller.into_machine().restore_all();
    }
    drop((answers, batch));
    let mut late_ns = after.0[0].late_ns[before.0[0].late_ns.len()..].to_vec();
    late_ns.sort_unstable();
    let ran = total_ran(&after.1) - total_ran(&before.1);
    let woken = Woken {
        name: name.to_owned(),
        late_ns,
        idle: traced::idle_siblings(&switches, before.0[0].thread, &given.cores),
        batch: ran as f64 * 100.0 / took.as_nanos() as f64 / cpus as f64,
    };
    let latest = &woken.late_ns[woken.late_ns.len() - 5..];
    println!("{} the latest: {latest:?} ns; {} switches", woken.line(), switches.len());
    woken
}

/// How late a program wakes next to busy threads, and how idle its sibling is while it runs.
pub fn waking(given: &Given) {
    needs_rivals();
    be_urgent().unwrap();
    let ways = [
        ("symbiont, by masks", Keeping::Nudges),
        ("symbiont, sched-ext", Keeping::SchedExt),
        ("symbiont, sched-ext-full", Keeping::SchedExtFull),
    ];
    let own = ways.map(|(name, keeping)| woken(given, name, Some(keeping), 0));
    let both = |name: &str| {
        [(name.to_owned(), 0), (format!("{name}, batch has nice {LEAST}"), LEAST)]
            .map(|(name, nice)| woken(given, &name, None, nice))
    };
    let (kernels, rivals) = (both("kernel"), under_each(both));
    println!(
        "| scheduler | sleeps | late by, median, µs | 99 of 100 | most | siblings idle, % | batch, % of the machine |"
    );
    println!("|---|---|---|---|---|---|---|");
    for woken in own.iter().chain(&kernels).chain(rivals.iter().flatten()) {
        println!("{}", woken.line());
    }
    for woken in &own[1..] {
        assert!(woken.idle.is_some_and(|idle| idle > 50.0), "{}", woken.line());
    }
}
